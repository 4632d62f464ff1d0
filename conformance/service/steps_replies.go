package service

import (
	"fmt"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// repliesSteps are for RPLY: replies that break the protocol (spec 7.2).
func repliesSteps() []engine.Step {
	return []engine.Step{
		step(`^a client connects a destination that answers "([a-z_]+)" with each of:$`, func(sc *scenario) any { return sc.connectsEach }),
		step(`^each connection shows the object "([^"]*)"$`, func(sc *scenario) any { return sc.eachShows }),
		step(`^a sync into "([^"]*)" is refused for each connection$`, func(sc *scenario) any { return sc.eachRefusesSync }),
		step(`^a sync of a record for each of these replies to "sync_batch":$`, func(sc *scenario) any { return sc.syncOfReplies }),
		step(`^the destination answers (every|the first) "([a-z_]+)"(?: with record "([^"]*)")? with (.+)$`, func(sc *scenario) any { return sc.answersCall }),
	}
}

// connectsEach makes a connection for each reply.
func (sc *scenario) connectsEach(method string, t *engine.Table) {
	for _, line := range engine.Rows(t) {
		sc.triesConnecting(connecting{script: forMethod(method, func(c *endpoint.Call) *endpoint.Reply { return answered(line[0], c) })})
	}
}

// eachShows reads an object of every connection that was tried.
func (sc *scenario) eachShows(object string) error {
	for _, t := range sc.tests {
		a := sc.api(request{method: "GET", path: t.d.objectPath(object)})
		if a.text("data", "full_name") != object || len(jsonvalue.Items(a.at("data", "fields"))) == 0 {
			sc.broken(fmt.Sprintf("the object %q with fields", object), a.short(), a)
		}
	}
	return sc.heldBy(len(sc.tests), "connection")
}

// eachRefusesSync makes a sync for every connection that was tried.
func (sc *scenario) eachRefusesSync(object string) {
	for _, t := range sc.tests {
		if sc.dest = t.d; t.d.id == 0 {
			continue // the connection itself was refused
		}
		sc.makesSync("id, name", rpc.OperationUpsert, object)
		stop(sc.syncIs("refused"))
	}
	sc.Proof("%s", quantity.Count(len(sc.tests), "connection"))
}

// syncOfReplies makes a sync whose batches are of one record; the last record is
// answered as it should be, the others each with a reply of their own.
func (sc *scenario) syncOfReplies(t *engine.Table) {
	replies := map[string]string{}
	for i, line := range engine.Rows(t) {
		replies[fmt.Sprintf("r%05d", i+1)] = line[0]
	}
	sc.connect(connecting{
		sim: SimulatorConfig{Speed: speedOf(1, 8, 100_000)},
		script: forMethod(rpc.MethodSyncBatch, func(c *endpoint.Call) *endpoint.Reply {
			if text, bad := replies[jsonvalue.Text(c.Param("records", "0", "id"))]; bad {
				return answered(text, c)
			}
			return nil
		}),
	})
	sc.aSync(len(replies)+1, rpc.OperationUpsert)
}
