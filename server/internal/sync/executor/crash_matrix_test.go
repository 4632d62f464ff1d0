package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// crashEnv hands a child process of this test its work: it makes one run and is
// killed on the way.
const crashEnv = "DESTKIT_EXECUTOR_CRASH"

// crashWork is one run in a process that dies at a point.
type crashWork struct {
	Promise int // its place among the promises
	Place   place
	Ledger  string // a folder
	Rows    string // a file
	Run     int64
	Point   string
	At      int64 // the point's number at which the process dies
}

// do makes the run, in the child.
func (c crashWork) do() error {
	var seen atomic.Int64
	crash := func(point string) {
		if point == c.Point && seen.Add(1) == c.At {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	text, err := os.ReadFile(c.Rows)
	if err != nil {
		return err
	}
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		return err
	}
	opened, err := ledger.Open(ledger.Options{Dir: c.Ledger, Crash: crash})
	if err != nil {
		return err
	}
	o, _, err := matrixRun(context.Background(), promises()[c.Promise], c.Place, opened, rows, c.Run, crash)
	if err == nil && o.Status != api.RunCompleted {
		err = errors.New(o.Message)
	}
	return err
}

// crashRow is an operation on a destination, before anything is killed.
type crashRow struct {
	promise
	number int
	inFile bool
}

func (c crashRow) String() string {
	if c.inFile {
		return c.name + " (file)"
	}
	return c.name
}

// crashRows: append is not among the operations of a custom destination, so it goes
// to a file; swap goes to both.
func crashRows() []crashRow {
	var list []crashRow
	for i, p := range promises() {
		if p.operation != api.OperationAppend {
			list = append(list, crashRow{promise: p, number: i})
		}
		if p.operation == api.OperationAppend || p.strategy == api.MirrorSwap {
			list = append(list, crashRow{promise: p, number: i, inFile: true})
		}
	}
	return list
}

// crashPoints are all points, in the order of a run.
func crashPoints() []string {
	return slices.Concat([]string{"before-send"}, []string{
		destination.BeforeFileJournal, destination.AfterFileJournal, destination.MidFileWrite, destination.AfterFileWrite,
		destination.BeforeFileSwap, destination.AfterFileSwap,
	}, []string{"after-send"}, ledger.CrashPoints())
}

// scene is the life of one sync around a kill.
type scene struct {
	crashRow
	t      *testing.T
	to     place
	sim    *destsim.Sim
	file   string
	ledger string // its folder
	model  *model
	rows   []row
	run    int64
	was    contents // content before the run that is killed
}

// begin brings the sync to the run that is to be killed: the second one, but
// for the kills while the first rows of a sync are skipped.
func (c crashRow) begin(t *testing.T, skipping bool) *scene {
	t.Helper()
	s := &scene{crashRow: c, t: t, ledger: t.TempDir(), model: newModel(c.promise), was: contents{}}
	if c.inFile {
		s.to, s.file = inFile(t)
		s.model.swapped = c.strategy == api.MirrorSwap
	} else {
		s.to, s.sim = simulated(t, rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1_000_000})
	}
	if skipping {
		s.rows, s.run = numberedRows(1, 2500, func(id int) int { return id % 7 }), 1
		return s
	}
	s.rows, s.run = numberedRows(1, 100, func(id int) int { return id % 7 }), 1
	if c.operation == api.OperationUpdate { // there must be something to update
		s.plant()
	}
	task := s.model.expect(s.rows, matrixPairs)
	o := s.here(nil)
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	s.judge(o, task)
	s.run++
	// 40 records change, 20 go, and the new ones fill several batches.
	s.rows = append(numberedRows(1, 80, func(id int) int {
		if id <= 40 {
			return 50
		}
		return id % 7
	}), numberedRows(101, 120, func(int) int { return 9 })...)
	if c.once() {
		s.rows = append(s.rows, numberedRows(121, 160, func(int) int { return 9 })...)
	}
	return s
}

// plant gives the destination records, through a separate sync.
func (s *scene) plant() {
	opened, err := ledger.Open(ledger.Options{})
	require.NoError(s.t, err)
	o, _, err := matrixRun(s.t.Context(), promise{operation: api.OperationUpsert}, s.to, opened, numberedRows(1, 100, func(int) int { return 6 }), 1, nil)
	require.NoError(s.t, err)
	require.Equal(s.t, int64(100), o.Updated)
	s.was = s.content()
}

