package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// faults are how a destination answers in place of a well one: for single
// records, for the results of a batch, and for whole calls.
type faults struct {
	endpoint *endpoint.Endpoint

	mu       sync.Mutex
	records  []*recordFault
	calls    []*callFault
	reversed bool              // results come in the order c, b, a
	clock    func() time.Time  // of the service; nil: times are of no interest
	times    map[int]time.Time // of calls, by their numbers
}

// recordFault is for one identifier; left counts down, from -1 it never ends.
type recordFault struct {
	id, kind string
	left     int
}

// callFault is for whole calls of a method, those with a record alone where one
// is named.
type callFault struct {
	method, id, kind string
	left             int
}

// faultsOf are those of a destination; they take the place of any other script.
func (sc *scenario) faultsOf(d *destination) *faults {
	if d.faults == nil {
		d.faults = &faults{endpoint: d.Endpoint}
		d.SetScript(d.faults.answer)
	}
	return d.faults
}

// refusal is the message of every failure that is made up.
const refusal = "zz-conf refuses this"

// clear drops all faults.
func (m *faults) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records, m.calls, m.reversed = nil, nil, false
}

func (m *faults) answer(c *endpoint.Call) *endpoint.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock != nil {
		m.times[c.Number] = m.clock()
	}
	for _, one := range m.calls {
		if one.method != c.Method || one.left == 0 || one.id != "" && !slices.Contains(identifiersIn(c), one.id) {
			continue
		}
		one.left--
		return one.reply(c)
	}
	if c.Method != rpc.MethodSyncBatch || len(m.records) == 0 && !m.reversed {
		return nil
	}
	return m.batch(c)
}

func (o *callFault) reply(c *endpoint.Call) *endpoint.Reply {
	switch o.kind {
	case "HTTP 500":
		return &endpoint.Reply{Status: 500, Body: []byte(`{"message":"` + refusal + `"}`)}
	case "an error object":
		return &endpoint.Reply{Body: jsonvalue.Encode(map[string]any{"jsonrpc": "2.0", "id": c.ID, "error": map[string]any{"code": -32050, "message": refusal}})}
	case "no results":
		return &endpoint.Reply{Body: jsonvalue.Encode(map[string]any{"jsonrpc": "2.0", "id": c.ID, "result": map[string]any{"record_results": []any{}}})}
	case "no reply, but stores it":
		return &endpoint.Reply{Store: true, Cut: true}
	}
	return &endpoint.Reply{Cut: true}
}

// identifiersIn are the texts of the identifiers of a batch.
func identifiersIn(c *endpoint.Call) []string {
	var out []string
	for _, r := range unpack([]*endpoint.Call{c}) {
		out = append(out, r.identifier)
	}
	return out
}

// batch lets the simulator store what is not refused, and makes the results of
// the rest up.
func (m *faults) batch(c *endpoint.Call) *endpoint.Reply {
	var kept []json.RawMessage
	special := map[string]*recordFault{}
	records := unpack([]*endpoint.Call{c})
	for i, r := range records {
		if one := m.faultFor(r.identifier); one != nil {
			special[r.identifier] = one
			one.left--
			if one.kind != "two successes" {
				continue
			}
		}
		kept = append(kept, c.Records()[i].Raw)
	}
	stored := m.stored(c, kept)
	results := []json.RawMessage{}
	for _, r := range records {
		identifier := r.fields[activeIdentifier(c)]
		results = append(results, resultsFor(special[r.identifier], identifier, stored[string(identifier)])...)
	}
	if m.reversed {
		slices.Reverse(results)
	}
	return &endpoint.Reply{Body: jsonvalue.Encode(map[string]any{"jsonrpc": "2.0", "id": c.ID, "result": map[string]any{"record_results": results}})}
}

func (m *faults) faultFor(id string) *recordFault {
	for _, one := range m.records {
		if one.id == id && one.left != 0 {
			return one
		}
	}
	return nil
}

// stored hands records to the simulator; its results by the text of their
// identifiers.
func (m *faults) stored(c *endpoint.Call, records []json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if len(records) == 0 {
		return out
	}
	reply, err := wire.Parse(m.endpoint.CarryOut(jsonvalue.Encode(map[string]any{
		"jsonrpc": "2.0", "method": c.Method, "id": c.ID,
		"params": map[string]any{"sync_plan": json.RawMessage(c.Param("sync_plan").Raw), "records": records},
	})))
	if err != nil || reply.Get("result", "record_results") == nil {
		return out
	}
	for _, r := range reply.Get("result", "record_results").Items {
		out[jsonvalue.Raw(r.Get("identifier"))] = bytes.Clone(r.Raw)
	}
	return out
}

func resultsFor(one *recordFault, identifier, stored json.RawMessage) []json.RawMessage {
	failure := jsonvalue.Encode(map[string]any{"identifier": identifier, "success": false, "error_message": refusal})
	success := jsonvalue.Encode(map[string]any{"identifier": identifier, "success": true})
	switch {
	case one == nil && stored == nil:
		return nil
	case one == nil:
		return []json.RawMessage{stored}
	}
	switch one.kind {
	case "no result":
		return nil
	case "a result without success":
		return []json.RawMessage{jsonvalue.Encode(map[string]any{"identifier": identifier})}
	case "success and failure":
		return []json.RawMessage{success, failure}
	case "two successes":
		return []json.RawMessage{success, success}
	case "the result of another record":
		return []json.RawMessage{jsonvalue.Encode(map[string]any{"identifier": "zz-conf-nobody", "success": true})}
	}
	return []json.RawMessage{failure}
}

// times reads how long a fault lasts.
func times(once string) int {
	if once == "" {
		return -1
	}
	return 1
}

// answersRecord and the others add a fault to the destination of the scenario.
func (sc *scenario) answersRecord(id, kind, once string) error {
	return sc.addFault(func(m *faults) { m.records = append(m.records, &recordFault{id, kind, times(once)}) })
}

func (sc *scenario) answersCall(which, method, id, kind string) error {
	left := -1
	if which == "the first" {
		left = 1
	}
	return sc.addFault(func(m *faults) { m.calls = append(m.calls, &callFault{method, id, kind, left}) })
}

func (sc *scenario) addFault(add func(*faults)) error {
	if err := sc.someDestination(); err != nil {
		return fmt.Errorf("make a destination: %w", err)
	}
	m := sc.faultsOf(sc.dest)
	m.mu.Lock()
	defer m.mu.Unlock()
	add(m)
	return nil
}

// twist changes how one call is answered; r begins as what the simulator
// answers by itself.
type twist func(c *endpoint.Call, r *endpoint.Reply)

// behaves adds a twist to those that the destination has already.
func (d *destination) behaves(m twist) { d.WrapScript(m) }

// methodIs limits a twist to a JSON-RPC method.
func methodIs(method string, m twist) twist {
	return func(c *endpoint.Call, r *endpoint.Reply) {
		if c.Method == method {
			m(c, r)
		}
	}
}

// counted limits a twist to the calls of a method from the first-th to the
// last-th that come from now on; 0 is no end.
func counted(method string, first, last int64, m twist) twist {
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

// slowly lets every batch take that long.
func slowly(d time.Duration) twist {
	return methodIs(rpc.MethodSyncBatch, func(_ *endpoint.Call, r *endpoint.Reply) { r.Before = after(d) })
}
