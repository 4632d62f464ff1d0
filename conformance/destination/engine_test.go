package destination

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/destsim/rpc"
)

// chained are checks that build on each other: B on A, C on B, D on nothing. B
// sees what A sees, C something else.
const chained = healthCheck + `
  @BBB-001 @must @spec @needs-AAA-001
  Scenario: builds on A and sees the same
    When the service calls "test_connection"
    Then every reply has a result

  @CCC-001 @must @spec @needs-BBB-001
  Scenario: builds on B
    When the service calls "list_objects"
    Then every reply has a result

  @DDD-001 @must @spec
  Scenario: builds on nothing
    When the service calls "list_objects"
    Then every reply has a result
`

// TestWhatFollowsIsFolded: a check that fails in the same way as one that it builds
// on is folded under it; one that fails in another way, or not at all, is reported.
func TestWhatFollowsIsFolded(t *testing.T) {
	e := newSmall()
	e.answer = func(method string, nth int, _ []byte) string {
		if method == rpc.MethodTestConnection && nth > 1 { // the first is that of the preflight
			return `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"down"}}`
		}
		return ""
	}
	broken := strings.Replace(chained, `Then every result of test_connection has a boolean "success"`, "Then every reply has a result", 1)
	r := judged(t, e, broken, conformance.Options{})
	require.Equal(t, conformance.Fail, resultOf(t, r, "AAA-001").Status)
	got := resultOf(t, r, "BBB-001")
	require.Equal(t, conformance.NotRun, got.Status)
	require.Equal(t, []string{"AAA-001"}, got.BlockedBy)
	require.Equal(t, "blocked by AAA-001", got.Reason)
	require.Contains(t, strings.Join(got.Notes, "\n"), "seen here as well: ")
	require.Contains(t, strings.Join(got.Notes, "\n"), "down")
	require.Equal(t, conformance.Pass, resultOf(t, r, "CCC-001").Status, "it was judged, since its own evidence could be had")
	require.Equal(t, conformance.Pass, resultOf(t, r, "DDD-001").Status)
	require.Equal(t, []string{"AAA-001"}, r.Failed)
	require.Equal(t, []string{"BBB-001"}, r.Undecided)

	listless := func(method string, nth int, body []byte) string {
		if method == rpc.MethodListObjects && nth > 1 {
			return `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"not now"}}`
		}
		return ""
	}
	first := e.answer
	e = newSmall()
	e.answer = func(method string, nth int, body []byte) string {
		return first(method, nth, body) + listless(method, nth, body)
	}
	r = judged(t, e, broken, conformance.Options{})
	require.Equal(t, conformance.Fail, resultOf(t, r, "CCC-001").Status, "another symptom is another defect")
	require.ElementsMatch(t, []string{"AAA-001", "CCC-001", "DDD-001"}, r.Failed)
}

// failing answers the given calls of test_connection wrongly. The first call is
// that of the preflight.
func failing(calls ...int) *small {
	e := newSmall()
	e.answer = func(method string, nth int, body []byte) string {
		if slices.Contains(calls, nth) {
			return sayNothing(method, nth, body)
		}
		return ""
	}
	return e
}

func TestSecondRunNeverAcquits(t *testing.T) {
	tagged := func(tags string) string { return strings.Replace(healthCheck, "@must @spec", tags, 1) }
	cases := []struct {
		name   string
		tags   string
		calls  []int // that fail
		strict bool
		want   conformance.Status
		tries  int
		exit   int
	}{
		{"never", "@must @spec", nil, false, conformance.Pass, 1, 0},
		{"twice", "@must @spec", []int{2, 3}, false, conformance.Fail, 2, 1},
		{"once", "@must @spec", []int{2}, false, conformance.Flaky, 2, 1},
		{"twice where time may be to blame", "@must @spec @acquit", []int{2, 3}, false, conformance.Fail, 2, 1},
		{"once where time may be to blame", "@must @spec @acquit", []int{2}, false, conformance.Warn, 2, 0},
		{"once where time may be to blame, strictly", "@must @spec @acquit", []int{2}, true, conformance.Warn, 2, 0},
		{"once below the gate", "@should @spec", []int{2}, false, conformance.Warn, 2, 0},
		{"twice below the gate", "@should @spec", []int{2, 3}, false, conformance.Warn, 2, 0},
		{"twice below the gate, strictly", "@should @spec", []int{2, 3}, true, conformance.Fail, 2, 1},
		{"once below the gate, strictly", "@should @spec", []int{2}, true, conformance.Flaky, 2, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			opts := conformance.Options{}
			if c.strict {
				opts.Profile = conformance.ProfileStrict
			}
			e := failing(c.calls...)
			r := judged(t, e, tagged(c.tags), opts)
			got := resultOf(t, r, "AAA-001")
			require.Equal(t, c.want, got.Status)
			require.Equal(t, c.tries, got.Attempts)
			require.Equal(t, 1+c.tries, e.calls[rpc.MethodTestConnection])
			require.Equal(t, c.exit, r.ExitStatus)
			if c.want != conformance.Pass {
				require.NotEmpty(t, got.Findings, "the first failure stays in the report")
				require.NotEmpty(t, got.Reason)
			}
		})
	}
}