// here makes the run in this process.
func (s *scene) here(crash func(string)) Outcome {
	s.t.Helper()
	opened, err := ledger.Open(ledger.Options{Dir: s.ledger, Crash: crash})
	require.NoError(s.t, err)
	o, _, err := matrixRun(s.t.Context(), s.promise, s.to, opened, s.rows, s.run, crash)
	require.NoError(s.t, err)
	require.NoError(s.t, opened.Close())
	return o
}

func (s *scene) content() contents {
	if s.inFile {
		return fileContent(s.t, s.file)
	}
	return simContent(s.t, s.sim, person, matrixPairs)
}

// judge compares a run that came to its end with the model: the stored records,
// and every counter.
func (s *scene) judge(o Outcome, t *task) {
	s.t.Helper()
	want := s.applied(matrixPairs, s.was, t, s.model.keys, s.model.swapped)
	sameContent(s.t, want, s.content(), "stored")
	writes, removes := int64(len(t.write)), int64(len(t.remove))
	if t.skips {
		writes = 0
	}
	require.Equal(s.t, [8]int64{t.rows, writes, removes, t.invalid, writes + removes, writes + removes, 0, t.invalid}, counts(o), "%+v", o)
	s.model.took(t, matrixPairs)
	s.was = want
}

// passings counts how often a run that is not killed passes each point.
func (c crashRow) passings(t *testing.T, skipping bool) map[string]int64 {
	s := c.begin(t, skipping)
	seen := map[string]int64{}
	var mu sync.Mutex
	o := s.here(func(point string) {
		mu.Lock()
		defer mu.Unlock()
		seen[point]++
	})
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	return seen
}

// crashCell is one kill.
type crashCell struct {
	crashRow
	point    string
	skipping bool
	at, of   int64
	turned   bool // the source changes before the run goes on
}

func (c crashCell) String() string {
	return fmt.Sprintf("%s at %s %d of %d", c.crashRow, c.point, c.at, c.of)
}

// crashCells: each point at its first, its middle and its last passing. At the
// middle one the source is another one when the run goes on.
func crashCells(t *testing.T) []crashCell {
	var cells []crashCell
	for _, c := range crashRows() {
		ways := map[bool]map[string]int64{false: c.passings(t, false)}
		if c.skip {
			ways[true] = c.passings(t, true)
		}
		for _, point := range crashPoints() {
			for _, skipping := range []bool{false, true} {
				n := ways[skipping][point]
				at := slices.Compact([]int64{min(n, 1), (n + 1) / 2, n})
				for _, at := range at {
					if at > 0 {
						cells = append(cells, crashCell{c, point, skipping, at, n, n > 2 && at == (n+1)/2})
					}
				}
			}
		}
	}
	return cells
}

// TestCrashMatrix kills a process at each named point of each operation, goes
// on with its run in another one, and holds what the destination has and what
// the run counts against the model.
func TestCrashMatrix(t *testing.T) {
	matrixtest.NotShort(t)
	table, cells := &matrixtest.Table[int]{}, crashCells(t)
	t.Cleanup(func() {
		if *update {
			table.Write(t, "../../../../docs/evidence/crash-matrix.md", crashHead, fmt.Sprintf("\n%d cells.\n", len(cells)), len(cells))
		}
	})
	runs := sampleOf(t, cells, crashCell.String, nil)
	for i, c := range cells {
		if !runs[i] {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			table.Add(i, c.kill(t))
		})
	}
}

const crashHead = `# Crash matrix

Each cell kills the process that executes a run (kill -9) at a named point, when it passes there for the
first, a middle or the last time. Another process continues the run. Then the destination holds what the
operation promises, nothing twice, and every counter is that of an uninterrupted run; the next run has
nothing to do. "acknowledged": what the ledger held after the kill. "sent": what the resumed run sent. Where
"source" is "changed", rows were restored, removed and added between the kill and the resumption; such a run
has no counterpart to compare with, and its counters only have to add up. ` + "`make docs`" + ` writes this page.

| point | operation | killed at | source | resumed | records | verdict |
|---|---|---|---|---|---|---|
`

