package service_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/testdata/violation"
)

// smoke are the checks that judge every violation besides those of its area: they show that the
// rest still works.
var smoke = []string{"TOK-008", "CALL-001", "CALL-002"}

var update = flag.Bool("update", false, "write docs/evidence/service-kill-matrix.md and docs/evidence/service-sentences.md")

const killFront = `# Kill matrix of the service suite

Each violation changes one behaviour of the reference service, in the tests. The
check that it is named for must detect it: FAIL, or WARN where the profile does not count the rule.
The table lists, with the reason, what else the same behaviour breaks in its area; the test compares
it exactly. ` + "`make docs`" + ` writes this page.`

// TestServiceKillMatrix breaks one rule at a time: the named check fails, the other checks that
// trip are listed with a reason, and nothing more.
func TestServiceKillMatrix(t *testing.T) {
	table := &matrixtest.KillTable{}
	t.Cleanup(func() {
		if *update {
			table.Write(t, "../../docs/evidence/service-kill-matrix.md", killFront, len(violation.All()))
		}
	})
	var ids []string
	for _, v := range violation.All() {
		ids = append(ids, v.ID)
	}
	runs := matrixtest.Sample(t, sharedCode, violationCells(t, ids))
	for i, v := range violation.All() {
		if !runs[i] {
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			want, also := matrixtest.Trips(t, v.ID, v.Also)
			area, _, _ := strings.Cut(v.ID, "-")
			slices.Sort(want)
			var got []string
			r := matrixtest.Steadily(t, func() (r *conformance.Report) {
				r, got = judgeViolation(t, area, v.ID)
				return r
			}, func(*conformance.Report) bool { return slices.Equal(want, got) })
			require.Equal(t, want, got, "%s: %s\n%s", v.ID, v.Changes, explain(r))
			for _, c := range r.Checks {
				if c.ID == matrixtest.CheckOf(v.ID) {
					table.Add(v.ID, v.Changes, string(c.Status), also)
				}
			}
		})
	}
}

// judgeViolation judges a service that breaks a rule with the checks of its area
// and those of the smoke set, and lists what tripped.
func judgeViolation(t *testing.T, area, id string) (*conformance.Report, []string) {
	t.Helper()
	b := serveFor(t, area+"-*", id)
	b.opts.Select = append([]string{area + "-*"}, smoke...)
	r := b.judge(t)
	got := tripped(r)
	slices.Sort(got)
	return r, got
}

// serveFor is the service that the checks of an area are judged with.
func serveFor(t *testing.T, area string, violations ...string) *bench {
	t.Helper()
	if area == impatient {
		return serveImpatient(t, violations...)
	}
	return serve(t, violations...)
}

// TestEveryCheckIsKilled: a check that nothing breaks proves nothing.
func TestEveryCheckIsKilled(t *testing.T) {
	cat := catalogueOf(t, conformance.SuiteService)
	killed := map[string]bool{}
	for _, v := range violation.All() {
		_, known := cat.Check(matrixtest.CheckOf(v.ID))
		require.True(t, known, "%s breaks no check of the catalogue", v.ID)
		require.False(t, killed[v.ID], "%s occurs twice", v.ID)
		killed[v.ID], killed[matrixtest.CheckOf(v.ID)] = true, true
		for _, a := range v.Also {
			_, known := cat.Check(a.ID)
			require.True(t, known, "%s also names %s", v.ID, a.ID)
		}
	}
	for _, c := range cat.Checks {
		require.True(t, killed[c.ID] || c.Level == conformance.Info, "nothing kills %s", c.ID)
	}
}

// explain prints the results that are not green.
func explain(r *conformance.Report) string {
	var b strings.Builder
	b.WriteString(r.Summary + "\n")
	for _, c := range r.Checks {
		if c.Status == conformance.Pass {
			continue
		}
		b.WriteString(string(c.Status) + " " + c.ID + " " + c.Reason + "\n")
		for i, f := range c.Findings {
			if i < 3 {
				b.WriteString("   expected " + f.Expected + "\n   actual " + f.Actual + "\n")
			}
		}
	}
	return b.String()
}

// sharedCode is what every cell rests on.
var sharedCode = []string{"conformance/*.go", "conformance/service/*.go", "server/", "openapi/"}

// checkCells are cells of one check each: its feature, its steps and what breaks it.
func checkCells(t *testing.T, checks []*conformance.Check) []matrixtest.Cell {
	t.Helper()
	steps := matrixtest.ReadFiles(t, "conformance/service/steps_*.go")
	violations := matrixtest.ReadFiles(t, "server/*/violation/*.go")
	cells := make([]matrixtest.Cell, len(checks))
	for i, c := range checks {
		broken := violations.Holding(`"` + c.ID)
		cells[i] = matrixtest.Cell{Name: c.ID, Files: slices.Concat([]string{"features/" + c.File}, steps.Defining(c.Steps), broken)}
	}
	return cells
}

// violationCells are cells of one violation each.
func violationCells(t *testing.T, violations []string) []matrixtest.Cell {
	t.Helper()
	cat := catalogueOf(t, conformance.SuiteService)
	byID := map[string]matrixtest.Cell{}
	for i, cell := range checkCells(t, cat.Checks) {
		byID[cat.Checks[i].ID] = cell
	}
	cells := make([]matrixtest.Cell, len(violations))
	for i, id := range violations {
		cells[i] = matrixtest.Cell{Name: id, Files: byID[matrixtest.CheckOf(id)].Files}
		require.GreaterOrEqual(t, len(cells[i].Files), 3, "%s: a feature, steps and a violation", id)
	}
	return cells
}

// TestStepsAreKnown: each step of the catalogue has one meaning.
func TestStepsAreKnown(t *testing.T) {
	b := serve(t)
	require.Empty(t, service.SuiteOf(t, b.target, b.opts).Undefined())
}

// TestMatrixNegatedClaimsFail: on the clean service the opposite of each claim is
// false, so that no claim is empty words.
func TestMatrixNegatedClaimsFail(t *testing.T) {
	cat := catalogueOf(t, conformance.SuiteService)
	b, short := serve(t), serveImpatient(t)
	suites := map[bool]*engine.Suite{false: service.SuiteOf(t, b.target, b.opts), true: service.SuiteOf(t, short.target, short.opts)}
	same := func(source string) string { return source }
	runs := matrixtest.Sample(t, sharedCode, checkCells(t, cat.Checks))
	for i, c := range cat.Checks {
		if c.Level == conformance.Info || !runs[i] {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			for _, claim := range c.Claims() {
				r := suites[strings.HasPrefix(c.ID, "TOUT-")].Try(t.Context(), c.ID, same, claim)
				require.Equal(t, conformance.Fail, r.Status, "%s: %s", claim, r.Reason)
			}
		})
	}
}

// TestAreas: the ids of a feature share their prefix, and no other feature has it:
// a violation is judged with the checks of its area.
func TestAreas(t *testing.T) {
	cat := catalogueOf(t, conformance.SuiteService)
	other := catalogueOf(t, conformance.SuiteDestination)
	areas := map[string]string{}
	for _, c := range other.Checks {
		prefix, _, _ := strings.Cut(c.ID, "-")
		areas[prefix] = c.Area
	}
	for _, c := range cat.Checks {
		prefix, _, _ := strings.Cut(c.ID, "-")
		if areas[prefix] == "" {
			areas[prefix] = c.Area
		}
		require.Equal(t, areas[prefix], c.Area, "%s shares its prefix with another feature", c.ID)
	}
}
