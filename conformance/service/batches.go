package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// sent is one record of a sync_batch.
type sent struct {
	call       *endpoint.Call
	operation  string
	identifier string // the text of the active identifier
	fields     map[string]json.RawMessage
}

// batchesOf are the batches of a run of a sync, from 1.
func (sc *scenario) batchesOf(s *syncing, run int) ([]*endpoint.Call, error) {
	if run > len(s.marks) {
		return nil, fmt.Errorf("the scenario has no run %d", run)
	}
	from := 0
	if run > 1 {
		from = s.marks[run-2]
	}
	return s.dest.Batches()[from:s.marks[run-1]], nil
}

// activeIdentifier names the identifier of a batch by its schema, "" where the
// plan has none.
func activeIdentifier(c *endpoint.Call) string {
	schema := c.Param("sync_plan", "schema")
	if schema == nil {
		return ""
	}
	for _, m := range schema.Members {
		if yes := m.Value.Get("active_identifier"); yes != nil && string(yes.Raw) == "true" {
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
func (sc *scenario) sentIn(run int) ([]sent, error) {
	batches, err := sc.batchesOf(sc.latest(), run)
	return unpack(batches), err
}

// runSends compares what a run sent with a table of operations and identifiers,
// each of which has to come exactly as often as it stands there.
func (sc *scenario) runSends(run int, want *wire.DataTable) error {
	got, err := sc.sentIn(run)
	if err != nil {
		return err
	}
	left := map[string]int{}
	for _, line := range want.Rows() {
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
func wording(t *wire.DataTable) string {
	var parts []string
	for _, line := range t.Rows() {
		parts = append(parts, line[0]+" "+line[1])
	}
	return strings.Join(parts, ", ")
}

// callsOf are the calls that records came with, each once.
func callsOf(records []sent) []*endpoint.Call {
	var out []*endpoint.Call
	for _, r := range records {
		if len(out) == 0 || out[len(out)-1] != r.call {
			out = append(out, r.call)
		}
	}
	return out
}
