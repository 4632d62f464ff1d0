package service

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// repliesSteps are for RPLY: replies that break the protocol (spec 7.2).
func repliesSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client connects a destination that answers "([a-z_]+)" with each of:$`, func(p *play) any {
			return func(method string, t *conformance.Table) error { return p.connectsEach(method, http.StatusOK, t) }
		}),
		step(`^a client connects a destination that answers "([a-z_]+)" with status (\d+) and each of:$`, func(p *play) any { return p.connectsEach }),
		step(`^a client connects a destination whose answer to "([a-z_]+)" (is cut in the middle|never begins|is shorter than its Content-Length)$`,
			func(p *play) any { return p.connectsCut }),
		step(`^each connection shows the object "([^"]*)"$`, func(p *play) any { return p.eachShows }),
		step(`^a sync into "([^"]*)" is refused for each connection$`, func(p *play) any { return p.eachRefusesSync }),
		step(`^a sync of a record for each of these replies to "sync_batch":$`, func(p *play) any { return p.syncOfReplies }),
		step(`^the destination answers "([a-z_]+)" with (.*)$`, func(p *play) any { return p.destinationAnswers }),
	}
}

// answered is a reply as it stands in a feature file: {id} is the id of the
// request as JSON, {result} the simulator's own result.
func answered(text string, c *call) *reply {
	id := rawOf(c.json.Get("id"))
	fill := func(result string) []byte {
		return []byte(strings.NewReplacer("{id}", id, "{result}", result).Replace(text))
	}
	if !strings.Contains(text, "{result}") {
		return &reply{body: fill("")}
	}
	return &reply{edit: func(body []byte, _ http.Header) []byte { return fill(resultOf(body)) }}
}

// resultOf is the result of a reply as it stands there.
func resultOf(body []byte) string {
	n, err := wire.Parse(body)
	if err != nil || n.Get("result") == nil {
		return "{}"
	}
	return rawOf(n.Get("result"))
}

// playing answers one method in place of the simulator.
func playing(method string, play func(*call) *reply) func(*call) *reply {
	return func(c *call) *reply {
		if c.method != method && method != anyMethod {
			return nil
		}
		return play(c)
	}
}

// connectsEach makes a connection for each reply.
func (p *play) connectsEach(method string, status int, t *conformance.Table) error {
	for _, line := range t.Rows() {
		err := p.triesConnecting(connecting{script: playing(method, func(c *call) *reply {
			r := answered(line[0], c)
			r.status = status
			return r
		})})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *play) connectsCut(method, how string) error {
	return p.triesConnecting(connecting{script: playing(method, func(c *call) *reply {
		whole := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"success":true}}`, rawOf(c.json.Get("id")))
		switch how {
		case "never begins":
			return &reply{cut: true}
		case "is cut in the middle":
			return &reply{cut: true, body: whole[:len(whole)/2]}
		}
		return &reply{cut: true, body: whole, header: http.Header{"Content-Length": {strconv.Itoa(len(whole) + 20)}}}
	})})
}

// eachShows reads an object of every connection that was tried.
func (p *play) eachShows(object string) error {
	for _, t := range p.tests {
		p.dest = t.d
		if err := p.showsObject(object); err != nil {
			return err
		}
	}
	return nil
}

// eachRefusesSync makes a sync for every connection that was tried.
func (p *play) eachRefusesSync(object string) error {
	for _, t := range p.tests {
		if p.dest = t.d; t.d.id == 0 {
			continue // the connection itself was refused
		}
		if err := p.makesSync("id, name", rpc.OperationUpsert, object); err != nil {
			return err
		}
		if err := p.syncIs("refused"); err != nil {
			return err
		}
	}
	p.Proof("%d connections", len(p.tests))
	return nil
}

// syncOfReplies makes a sync whose batches are of one record; the last record is
// answered as it should be, the others each with a reply of their own.
func (p *play) syncOfReplies(t *conformance.Table) error {
	replies := map[string]string{}
	for i, line := range t.Rows() {
		replies[fmt.Sprintf("r%05d", i+1)] = line[0]
	}
	d, err := p.connect(connecting{
		sim: SimulatorConfig{Speed: rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 8, MaximumRecordsPerSecond: 100_000}},
		script: playing(rpc.MethodSyncBatch, func(c *call) *reply {
			if text, bad := replies[stringOf(c.param("records", "0", "id"))]; bad {
				return answered(text, c)
			}
			return nil
		}),
	})
	if err != nil {
		return err
	}
	rows, err := p.newDataset(numbered(1, len(replies)+1))
	if err != nil {
		return err
	}
	_, err = p.newSync(d, rows, rpc.OperationUpsert, nil)
	return err
}

func (p *play) destinationAnswers(method, text string) error {
	p.dest.plays(playing(method, func(c *call) *reply { return answered(text, c) }))
	return nil
}

// latestRun is the run that ended last.
func (p *play) latestRun() (*answer, error) {
	s := p.latest()
	if len(s.runs) == 0 {
		return nil, conformance.Outcome(conformance.Inconclusive, "", "no run has ended")
	}
	return s.runs[len(s.runs)-1], nil
}

// runSays looks for a text in what the API says of a failed run (spec 2.9).
func (p *play) runSays(text string) error {
	a, err := p.latestRun()
	if err != nil {
		return err
	}
	said := a.text("data", "error_code") + " " + a.text("data", "error_message") + " " + a.text("data", "error_detail")
	if !strings.Contains(strings.ToLower(said), strings.ToLower(text)) {
		p.broken(fmt.Sprintf("error_code, error_message or error_detail with %q", text), said, a)
	}
	p.Proof("run %d", a.id("data", "id"))
	return p.Held()
}