func TestSerialRunsOneCheckAtATime(t *testing.T) {
	most := func(serial bool) (int64, []string) {
		var now, most atomic.Int64
		var order []string
		synctest.Test(t, func(t *testing.T) {
			e := newSmall()
			e.before = func(string) { // every call takes a second
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
			}
			r := judged(t, e, chained, conformance.Options{Serial: serial, Progress: func(p conformance.Progress) { order = append(order, p.Result.ID) }})
			require.Equal(t, 0, r.ExitStatus)
		})
		return most.Load(), order
	}
	alone, order := most(true)
	require.EqualValues(t, 1, alone)
	require.Equal(t, []string{"AAA-001", "BBB-001", "CCC-001", "DDD-001"}, order)
	together, _ := most(false)
	require.Greater(t, together, int64(1))
}

func TestProgressCountsEveryCheck(t *testing.T) {
	var done []int
	total := 0
	judged(t, failing(2), chained, conformance.Options{Progress: func(p conformance.Progress) { done, total = append(done, p.Done), p.Total }})
	require.Equal(t, []int{1, 2, 3, 4}, done)
	require.Equal(t, 4, total)
}

func TestPermissions(t *testing.T) {
	e := newSmall()
	there := conformance.HookSpec{URL: "http://destination.test/hook"}
	writes := conformance.Options{Write: true, Objects: []string{"contact"}}
	reads := writing(e)
	cases := []struct {
		name    string
		check   conformance.Check
		opts    conformance.Options
		decider string // "" when it may run
	}{
		{"a reading check", conformance.Check{}, conformance.Options{}, ""},
		{"writes", conformance.Check{Conditions: conformance.Conditions{Write: true}}, conformance.Options{}, "--write"},
		{"writes, permitted", conformance.Check{Conditions: conformance.Conditions{Write: true}}, writes, ""},
		{"optional writes", conformance.Check{Conditions: conformance.Conditions{WriteOptional: true}}, conformance.Options{}, ""},
		{"read-back", conformance.Check{Conditions: conformance.Conditions{Write: true, ReadbackRequired: true}}, writes, "readback"},
		{"read-back, there", conformance.Check{Conditions: conformance.Conditions{Write: true, ReadbackRequired: true}}, reads, ""},
		{"read-back that only helps", conformance.Check{Conditions: conformance.Conditions{Write: true, ReadbackDecides: true}}, writes, ""},
		{"hook", conformance.Check{Conditions: conformance.Conditions{Hook: "restart"}}, conformance.Options{}, "hook restart"},
		{"another hook", conformance.Check{Conditions: conformance.Conditions{Hook: "restart"}}, conformance.Options{Hooks: conformance.Hooks{RotateToken: there}}, "hook restart"},
		{"hook, there", conformance.Check{Conditions: conformance.Conditions{Hook: "restart"}}, conformance.Options{Hooks: conformance.Hooks{Restart: there}}, ""},
		{"load", conformance.Check{Conditions: conformance.Conditions{Load: true}}, conformance.Options{}, "--load"},
		{"load, permitted", conformance.Check{Conditions: conformance.Conditions{Load: true}}, conformance.Options{Load: true}, ""},
		{"probe", conformance.Check{Conditions: conformance.Conditions{Probe: true}}, conformance.Options{}, "--probe-plain-http"},
		{"probe, permitted", conformance.Check{Conditions: conformance.Conditions{Probe: true}}, conformance.Options{ProbePlainHTTP: 80}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := prepared(t, e, healthCheck, c.opts)
			err := s.Permitted(&c.check)
			if c.decider == "" {
				require.NoError(t, err)
				return
			}
			status, reason, decider := engine.Decided(err)
			require.Equal(t, conformance.NotRun, status)
			require.Equal(t, c.decider, decider)
			require.NotEmpty(t, reason)
		})
	}
}

