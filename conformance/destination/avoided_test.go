package destination

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// TestWhatTheTrialAvoidsIsReported: a field that refuses every value is never passed in
// silence, and a value is not blamed for its place in a batch.
func TestWhatTheTrialAvoidsIsReported(t *testing.T) {
	ids := []string{"FLD-011", "FLD-014", "DAT-014"}
	every := func(status conformance.Status) []conformance.Status {
		return []conformance.Status{status, status, status}
	}
	has := func(a attempt) bool { _, ok := a.record["notes"]; return ok }
	var mu sync.Mutex
	nth := 0
	for _, c := range []struct {
		name   string
		refuse func(a attempt) string
		want   []conformance.Status
	}{
		{"all is taken", func(attempt) string { return "" }, every(conformance.Pass)},
		{"a name that a statement does not quote", func(a attempt) string {
			if has(a) && a.operation != "delete" {
				return `near "notes": syntax error`
			}
			return ""
		}, []conformance.Status{conformance.Fail, conformance.Inconclusive, conformance.NotRun}},
		{"a parent that must exist", func(a attempt) string {
			if has(a) && string(a.record["notes"]) != "null" {
				return "notes: no such parent"
			}
			return ""
		}, every(conformance.Inconclusive)},
		{"every second text outside ASCII", func(a attempt) string {
			if text := string(a.record["notes"]); slices.ContainsFunc([]byte(text), func(b byte) bool { return b == '\\' }) && a.operation != "delete" {
				mu.Lock()
				defer mu.Unlock()
				if nth++; nth%2 == 1 {
					return "try again"
				}
			}
			return ""
		}, []conformance.Status{conformance.Pass, conformance.Pass, conformance.NotRun}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newRefuser(c.refuse)
			r, err := Run(t.Context(), Target{Handler: e, Token: scriptToken}, conformance.Options{
				Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun, ReadbackFunc: e.readback, Serial: true, Select: ids,
			})
			require.NoError(t, err)
			for i, id := range ids {
				require.Equal(t, c.want[i], resultOf(t, r, id).Status, "%s: %s %s", id, resultOf(t, r, id).Reason, foundBy(r))
			}
		})
	}
}

// TestHiddenFieldsAreNotCompared: fixtures or the hook can declare that a field is stored in a form
// that a read-back cannot show.
func TestHiddenFieldsAreNotCompared(t *testing.T) {
	hash := json.RawMessage(`"5ebe2294ecd0e0f08eab7690d2a6ee69"`)
	for name, c := range map[string]struct {
		fixtures map[string]conformance.Fixture
		hidden   []string
		want     conformance.Status
	}{
		"nothing is said":  {nil, nil, conformance.Fail},
		"the fixtures say": {map[string]conformance.Fixture{"contact": {Hidden: []string{"notes"}}}, nil, conformance.Pass},
		"the hook says":    {nil, []string{"notes"}, conformance.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			e := newRefuser(func(attempt) string { return "" })
			r, err := Run(t.Context(), Target{Handler: e, Token: scriptToken}, conformance.Options{
				Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun, Serial: true, Select: []string{"FLD-011"}, Fixtures: c.fixtures,
				ReadbackFunc: func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
					reply, err := e.readback(ctx, q)
					for i := range reply.Records {
						if _, is := reply.Records[i].Fields["notes"]; is {
							reply.Records[i].Fields["notes"] = hash
						}
					}
					reply.Hidden = c.hidden
					return reply, err
				},
			})
			require.NoError(t, err)
			got := resultOf(t, r, "FLD-011")
			require.Equal(t, c.want, got.Status, "%s %s", got.Reason, foundBy(r))
			if c.want == conformance.Fail {
				require.Contains(t, got.Findings[0].Actual, "it looks like a hash")
				require.Contains(t, got.Findings[0].Fix, "hidden")
			}
		})
	}
}
