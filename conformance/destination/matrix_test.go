package destination_test

import (
	"flag"
	"io"
	"log"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
)

var update = flag.Bool("update", false, "write docs/evidence/kill-matrix.md")

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// stageFor is the destination that a violation needs to show itself.
func stageFor(id string) stage {
	cfg := withPathSecret(simConfig(id), id)
	if strings.HasPrefix(id, "TLS-") {
		return stage{network: true, build: func(t *testing.T) *bench { return overTLS(t, cfg) }}
	}
	return memory(func(t *testing.T) *bench { return inMemory(t, cfg) })
}

// withPathSecret moves the URL secret into the path for the one violation that
// is about it.
func withPathSecret(cfg destsim.Config, id string) destsim.Config {
	if id == "AUTH-004.2" {
		first := 0
		cfg.URLSecret = destsim.URLSecret{Path: &first, Value: simSecret}
	}
	return cfg
}

const killFront = `# Kill matrix

Each violation of the simulated destination changes one behaviour. The check that it is named for must
detect it: FAIL, or WARN where the profile does not count the rule. The table lists, with the reason,
what else the same behaviour breaks; the test compares it exactly. ` + "`make docs`" + ` writes this page.`

// TestKillMatrix breaks one rule at a time: the named check fails, the other checks that trip are
// listed with a reason, and nothing more.
func TestKillMatrix(t *testing.T) {
	t.Parallel()
	table := &matrixtest.KillTable{}
	t.Cleanup(func() {
		if *update {
			table.Write(t, "../../docs/evidence/kill-matrix.md", killFront, len(destsim.Violations()))
		}
	})
	runs := matrixtest.Sample(t, sharedCode, violationCells(t))
	for i, v := range destsim.Violations() {
		if !runs[i] {
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			want, also := matrixtest.Trips(t, v.ID, v.Also)
			r := judgeSteadily(t, want, stageFor(v.ID))
			got := tripped(r)
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got, "%s: %s\n%s\nproblems %v", v.ID, v.Changes, explain(r, append(got, want...)), r.Problems)
			table.Add(v.ID, v.Changes, string(statusOf(r, matrixtest.CheckOf(v.ID))), also)
		})
	}
}

// TestKillMatrixAxes shows every violation to its own check alone, with other
// seeds, one check at a time, over TLS, and with each combination of operations.
func TestKillMatrixAxes(t *testing.T) {
	matrixtest.NotEveryDay(t)
	t.Parallel()
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	runs := matrixtest.Sample(t, sharedCode, violationCells(t))
	for i, v := range destsim.Violations() {
		if !runs[i] {
			continue
		}
		check := matrixtest.CheckOf(v.ID)
		alone := func(name string, on stage, look func(*testing.T, *conformance.Report)) {
			t.Run(v.ID+"/"+name, func(t *testing.T) {
				t.Parallel()
				look(t, judgeSteadily(t, []string{check}, stage{network: on.network, build: func(t *testing.T) *bench {
					b := on.build(t)
					only(b, cat, check)
					return b
				}}))
			})
		}
		for _, axis := range []string{"seed 2", "seed 3", "serial", "https"} {
			alone(axis, axisStage(v.ID, axis), func(t *testing.T, r *conformance.Report) {
				require.Equal(t, []string{check}, tripped(r), "%v", r.Problems)
			})
		}
		if strings.HasPrefix(v.ID, "TLS-") {
			continue // certificates know no operations
		}
		for _, ops := range combinations() {
			cfg := withOperations(t, withPathSecret(simConfig(v.ID), v.ID), ops)
			alone(strings.Join(ops, "+"), memory(func(t *testing.T) *bench { return inMemory(t, cfg) }), func(t *testing.T, r *conformance.Report) {
				require.NotContains(t, statuses(r), conformance.HarnessError, explain(r, []string{check}))
				// An object that advertises everything has no operation to refuse.
				if len(ops) == 4 && check != "OPS-005" {
					require.Equal(t, []string{check}, tripped(r), "%s", explain(r, []string{check}))
				}
			})
		}
	}
}

func axisStage(id, axis string) stage {
	on := stageFor(id)
	build := on.build
	switch axis {
	case "https":
		on.network = true
		on.build = func(t *testing.T) *bench {
			cfg := withPathSecret(simConfig(id), id)
			if id != "PAR-004" {
				return overTLS(t, cfg)
			}
			// In real time its queue must be long compared with a handshake that a busy machine
			// slows down.
			cfg.Delays.Work *= 5
			b := overTLS(t, cfg)
			b.opts.PlanningTimeout *= 5
			return b
		}
	case "seed 2", "seed 3", "serial":
		on.build = func(t *testing.T) *bench { return along(build(t), axis) }
	}
	return on
}