func TestWaiversThatSayNothingAreRefused(t *testing.T) {
	cases := []struct {
		w    conformance.Waiver
		want string
	}{
		{conformance.Waiver{Reason: "r"}, "waiver 1 needs a check and a reason"},
		{conformance.Waiver{Check: "RES-002"}, "waiver 1 needs a check and a reason"},
		{conformance.Waiver{Check: "RES-002", Reason: "r", Until: "2026-2-3"}, "use YYYY-MM-DD"},
		{conformance.Waiver{Check: "RES-002", Reason: "r", Until: "2026-02-30"}, "use YYYY-MM-DD"},
	}
	for _, c := range cases {
		_, err := Run(context.Background(), Target{Handler: newSmall()}, conformance.Options{Waivers: []conformance.Waiver{c.w}})
		requireUsage(t, err, c.want)
	}
}

// TestWaivedRun: a waived check still runs; its failure does not gate, and when
// it is gone the waiver is in the way.
func TestWaivedRun(t *testing.T) {
	waivers := []conformance.Waiver{{Check: "AAA-001", Reason: "fixed in the next release", Until: "2000-01-01"}}
	synctest.Test(t, func(t *testing.T) { // the clock of the bubble starts at 2000-01-01
		e := newSmall()
		e.answer = sayNothing
		run := func() *conformance.Report {
			s := prepared(t, e, healthCheck, conformance.Options{Waivers: waivers})
			defer s.Close()
			r, err := s.run(t.Context())
			require.NoError(t, err)
			return r
		}
		time.Sleep(24*time.Hour - time.Minute) // the last day ends
		r := run()
		require.Equal(t, conformance.Waived, resultOf(t, r, "AAA-001").Status)
		require.Zero(t, r.ExitStatus, "%v", r.Problems)
		require.NotEmpty(t, resultOf(t, r, "AAA-001").Findings)

		time.Sleep(time.Minute)
		r = run()
		require.Equal(t, conformance.Fail, resultOf(t, r, "AAA-001").Status)
		require.Equal(t, 1, r.ExitStatus)
		require.ElementsMatch(t, []string{"waiver", "gate"}, problemKinds(r))
	})
	r := judged(t, newSmall(), healthCheck, conformance.Options{Waivers: []conformance.Waiver{{Check: "AAA-001", Reason: "r"}}})
	require.Equal(t, conformance.Pass, resultOf(t, r, "AAA-001").Status)
	require.Equal(t, 4, r.ExitStatus)
}

// sayNothing answers test_connection without its "success".
func sayNothing(method string, _ int, _ []byte) string {
	if method == "test_connection" {
		return `{"jsonrpc":"2.0","id":$ID,"result":{}}`
	}
	return ""
}

func TestSelectionsThatAreMistakes(t *testing.T) {
	cases := []struct {
		name      string
		sel, skip []string
		want      string
	}{
		{"unknown id", []string{"RES-999"}, nil, `--select "RES-999" matches no check`},
		{"a good and an unknown one", []string{"RES-002", "XYZ-*"}, nil, `--select "XYZ-*" matches no check`},
		{"lower case", []string{"res-002"}, nil, "matches no check"},
		{"empty", []string{""}, nil, "matches no check"},
		{"no pattern", []string{"RES-[0"}, nil, "is not a pattern"},
		{"unknown skip", nil, []string{"RES-999"}, `--skip "RES-999" matches no check`},
		{"skip is no pattern", nil, []string{"[-]"}, "is not a pattern"},
		{"everything is skipped", nil, []string{"*"}, "nothing is selected"},
		{"the selection is skipped", []string{"OBJ-001"}, []string{"OBJ-001"}, "nothing is selected"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := newSmall()
			opts := conformance.Options{Select: c.sel, Skip: c.skip}
			_, err := Run(context.Background(), Target{Handler: e}, opts)
			requireUsage(t, err, c.want)
			_, err = Plan(context.Background(), Target{Handler: e}, opts)
			requireUsage(t, err, c.want)
			require.Empty(t, e.calls, "nothing is sent before the selection is understood")
		})
	}
}

func TestTiers(t *testing.T) {
	e := newSmall()
	every := conformance.HookSpec{URL: "http://destination.test/hook"}
	hooks := conformance.Hooks{Cleanup: every, Restart: every, AlterSchema: every, BreakDownstream: every, RotateToken: every}
	cases := map[conformance.Tier]conformance.Options{
		conformance.TierProtocol:   {},
		conformance.TierResults:    {Write: true, Objects: []string{"contact"}},
		conformance.TierSemantics:  {Write: true, Objects: []string{"contact"}, ReadbackFunc: e.readback, Load: true},
		conformance.TierOperations: {Write: true, Objects: []string{"contact"}, ReadbackFunc: e.readback, Load: true, Hooks: hooks},
	}
	for want, opts := range cases {
		s := prepared(t, e, healthCheck, opts)
		require.Equal(t, want, s.tier())
	}
}
