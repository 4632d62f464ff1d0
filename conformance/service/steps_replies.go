package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// replySteps are for RPLY, replies that break the protocol (spec 7.2), and for other answers of the destination.
var replySteps = []step{
	{`^a client connects a destination that answers "([a-z_]+)" with each of:$`, func(sc *scenario, method string, t *engine.Table) {
		for _, line := range engine.Rows(t) {
			sc.triesConnecting(connecting{twist: methodIs(method, func(c *endpoint.Call, r *endpoint.Reply) { *r = *answered(line[0], c) })})
		}
	}},
	{`^each connection shows the object "([^"]*)"$`, func(sc *scenario, object string) error {
		return each(sc, "connection", sc.tests, func(t *tested) {
			a := sc.api(request{method: "GET", path: t.d.objectPath(object)})
			sc.expect(a.text("data", "full_name") == object && len(jsonvalue.Items(a.at("data", "fields"))) > 0,
				fmt.Sprintf("the object %q with fields", object), a.short(), a)
		})
	}},
	{`^a sync into "([^"]*)" is refused for each connection$`, func(sc *scenario, object string) {
		for _, t := range sc.tests {
			if sc.dest = t.d; t.d.id == 0 {
				continue // the connection itself was refused
			}
			sc.makesSync("id, name", rpc.OperationUpsert, object)
			stop(sc.syncIs("refused"))
		}
		sc.Proof("%s", quantity.Count(len(sc.tests), "connection"))
	}},
	// Its batches are of one record; the last record is answered as it should be.
	{`^a sync of a record for each of these replies to "sync_batch":$`, func(sc *scenario, t *engine.Table) {
		replies := map[string]string{}
		for i, line := range engine.Rows(t) {
			replies[fmt.Sprintf("r%05d", i+1)] = line[0]
		}
		twist := methodIs(rpc.MethodSyncBatch, func(c *endpoint.Call, r *endpoint.Reply) {
			if text, bad := replies[jsonvalue.Text(c.Param("records", "0", "id"))]; bad {
				*r = *answered(text, c)
			}
		})
		sc.connect(connecting{sim: SimulatorConfig{Speed: speedOf(1, 8, 100_000)}, twist: twist})
		sc.aSync(len(replies)+1, rpc.OperationUpsert)
	}},
	{`^the destination answers (every|the first) "([a-z_]+)"(?: with record "([^"]*)")? with (.+)$`, (*scenario).answersCall},
	{`^the destination answers record "([^"]*)" with (a refusal|no result|success and failure)( once)?$`,
		func(sc *scenario, id, kind, once string) {
			sc.addFault(func(m *recordFaults) {
				m.records = append(m.records, &recordFault{id: id, kind: kind, once: once != ""})
			})
		}},
	{`^the destination gives results in reverse order$`, func(sc *scenario) { sc.addFault(func(m *recordFaults) { m.reversed = true }) }},
	{`^the destination is well again$`, func(sc *scenario) {
		sc.dest.faults = nil
		sc.dest.BehaveWell()
	}},
}

// refusal is the message of every failure that is made up.
const refusal = "zz-conf refuses this"

// answered is a reply in the words of a feature file, or as a text, with that status after "HTTP 500". {id} is the id of the
// request as JSON, {result} the simulator's own result.
func answered(text string, c *endpoint.Call) *endpoint.Reply {
	text, failed := strings.CutPrefix(text, "HTTP 500")
	switch {
	case text == "no reply":
		return &endpoint.Reply{Cut: true}
	case text == "no reply, but stores it":
		return &endpoint.Reply{Store: true, Cut: true}
	case text == "an error object":
		text = `{"jsonrpc":"2.0","id":{id},"error":{"code":-32050,"message":"` + refusal + `"}}`
	case text == "" && failed:
		text = `{"message":"` + refusal + `"}`
	}
	status := map[bool]int{true: http.StatusInternalServerError, false: http.StatusOK}[failed]
	id := jsonvalue.Raw(c.JSON.Get("id"))
	fill := func(result string) []byte {
		return []byte(strings.NewReplacer("{id}", id, "{result}", result).Replace(text))
	}
	if !strings.Contains(text, "{result}") {
		return &endpoint.Reply{Status: status, Body: fill("")}
	}
	return &endpoint.Reply{Edit: func(body []byte, _ http.Header) []byte {
		n, err := wire.Parse(body)
		if err != nil || n.Get("result") == nil {
			return fill("{}")
		}
		return fill(jsonvalue.Raw(n.Get("result")))
	}}
}