// along changes the options of a judge along an axis.
func along(b *bench, axis string) *bench {
	switch axis {
	case "seed 2":
		b.opts.Seed = 2
	case "seed 3":
		b.opts.Seed = 3
	case "serial":
		b.opts.Serial = true
	}
	return b
}

// only selects one check without those that it builds on.
func only(b *bench, cat *conformance.Catalogue, id string) {
	b.opts.Select = []string{id}
	for _, c := range cat.Checks {
		if c.ID != id {
			b.opts.Skip = append(b.opts.Skip, c.ID)
		}
	}
}

func statuses(r *conformance.Report) []conformance.Status {
	var out []conformance.Status
	for _, c := range r.Checks {
		out = append(out, c.Status)
	}
	return out
}

// TestEveryCheckIsKilled holds catalogue and violations together in both ways.
func TestEveryCheckIsKilled(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	killed := map[string]bool{}
	for _, v := range destsim.Violations() {
		c, ok := cat.Check(matrixtest.CheckOf(v.ID))
		require.True(t, ok, "%s names no check", v.ID)
		require.NotEqual(t, conformance.Info, c.Level, "%s: an INFO check has no violation", v.ID)
		require.NotEmpty(t, v.Changes)
		killed[c.ID] = true
	}
	for _, c := range cat.Checks {
		require.Equal(t, c.Level != conformance.Info, killed[c.ID], "%s (%s): a check above INFO has a violation", c.ID, c.Level)
	}
}

// combinations are the 15 sets of operations that an object can advertise.
func combinations() [][]string {
	all := []string{"insert", "update", "upsert", "mirror"}
	var out [][]string
	for mask := 1; mask < 16; mask++ {
		var ops []string
		for i, op := range all {
			if mask&(1<<i) != 0 {
				ops = append(ops, op)
			}
		}
		out = append(out, ops)
	}
	return out
}

func withOperations(t *testing.T, cfg destsim.Config, ops []string) destsim.Config {
	base, err := destsim.Preset("default")
	require.NoError(t, err)
	cfg.Objects = base.Objects
	for i := range cfg.Objects {
		cfg.Objects[i].Operations = ops
	}
	return cfg
}

// TestCleanMatrix judges the clean destination along every axis: never a FAIL,
// never a WARN, nothing left behind.
func TestCleanMatrix(t *testing.T) {
	matrixtest.NotEveryDay(t)
	stages := map[string]stage{
		"https": {network: true, build: func(t *testing.T) *bench { return overTLS(t, simConfig()) }},
		// SQLite keeps its connections beyond the run.
		"sqlite": {network: true, build: func(t *testing.T) *bench {
			cfg := simConfig()
			cfg.Store = "sqlite:" + filepath.Join(t.TempDir(), "records.db")
			b := inMemory(t, cfg)
			b.opts.PlanningTimeout, b.opts.BatchTimeout = 10e9, 30e9
			return b
		}},
		"no token": memory(func(t *testing.T) *bench {
			cfg := simConfig()
			cfg.Token, cfg.URLSecret = "", destsim.URLSecret{}
			return inMemory(t, cfg)
		}),
		"skips as success":              memory(func(t *testing.T) *bench { return skipping(t, conformance.SkipSuccess) }),
		"skips as success with message": memory(func(t *testing.T) *bench { return skipping(t, conformance.SkipSuccessWithMessage) }),
	}
	for _, axis := range []string{"seed 2", "seed 3", "serial"} {
		stages[axis] = memory(func(t *testing.T) *bench { return along(inMemory(t, simConfig()), axis) })
	}
	for _, ops := range combinations() {
		stages[strings.Join(ops, "+")] = memory(func(t *testing.T) *bench { return inMemory(t, withOperations(t, simConfig(), ops)) })
	}
	names := slices.Sorted(maps.Keys(stages))
	var cells []matrixtest.Cell
	for _, name := range names {
		cells = append(cells, matrixtest.Cell{Name: name})
	}
	runs := matrixtest.Sample(t, append(sharedCode, "features/destination/"), cells)
	for i, name := range names {
		if !runs[i] && name != "insert+update+upsert+mirror" && name != "https" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := judgeOn(t, nil, stages[name])
			require.Empty(t, tripped(r), explain(r, tripped(r)))
			require.Empty(t, r.Problems)
			require.Empty(t, r.Residue.Refused)
			require.Empty(t, r.Residue.Unknown)
		})
	}
}

// skipping is a clean destination that reports skips in another way, declared
// to the judge.
func skipping(t *testing.T, convention string) *bench {
	cfg := simConfig()
	cfg.SkipConvention = convention
	b := inMemory(t, cfg)
	b.opts.SkipConvention = convention
	return b
}