// kill is one cell.
func (c crashCell) kill(t *testing.T) string {
	s := c.begin(t, c.skipping)
	require.True(t, s.die(c), "the child was not killed")
	first := s.model.expect(s.rows, matrixPairs)
	opened, err := ledger.Open(ledger.Options{Dir: s.ledger})
	require.NoError(t, err)
	_, had, err := opened.Sync(7).Records(s.run, ledger.Filter{Verdict: ledger.Acknowledged}, 0, 0)
	require.True(t, err == nil || errors.Is(err, ledger.ErrNoRun), "%v", err)
	if c.turned {
		s.turn()
	}
	o, sent, err := matrixRun(t.Context(), s.promise, s.to, opened, s.rows, s.run, nil)
	require.NoError(t, err)
	require.NoError(t, opened.Close())
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	total := int64(len(first.write) + len(first.remove))
	source := "same"
	if c.turned {
		source = "changed"
		s.turned(o, first)
	} else {
		if s.model.swapped {
			require.Equal(t, int64(len(first.write)), sent, "a new table begins anew")
		} else if !first.skips {
			require.Equal(t, total-had, sent, "what was acknowledged is not sent again, everything else is")
		}
		s.judge(o, first)
	}
	s.settled()
	verdict := "nothing lost, nothing twice, counters right"
	if c.turned {
		verdict = "nothing lost, nothing twice, sums right"
	}
	return fmt.Sprintf("| %s | %s | %s of %d | %s | %d acknowledged, %d sent | %d read, %d processed, %d failed | %s |",
		c.point, c.crashRow, ordinal(c.at), c.of, source, had, sent, o.SourceRecords, o.Processed, o.Failed, verdict)
}

// die makes the run in a process that is to be killed; false where it came to its end.
func (s *scene) die(c crashCell) bool {
	rows := filepath.Join(s.t.TempDir(), "rows.json")
	require.NoError(s.t, os.WriteFile(rows, []byte(text(s.rows)), 0o600))
	child := exec.Command(os.Args[0])
	work := crashWork{Promise: c.number, Place: s.to, Ledger: s.ledger, Rows: rows, Run: s.run, Point: c.point, At: c.at}
	child.Env = append(os.Environ(), crashEnv+"="+text(work))
	before := s.to.callers.now()
	out, err := child.CombinedOutput()
	s.to.gone(s.t, before)
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	require.ErrorAs(s.t, err, &exit, "%s", out)
	require.Equal(s.t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), "%s", out)
	return true
}

// turn changes the source while the process is dead: rows in flight get their
// old values, some are removed, and others are added.
func (s *scene) turn() {
	var rows []row
	for _, r := range s.rows {
		at, _ := r.at()
		switch {
		case at <= 20:
			r = row{"id": r["id"], "level": fmt.Sprint(at % 7), "at": r["at"]}
		case at > 110 && at <= 115:
			continue
		}
		rows = append(rows, r)
	}
	s.rows = append(rows, numberedRows(201, 205, func(int) int { return 3 })...)
}

// turned judges a run that went on with another source: every valid row has
// arrived, and everything else stored comes from one of the sources.
func (s *scene) turned(o Outcome, first *task) {
	t := s.t
	require.Equal(t, o.Processed, o.Updated+o.Failed, "%+v", o)
	require.Equal(t, o.Processed, o.SourceUpdates+o.SourceDeletes, "%+v", o)
	require.LessOrEqual(t, o.Failed, int64(5), "only rows that went before their answer came: %+v", o)
	sent := maps.Clone(s.model.keys)
	for key := range first.write {
		sent[key] = known{unsure: true}
	}
	now := s.model.see(s.rows)
	now.skips = first.skips
	require.Equal(t, now.rows, o.SourceRecords)
	now.write = keySet(now.valid)
	for key, k := range s.model.keys {
		if k.sent {
			delete(now.write, key)
		}
	}
	possible := s.applied(matrixPairs, s.was, first, s.model.keys, false)
	want := s.applied(matrixPairs, s.was, now, sent, s.model.swapped)
	got := s.content()
	for key, fields := range want {
		if _, gone := s.was[key]; gone && !now.present[key] {
			continue
		}
		if s.once() { // as it was at one of the times
			require.Contains(t, []string{fields, possible[key]}, got[key], "record %s", key)
			continue
		}
		require.Equal(t, fields, got[key], "record %s", key)
	}
	for key, fields := range got {
		if s.deletes() {
			require.Contains(t, want, key, "a leftover")
			continue
		}
		require.Contains(t, []string{want[key], possible[key], s.was[key]}, fields, "record %s", key)
	}
	s.model, s.was = nil, got
}

// settled makes the next run: nothing is left to do.
func (s *scene) settled() {
	s.run++
	o := s.here(nil)
	require.Equal(s.t, api.RunCompleted, o.Status, "%+v", o)
	if s.strategy != api.MirrorSwap {
		require.Zero(s.t, o.Processed, "%+v", o)
	}
	sameContent(s.t, s.was, s.content(), "stored after one more run")
}
