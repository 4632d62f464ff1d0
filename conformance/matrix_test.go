package conformance_test

import (
	"io"
	"log"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim"
)

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// benchFor builds the destination that a violation needs to show itself.
func benchFor(t *testing.T, id string) *bench {
	cfg := simConfig(id)
	switch {
	case strings.HasPrefix(id, "TLS-"):
		return overTLS(t, cfg)
	case id == "AUTH-004.2":
		first := 0
		cfg.URLSecret = destsim.URLSecret{Path: &first, Value: simSecret}
	}
	return inMemory(t, cfg)
}

// checkOf is the check that a violation is named for.
func checkOf(violation string) string {
	id, _, _ := strings.Cut(violation, ".")
	return id
}

// TestKillMatrix breaks one rule at a time: the named check fails, what else
// trips is listed with its reason, and nothing more.
func TestKillMatrix(t *testing.T) {
	for i, v := range destsim.Violations() {
		if !tenth(t, i) && !selectedByRun(t) {
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			b := benchFor(t, v.ID)
			r := b.judge(t)
			want := []string{checkOf(v.ID)}
			for _, a := range v.Also {
				want = append(want, a.ID)
				require.NotEmpty(t, a.Why, "%s also %s needs its reason", v.ID, a.ID)
			}
			require.LessOrEqual(t, len(v.Also), 4)
			got := tripped(r)
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got, "%s: %s\n%s\nproblems %v", v.ID, v.Changes, explain(r, append(got, want...)), r.Problems)
		})
	}
}

// TestEveryCheckIsKilled holds catalogue and violations together in both ways.
func TestEveryCheckIsKilled(t *testing.T) {
	cat, err := conformance.LoadCatalogue()
	require.NoError(t, err)
	killed := map[string]bool{}
	for _, v := range destsim.Violations() {
		c, ok := cat.Check(checkOf(v.ID))
		require.True(t, ok, "%s names no check", v.ID)
		require.NotEqual(t, conformance.Info, c.Level, "%s: an INFO check has no violation", v.ID)
		require.NotEmpty(t, v.Changes)
		killed[c.ID] = true
	}
	for _, c := range cat.Checks {
		require.Equal(t, c.Level != conformance.Info, killed[c.ID], "%s (%s): a check above INFO has a violation", c.ID, c.Level)
	}
}

// TestCleanMatrix judges the clean destination with every combination of
// advertised operations: never a FAIL, never a WARN.
func TestCleanMatrix(t *testing.T) {
	operations := []string{"insert", "update", "upsert", "mirror"}
	for mask := 1; mask < 16; mask++ {
		if !tenth(t, mask) && mask != 15 && mask != 4 && !selectedByRun(t) {
			continue
		}
		var ops []string
		for i, op := range operations {
			if mask&(1<<i) != 0 {
				ops = append(ops, op)
			}
		}
		t.Run(strings.Join(ops, "+"), func(t *testing.T) {
			t.Parallel()
			cfg := simConfig()
			base, err := destsim.Preset("default")
			require.NoError(t, err)
			cfg.Objects = base.Objects
			for i := range cfg.Objects {
				cfg.Objects[i].Operations = ops
			}
			r := inMemory(t, cfg).judge(t)
			require.Empty(t, tripped(r), explain(r, tripped(r)))
			require.Empty(t, r.Problems)
		})
	}
}

// selectedByRun lets one entry be run by name whatever the tier.
func selectedByRun(t *testing.T) bool {
	t.Helper()
	return strings.Contains(runFlag(), "/")
}
