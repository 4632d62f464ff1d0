// Package bench measures the goals of the toolkit and prints them as one table: load generator, simulator,
// syncs, REST service and judge. It starts the program as its users do and reads its output, and
// runs and reads the benchmarks of packages for their internals.
package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
)

// options are the flags.
type options struct {
	measure, update bool
	seconds, rounds int
}

var flags options

func init() {
	flag.BoolVar(&flags.measure, "measure", false, "measure the goals: all, or with -run Goals/NAME some")
	flag.IntVar(&flags.seconds, "seconds", 10, "how long one run takes")
	flag.IntVar(&flags.rounds, "rounds", 3, "runs of each; medians are shown")
	flag.BoolVar(&flags.update, "update", false, "write the table into docs/evidence/performance.md")
}

// TestGoals measures everything requested. A missed goal is no failure; a failed
// measurement is one, and the others are made all the same.
func TestGoals(t *testing.T) {
	if !flags.measure {
		t.Skip("make bench measures the goals")
	}
	require.Positive(t, min(flags.seconds, flags.rounds), "-seconds and -rounds are at least 1")
	require.False(t, flags.update && matrixtest.Named(), "-update writes the whole table: leave -run out")
	l := newLab(t)
	r := report{machine: thisMachine(), options: flags}
	for _, s := range sections(flags) {
		t.Run(s.name, func(t *testing.T) {
			f := figures{}
			defer func() { // also where it could not be measured: the table lists what is missing
				if t.Failed() {
					f = nil
				}
				for _, x := range s.rows {
					row, err := f.row(x, flags.rounds)
					if err != nil {
						t.Error(err)
					}
					l.say("%s, %s: %s, %s", s.name, row.goal, row.measured(), row.verdict())
					r.rows = append(r.rows, row)
				}
			}()
			s.measure(t, l, f)
		})
	}
	r.took = time.Since(l.began)
	fmt.Println(r.text())
	if flags.update {
		require.NoError(t, r.write(filepath.Join(l.root, "docs", "evidence", "performance.md")))
	}
}

// lab is the place of the measurement: the folder of the repository, a folder for
// output, the program and the peers.
type lab struct {
	root, folder, program string
	tools                 map[string]string // the peers that are there, by name
	began                 time.Time
}

func newLab(t *testing.T) *lab {
	l := &lab{root: matrixtest.Root(t), folder: t.TempDir(), began: time.Now()}
	l.program = filepath.Join(l.folder, "destkit")
	l.findPeers()
	l.say("building the program")
	// As make build makes it: the shipped program is measured.
	l.run(t, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", l.program, "./cmd/destkit")
	return l
}

// say reports progress.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(l.began).Seconds(), fmt.Sprintf(format, args...))
}

// run runs a command to its end, and gives both its outputs and the seconds of the
// processor that it took.
func (l *lab) run(t *testing.T, env []string, name string, args ...string) (text string, cpu float64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = l.root, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "run %s: %s", name, out[max(0, len(out)-2000):])
	return string(out), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}
