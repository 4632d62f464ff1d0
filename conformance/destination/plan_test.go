package destination

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

func planned(t *testing.T, e *small, opts conformance.Options) *conformance.PlanReport {
	t.Helper()
	opts.RunID = "abc"
	p, err := Plan(context.Background(), Target{Handler: e}, opts)
	require.NoError(t, err)
	require.Zero(t, e.calls[rpc.MethodSyncBatch], "a plan writes nothing")
	return p
}

func plannedCheck(t *testing.T, p *conformance.PlanReport, id string) conformance.PlannedCheck {
	t.Helper()
	i := slices.IndexFunc(p.Checks, func(c conformance.PlannedCheck) bool { return c.ID == id })
	require.GreaterOrEqual(t, i, 0, id)
	return p.Checks[i]
}

func TestPlanOfAReadOnlyRun(t *testing.T) {
	p := planned(t, newSmall(), conformance.Options{})
	require.Zero(t, p.Records)
	require.Equal(t, "100 records in a batch, 4 batches at once, 100000 records/s", p.Speed)
	require.Len(t, p.Objects, 1)
	require.False(t, p.Objects[0].Chosen)
	require.Equal(t, "email", p.Objects[0].Identifier)
	require.Equal(t, "delete batches", p.Objects[0].Cleanup)
	require.True(t, plannedCheck(t, p, "RPC-001").Runs)
	c := plannedCheck(t, p, "RES-002")
	require.False(t, c.Runs)
	require.Equal(t, "--write", c.Decider)
	require.Contains(t, p.Undecidable, "RES-002")
	require.NotContains(t, p.Undecidable, "RPC-001")
}

func TestPlanOfAWritingRun(t *testing.T) {
	e := newSmall()
	p := planned(t, e, conformance.Options{Write: true, Objects: []string{"contact"}})
	require.True(t, p.Objects[0].Chosen)
	require.Positive(t, p.Records)
	require.Len(t, p.Keys, 1)
	require.Contains(t, p.Keys[0], "contact.email = \"zz-conf-abc-")
	require.True(t, plannedCheck(t, p, "RES-002").Runs)
	require.Positive(t, plannedCheck(t, p, "RES-002").Records)
	require.Equal(t, "readback", plannedCheck(t, p, "SEM-007").Decider)
	require.Contains(t, p.Undecidable, "SEM-007")
	require.Contains(t, plannedCheck(t, p, "SEM-006").Reason, "INCONCLUSIVE")
	sum := 0
	for _, c := range p.Checks {
		sum += c.Records
	}
	require.Equal(t, sum, p.Records)

	full := planned(t, e, writing(e))
	require.Less(t, len(full.Undecidable), len(p.Undecidable))
	require.NotContains(t, full.Undecidable, "SEM-007")
	require.Contains(t, strings.Join(full.Notes, "\n"), "the test of the read-back hook writes up to 5 records")
}

// TestPlanIsNoPromiseBroken: a run sends no more than its plan announced.
func TestPlanIsNoPromiseBroken(t *testing.T) {
	e := newSmall()
	opts := writing(e)
	opts.MaxRecords = 100_000
	p := planned(t, e, opts)
	r, err := Run(context.Background(), Target{Handler: e}, opts)
	require.NoError(t, err)
	require.LessOrEqual(t, r.Records, p.Records)
	byID := map[string]conformance.PlannedCheck{}
	for _, c := range p.Checks {
		byID[c.ID] = c
	}
	for _, c := range r.Checks {
		if !byID[c.ID].Runs {
			require.Equal(t, conformance.NotRun, c.Status, c.ID)
			require.True(t, len(c.BlockedBy) > 0 || c.Decider == byID[c.ID].Decider, c.ID)
		}
	}
}

func TestPlanNotes(t *testing.T) {
	e := newSmall()
	e.operations = []string{"upsert"}
	p := planned(t, e, conformance.Options{Write: true, Objects: []string{"contact"}, MaxRecords: 10})
	notes := strings.Join(p.Notes, "\n")
	require.Contains(t, notes, "up to 10 records will stay in contact, which accepts no deletes")
	require.Contains(t, notes, "exceed --max-records 10")
	require.Equal(t, "none", p.Objects[0].Cleanup)

	p = planned(t, e, conformance.Options{Write: true, Objects: []string{"contact"}, Hooks: cleanupHook()})
	require.Equal(t, "hook", p.Objects[0].Cleanup)
	require.NotContains(t, strings.Join(p.Notes, "\n"), "will stay in")
}

func TestPlanOfASelection(t *testing.T) {
	p := planned(t, newSmall(), conformance.Options{Select: []string{"OBJ-001"}})
	require.NotEmpty(t, p.Checks)
	for _, c := range p.Checks {
		require.NotEqual(t, "SEM-", c.ID[:4])
	}
}

// TestPlanOfWhatIsNotThere: what a run would refuse, its plan refuses too.
func TestPlanOfWhatIsNotThere(t *testing.T) {
	for want, opts := range map[string]conformance.Options{
		`object "nothing" does not exist; list_objects names "contact"`: {Write: true, Objects: []string{"nothing"}},
		`fixtures.contact.nofield: contact has no field "nofield"`:      {Fixtures: map[string]conformance.Fixture{"contact": {Fields: map[string]string{"nofield": "3"}}}},
	} {
		_, err := Plan(t.Context(), Target{Handler: newSmall()}, opts)
		var usage *conformance.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, want)
	}
}

// TestPlanOfNoObjects: a list that cannot be read is judged by conform, and so the plan goes on.
func TestPlanOfNoObjects(t *testing.T) {
	e := newSmall()
	e.objects = nil
	p := planned(t, e, conformance.Options{Write: true, Objects: []string{"contact"}})
	require.Contains(t, strings.Join(p.Notes, "\n"), "list_objects names no object that can be read")
}
