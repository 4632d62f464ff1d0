package service

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// repliesSteps are for RPLY: replies that break the protocol (spec 7.2).
func repliesSteps() []engine.Step {
	return []engine.Step{
		step(`^a client connects a destination that answers "([a-z_]+)" with each of:$`, func(sc *scenario) any {
			return func(method string, t *engine.Table) error { return sc.connectsEach(method, http.StatusOK, t) }
		}),
		step(`^a client connects a destination that answers "([a-z_]+)" with status (\d+) and each of:$`, func(sc *scenario) any { return sc.connectsEach }),
		step(`^a client connects a destination whose answer to "([a-z_]+)" (is cut in the middle|never begins|is shorter than its Content-Length)$`,
			func(sc *scenario) any { return sc.connectsCut }),
		step(`^each connection shows the object "([^"]*)"$`, func(sc *scenario) any { return sc.eachShows }),
		step(`^a sync into "([^"]*)" is refused for each connection$`, func(sc *scenario) any { return sc.eachRefusesSync }),
		step(`^a sync of a record for each of these replies to "sync_batch":$`, func(sc *scenario) any { return sc.syncOfReplies }),
		step(`^the destination answers "([a-z_]+)" with (.*)$`, func(sc *scenario) any { return sc.destinationAnswers }),
	}
}

// answered is a reply as it stands in a feature file: {id} is the id of the
// request as JSON, {result} the simulator's own result.
func answered(text string, c *endpoint.Call) *endpoint.Reply {
	id := jsonvalue.Raw(c.JSON.Get("id"))
	fill := func(result string) []byte {
		return []byte(strings.NewReplacer("{id}", id, "{result}", result).Replace(text))
	}
	if !strings.Contains(text, "{result}") {
		return &endpoint.Reply{Body: fill("")}
	}
	return &endpoint.Reply{Edit: func(body []byte, _ http.Header) []byte { return fill(resultOf(body)) }}
}

// resultOf is the result of a reply as it stands there.
func resultOf(body []byte) string {
	n, err := wire.Parse(body)
	if err != nil || n.Get("result") == nil {
		return "{}"
	}
	return jsonvalue.Raw(n.Get("result"))
}

// forMethod answers one method in place of the simulator.
func forMethod(method string, play func(*endpoint.Call) *endpoint.Reply) func(*endpoint.Call) *endpoint.Reply {
	return func(c *endpoint.Call) *endpoint.Reply {
		if c.Method != method && method != anyMethod {
			return nil
		}
		return play(c)
	}
}

// connectsEach makes a connection for each reply.
func (sc *scenario) connectsEach(method string, status int, t *engine.Table) error {
	for _, line := range engine.Rows(t) {
		err := sc.triesConnecting(connecting{script: forMethod(method, func(c *endpoint.Call) *endpoint.Reply {
			r := answered(line[0], c)
			r.Status = status
			return r
		})})
		if err != nil {
			return err
		}
	}
	return nil
}

func (sc *scenario) connectsCut(method, how string) error {
	return sc.triesConnecting(connecting{script: forMethod(method, func(c *endpoint.Call) *endpoint.Reply {
		whole := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"success":true}}`, jsonvalue.Raw(c.JSON.Get("id")))
		switch how {
		case "never begins":
			return &endpoint.Reply{Cut: true}
		case "is cut in the middle":
			return &endpoint.Reply{Cut: true, Body: whole[:len(whole)/2]}
		}
		return &endpoint.Reply{Cut: true, Body: whole, Header: http.Header{"Content-Length": {strconv.Itoa(len(whole) + 20)}}}
	})})
}

// eachShows reads an object of every connection that was tried.
func (sc *scenario) eachShows(object string) error {
	for _, t := range sc.tests {
		sc.dest = t.d
		if err := sc.showsObject(object); err != nil {
			return err
		}
	}
	return nil
}

// eachRefusesSync makes a sync for every connection that was tried.
func (sc *scenario) eachRefusesSync(object string) error {
	for _, t := range sc.tests {
		if sc.dest = t.d; t.d.id == 0 {
			continue // the connection itself was refused
		}
		if err := sc.makesSync("id, name", rpc.OperationUpsert, object); err != nil {
			return err
		}
		if err := sc.syncIs("refused"); err != nil {
			return err
		}
	}
	sc.Proof("%s", quantity.Count(len(sc.tests), "connection"))
	return nil
}

// syncOfReplies makes a sync whose batches are of one record; the last record is
// answered as it should be, the others each with a reply of their own.
func (sc *scenario) syncOfReplies(t *engine.Table) error {
	replies := map[string]string{}
	for i, line := range engine.Rows(t) {
		replies[fmt.Sprintf("r%05d", i+1)] = line[0]
	}
	d, err := sc.connect(connecting{
		sim: SimulatorConfig{Speed: rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 8, MaximumRecordsPerSecond: 100_000}},
		script: forMethod(rpc.MethodSyncBatch, func(c *endpoint.Call) *endpoint.Reply {
			if text, bad := replies[jsonvalue.Text(c.Param("records", "0", "id"))]; bad {
				return answered(text, c)
			}
			return nil
		}),
	})
	if err != nil {
		return err
	}
	rows, err := sc.newDataset(numbered(1, len(replies)+1))
	if err != nil {
		return err
	}
	_, err = sc.newSync(d, rows, rpc.OperationUpsert, nil)
	return err
}

func (sc *scenario) destinationAnswers(method, text string) error {
	sc.dest.SetScript(forMethod(method, func(c *endpoint.Call) *endpoint.Reply { return answered(text, c) }))
	return nil
}

// latestRun is the run that ended last.
func (sc *scenario) latestRun() (*answer, error) {
	s := sc.latest()
	if len(s.runs) == 0 {
		return nil, engine.Outcome(conformance.Inconclusive, "", "no run has ended")
	}
	return s.runs[len(s.runs)-1], nil
}

// runSays looks for a text in what the API says of a failed run (spec 2.9).
func (sc *scenario) runSays(text string) error {
	a, err := sc.latestRun()
	if err != nil {
		return err
	}
	said := a.text("data", "error_code") + " " + a.text("data", "error_message") + " " + a.text("data", "error_detail")
	if !strings.Contains(strings.ToLower(said), strings.ToLower(text)) {
		sc.broken(fmt.Sprintf("error_code, error_message or error_detail with %q", text), said, a)
	}
	return sc.HeldBy("run %d", a.id("data", "id"))
}
