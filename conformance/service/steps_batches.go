package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// batchSteps look at what sync_batch carries (spec 4.2, identifier rule).
func batchSteps() []engine.Step {
	return []engine.Step{
		step(`^every batch has the operation "([a-z]+)"$`, (*scenario).batchOperation),
		step(`^the batches of the sync have the one active identifier "([^"]*)"$`, (*scenario).planIdentifier),
		step(`^the batches of the sync name the sync and its run$`, (*scenario).planNamesRun),
		step(`^the batches of the sync describe fields as the destination does$`, (*scenario).planDescribes),
		step(`^the batches of the sync bring every "([a-z]+)" once$`, (*scenario).recordsAreIdentified),
		step(`^every record of every batch carries the one identifier of its plan$`, (*scenario).identifiersStand),
	}
}

// latestBatches are the batches of the sync that was made last.
func (sc *scenario) latestBatches() []*endpoint.Call {
	var out []*endpoint.Call
	own := strconv.FormatInt(sc.latest().id, 10)
	for _, c := range sc.dest.Batches() {
		// Whether the id is a number is the business of another check.
		if id := c.Param("sync_plan", "sync_id"); id == nil || strings.Trim(jsonvalue.Raw(id), `"`) == own {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		undecided("the sync has sent no batch")
	}
	return out
}

// ofBatches asks a question about every batch of the sync: what is expected and
// what is there, "" for what is well.
func (sc *scenario) ofBatches(ask func(c *endpoint.Call) (expected, actual string)) error {
	calls := sc.latestBatches()
	for _, c := range calls {
		if expected, actual := ask(c); expected != "" {
			sc.brokenCall(expected, actual, c)
		}
	}
	return sc.heldBy(len(calls), "batch")
}

func (sc *scenario) batchOperation(operation string) error {
	return sc.ofBatches(func(c *endpoint.Call) (string, string) {
		if got := c.Param("sync_plan", "operation"); jsonvalue.Text(got) != operation {
			return fmt.Sprintf("sync_plan.operation %q", operation), jsonvalue.Raw(got)
		}
		return "", ""
	})
}

// planNamesRun compares the numbers with those that the API gives.
func (sc *scenario) planNamesRun() error {
	s := sc.latest()
	known := map[string]bool{}
	for _, run := range s.runs {
		known[fmt.Sprint(run.id("data", "id"))] = true
	}
	sync := fmt.Sprint(s.id)
	return sc.ofBatches(func(c *endpoint.Call) (string, string) {
		if got := c.Param("sync_plan", "sync_id"); jsonvalue.Raw(got) != sync {
			return "sync_id " + sync + ", the id of the sync", jsonvalue.Raw(got)
		}
		if got := c.Param("sync_plan", "sync_run_id"); !known[jsonvalue.Raw(got)] {
			return "a sync_run_id that is the id of a run of the sync", jsonvalue.Raw(got)
		}
		return "", ""
	})
}

// planDescribes compares the schema with what list_fields was answered.
func (sc *scenario) planDescribes() error {
	stated := map[string]*wire.Node{}
	for _, f := range thingFields() {
		stated[f.APIName] = jsonvalue.MustParse(f)
	}
	return sc.ofBatches(func(c *endpoint.Call) (string, string) { return describes(c, stated) })
}

// describes compares the schema of a batch with what list_fields was answered.
func describes(c *endpoint.Call, stated map[string]*wire.Node) (expected, actual string) {
	for _, m := range jsonvalue.Members(c.Param("sync_plan", "schema")) {
		field := m.Value.Get("field")
		if want := stated[m.Name]; want != nil && !jsonvalue.SameValue(field, want) {
			return fmt.Sprintf("schema.%s.field as list_fields has it: %s", m.Name, jsonvalue.Raw(want)), jsonvalue.Raw(field)
		}
	}
	return "", ""
}

func (sc *scenario) planIdentifier(name string) error {
	return sc.ofBatches(func(c *endpoint.Call) (string, string) {
		active := activeIdentifiers(c)
		if len(active) != 1 || active[0] != name {
			return fmt.Sprintf("active_identifier true at %q alone, false at the others", name), fmt.Sprintf("true or no boolean at %q", active)
		}
		return "", ""
	})
}

// activeIdentifiers are the fields of a plan that it marks, or does not deny, as such.
func activeIdentifiers(c *endpoint.Call) []string {
	var active []string
	for _, m := range jsonvalue.Members(c.Param("sync_plan", "schema")) {
		if is, ok := m.Value.Get("active_identifier").Bool(); is || !ok {
			active = append(active, m.Name)
		}
	}
	return active
}

// recordsAreIdentified looks for the identifier in every record; within a run none
// comes twice where nothing has failed.
func (sc *scenario) recordsAreIdentified(field string) error {
	seen := map[string]bool{}
	return sc.ofBatches(func(c *endpoint.Call) (string, string) {
		for _, r := range c.Records() {
			id := r.Get(field)
			if !id.Is(wire.String) || id.Text == "" {
				return "a record with " + field, jsonvalue.Raw(r)
			}
			if seen[id.Text] {
				return "every " + field + " once", id.Text + " twice"
			}
			seen[id.Text] = true
		}
		return "", ""
	})
}

// identifiersStand looks for the one active identifier of each plan, and for its
// value in each record (spec 4.2).
func (sc *scenario) identifiersStand() error {
	return sc.ofBatches(func(c *endpoint.Call) (string, string) {
		if active := activeIdentifiers(c); len(active) != 1 {
			return "one active identifier in the schema of the plan", fmt.Sprintf("%q", active)
		}
		return identified(c)
	})
}

// sent is one record of a sync_batch.
type sent struct {
	call       *endpoint.Call
	operation  string
	identifier string // the text of the active identifier
	fields     map[string]json.RawMessage
}

// batchesOf are the batches of a run of a sync, from 1.
func (sc *scenario) batchesOf(s *syncing, run int) []*endpoint.Call {
	if run > len(s.marks) {
		stop(fmt.Errorf("the scenario has no run %d", run))
	}
	from := 0
	if run > 1 {
		from = s.marks[run-2]
	}
	return s.dest.Batches()[from:s.marks[run-1]]
}

// activeIdentifier names the identifier of a batch by its schema, "" where the
// plan has none.
func activeIdentifier(c *endpoint.Call) string {
	for _, m := range jsonvalue.Members(c.Param("sync_plan", "schema")) {
		if isTrue(m.Value.Get("active_identifier")) {
			return m.Name
		}
	}
	return ""
}

// unpack gives the records of batches in the order of their arrival.
func unpack(batches []*endpoint.Call) []sent {
	var out []sent
	for _, c := range batches {
		field := activeIdentifier(c)
		for _, r := range c.Records() {
			one := sent{call: c, operation: jsonvalue.Text(c.Param("sync_plan", "operation")), fields: map[string]json.RawMessage{}}
			for _, m := range r.Members {
				one.fields[m.Name] = m.Value.Raw
			}
			one.identifier = textOf(one.fields[field])
			out = append(out, one)
		}
	}
	return out
}

// sentIn are the records of a run.
func (sc *scenario) sentIn(run int) []sent {
	return unpack(sc.batchesOf(sc.latest(), run))
}

// runSends compares what a run sent with a table of operations and identifiers,
// each of which has to come exactly as often as it stands there.
func (sc *scenario) runSends(run int, want *engine.Table) error {
	got := sc.sentIn(run)
	left := map[string]int{}
	for _, line := range engine.Rows(want) {
		for _, id := range strings.Fields(line[1]) {
			left[line[0]+" "+id]++
		}
	}
	for _, r := range got {
		key := r.operation + " " + r.identifier
		if left[key]--; left[key] < 0 {
			sc.brokenCall(fmt.Sprintf("run %d sends %s", run, wording(want)), fmt.Sprintf("it also sends %s (or sends it more often)", key), r.call)
		}
	}
	var missing []string
	for key, n := range left {
		if n > 0 {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		sc.brokenCall(fmt.Sprintf("run %d sends %s", run, wording(want)), "it does not send "+strings.Join(missing, ", "), callsOf(got)...)
	}
	return sc.HeldBy("run %d: %s", run, quantity.Count(len(got), "record"))
}

// wording of a table of operations.
func wording(t *engine.Table) string {
	return strings.Join(lists.Of(engine.Rows(t), func(line []string) string { return line[0] + " " + line[1] }), ", ")
}

// callsOf are the calls that records came with, each once.
func callsOf(records []sent) []*endpoint.Call {
	return slices.Compact(lists.Of(records, func(r sent) *endpoint.Call { return r.call }))
}