// answersCall answers calls of a method, those with a record alone where one is named, in another way.
func (sc *scenario) answersCall(which, method, id, text string) {
	sc.someDestination()
	var n atomic.Int64
	sc.dest.Behave(methodIs(method, func(c *endpoint.Call, r *endpoint.Reply) {
		if id != "" && !slices.Contains(identifiersIn(c), id) || which == "the first" && n.Add(1) > 1 {
			return
		}
		*r = *answered(text, c)
	}))
}

// recordFaults are how a destination answers single records in place of a well one.
type recordFaults struct {
	dest     *destination
	mu       sync.Mutex
	records  []*recordFault
	reversed bool // results come in the order c, b, a
}

// recordFault is for one identifier.
type recordFault struct {
	id, kind string
	once     bool
	over     bool
}

// addFault adds a fault to the destination of the scenario.
func (sc *scenario) addFault(add func(*recordFaults)) {
	sc.someDestination()
	m := sc.dest.faults
	if m == nil {
		m = &recordFaults{dest: sc.dest}
		sc.dest.faults = m
		sc.dest.Behave(methodIs(rpc.MethodSyncBatch, m.batch))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	add(m)
}

// batch lets the simulator store records that are not refused, and invents the results of the rest.
func (m *recordFaults) batch(c *endpoint.Call, r *endpoint.Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var kept []json.RawMessage
	special := map[string]string{}
	records := unpack([]*endpoint.Call{c})
	for _, one := range records {
		at := slices.IndexFunc(m.records, func(fault *recordFault) bool { return fault.id == one.identifier && !fault.over })
		if at < 0 {
			kept = append(kept, one.record.Raw)
			continue
		}
		special[one.identifier], m.records[at].over = m.records[at].kind, m.records[at].once
	}
	stored := m.stored(c, kept)
	results := []any{}
	for _, one := range records {
		identifier := jsonvalue.Decode(one.record.Get(activeIdentifier(c)))
		failure := map[string]any{"identifier": identifier, "success": false, "error_message": refusal}
		switch kind := special[one.identifier]; {
		case kind == "a refusal":
			results = append(results, failure)
		case kind == "success and failure":
			results = append(results, map[string]any{"identifier": identifier, "success": true}, failure)
		case kind == "" && stored[one.identifier] != nil:
			results = append(results, stored[one.identifier])
		}
	}
	if m.reversed {
		slices.Reverse(results)
	}
	result := map[string]any{"record_results": results}
	*r = endpoint.Reply{Body: jsonvalue.Encode(map[string]any{"jsonrpc": "2.0", "id": c.ID, "result": result})}
}

// stored hands records to the simulator; its results by the text of their identifiers.
func (m *recordFaults) stored(c *endpoint.Call, records []json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if len(records) == 0 {
		return out
	}
	reply, err := wire.Parse(m.dest.carryOut(c.ID, json.RawMessage(c.Param("sync_plan").Raw), records))
	if err != nil {
		return out
	}
	for _, r := range jsonvalue.Items(reply.Get("result", "record_results")) {
		out[jsonvalue.Plain(r.Get("identifier"))] = r.Raw
	}
	return out
}

// carryOut hands a batch to the simulator past everything that is recorded, and gives its reply.
func (d *destination) carryOut(id string, plan any, records []json.RawMessage) []byte {
	return d.CarryOut(jsonvalue.Encode(map[string]any{
		"jsonrpc": "2.0", "method": rpc.MethodSyncBatch, "id": id, "params": map[string]any{"sync_plan": plan, "records": records},
	}))
}

// methodIs limits a twist to a JSON-RPC method, or to none.
func methodIs(method string, m endpoint.Twist) endpoint.Twist {
	return func(c *endpoint.Call, r *endpoint.Reply) {
		if c.Method == method || method == anyMethod {
			m(c, r)
		}
	}
}

// counted limits a twist to the first-th to last-th call of a method from now on; 0 is no end.
func counted(method string, first, last int64, m endpoint.Twist) endpoint.Twist {
	var n atomic.Int64
	return methodIs(method, func(c *endpoint.Call, r *endpoint.Reply) {
		if i := n.Add(1); i >= first && (last == 0 || i <= last) {
			m(c, r)
		}
	})
}

// after is a channel that is closed in a while.
func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}
