package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// diskFault is one way in which a disk fails.
type diskFault struct {
	name string
	on   string // the use of a file that is counted
	err  error
	some func(n int) int // how much of a write is done; nil: nothing
	ever bool            // it goes on until the run is over
}

func diskFaults() []diskFault {
	half := func(n int) int { return n / 2 }
	return []diskFault{
		{"full", ledger.FaultWrite, syscall.ENOSPC, half, true},
		{"short write", ledger.FaultWrite, syscall.EIO, half, false},
		{"failed write", ledger.FaultWrite, syscall.EIO, nil, false},
		{"failed fsync", ledger.FaultSync, syscall.EIO, nil, false},
		{"failed rename", ledger.FaultRename, syscall.EIO, nil, false},
		{"failed create", ledger.FaultCreate, syscall.EIO, nil, false},
		{"failed remove", ledger.FaultRemove, syscall.EIO, nil, false},
		{"failed truncate", ledger.FaultTruncate, syscall.EIO, nil, false},
		{"failed read", ledger.FaultRead, syscall.EIO, nil, false},
		{"read-only", "", syscall.EROFS, nil, true},
	}
}

// takes reports whether a use of a file is one of those that the fault is about.
func (f diskFault) takes(what string) bool {
	return f.on == what || f.on == "" && what != ledger.FaultRead
}

// disk counts the uses of files, and fails at one of them.
type disk struct {
	diskFault
	at   int64 // 0: never
	mu   sync.Mutex
	seen int64
}

func (d *disk) fault(what, _ string, n int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.takes(what) {
		return n, nil
	}
	if d.seen++; d.at == 0 || d.seen < d.at || d.seen > d.at && !d.ever {
		return n, nil
	}
	if d.some == nil {
		return 0, d.err
	}
	return d.some(n), d.err
}

// onDisk makes the run of a scene with the ledger on a disk, in a separate process.
func (s *scene) onDisk(d *disk) Outcome {
	s.t.Helper()
	o := ledger.Options{Dir: s.ledger}
	if d != nil {
		o.Fault = d.fault
	}
	opened, err := ledger.Open(o)
	require.NoError(s.t, err)
	ended, _, err := matrixRun(s.t.Context(), s.promise, s.to, opened, s.rows, s.run, nil)
	require.NoError(s.t, err)
	_ = opened.Close() // the run has already reported a bad disk
	if ended.Merged {
		s.to.Merged = s.run
	}
	return ended
}

// diskCell is one fault, or one harm between two runs.
type diskCell struct {
	crashRow
	fault  diskFault
	at, of int64
	harm   string // instead
	file   string
}

func (c diskCell) String() string {
	if c.harm != "" {
		return fmt.Sprintf("%s with %s %s", c.crashRow, c.file, c.harm)
	}
	return fmt.Sprintf("%s on a disk with %s %d of %d", c.crashRow, c.fault.name, c.at, c.of)
}

// The harms that are done to files of the ledger while no process has them.
var (
	diskHarms = []string{"removed", "emptied", "cut", "flipped", "of an earlier day"}
	diskFiles = []string{"state", "run-1.log", "run-2.log", "all files"}
)

func diskCells(t *testing.T) (cells []diskCell) {
	for _, c := range crashRows() {
		// A row that is appended to a file and sent again is there twice: a full sync is, after
		// acknowledgements were lost, and so is a batch that was never answered for.
		if c.inFile && c.once() {
			continue
		}
		for _, f := range diskFaults() {
			s, d := c.begin(t, false), &disk{diskFault: f}
			require.Equal(t, api.RunCompleted, s.onDisk(d).Status)
			for _, at := range slices.Compact([]int64{min(d.seen, 1), (d.seen + 1) / 2, d.seen}) {
				if at > 0 {
					cells = append(cells, diskCell{crashRow: c, fault: f, at: at, of: d.seen})
				}
			}
		}
		for _, file := range diskFiles {
			for _, harm := range diskHarms {
				if harm == "of an earlier day" == strings.HasPrefix(file, "run-") {
					continue
				}
				cells = append(cells, diskCell{crashRow: c, harm: harm, file: file})
			}
			cells = append(cells, diskCell{crashRow: c, harm: "removed", file: file})
		}
	}
	return slices.CompactFunc(cells, func(a, b diskCell) bool { return a.String() == b.String() })
}

// TestDiskMatrix has a bad disk under the ledger in each operation, or harms a file of
// it, and holds against the model what the destination has when the disk is well again.
func TestDiskMatrix(t *testing.T) {
	matrixtest.NotShort(t)
	table, cells := &matrixtest.Table[int]{}, diskCells(t)
	t.Cleanup(func() {
		if *update {
			table.Write(t, "../../../../docs/evidence/disk-matrix.md", diskHead, fmt.Sprintf("\n%d cells.\n", len(cells)), len(cells))
		}
	})
	runs := sampleOf(t, cells, diskCell.String, nil)
	for i, c := range cells {
		if !runs[i] {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			if c.harm != "" {
				table.Add(i, c.harmed(t))
			} else {
				table.Add(i, c.fails(t))
			}
		})
	}
}

const diskHead = `# Disk fault matrix

Each cell injects a disk failure under the ledger of a sync, at the first, a middle or the last use of its
kind in a run, or damages a ledger file while no process uses it. The run completes as usual, or fails and
says why. The next run, with a good disk, brings the destination to what the operation promises; the run
after that has nothing to do. After damage, the next run reports what was lost. If it no longer knows every
key, it reports that deletes are unknown; only then can a record stay that has left the source.
[disk-matrix-service.md](disk-matrix-service.md) covers the other files of a service. ` + "`make docs`" + ` writes
this page.

| disk or file | operation | at | the run | the run after it |
|---|---|---|---|---|
`

// fails is a cell with a fault in the second run.
func (c diskCell) fails(t *testing.T) string {
	s := c.begin(t, false)
	s.to.Merged = 1
	task := s.model.expect(s.rows, matrixPairs)
	o := s.onDisk(&disk{diskFault: c.fault, at: c.at})
	said := "completed"
	if o.Status != api.RunCompleted {
		require.Equal(t, CodeState, o.Code, "%+v", o)
		require.NotEmpty(t, o.Message)
		said = "failed, " + o.Code
		s.run++
		again := s.onDisk(nil)
		require.Equal(t, api.RunCompleted, again.Status, "%+v", again)
		s.was = s.applied(matrixPairs, s.was, task, s.model.keys, s.model.swapped)
	} else {
		s.was = s.applied(matrixPairs, s.was, task, s.model.keys, s.model.swapped)
		require.Zero(t, o.Failed, "%+v", o)
	}
	sameContent(t, s.was, s.content(), "stored")
	s.nothingLeft()
	return fmt.Sprintf("| %s | %s | %s of %d | %s | completed, nothing lost |", c.fault.name, c.crashRow, ordinal(c.at), c.of, said)
}

// nothingLeft makes one more run.
func (s *scene) nothingLeft() {
	s.run++
	o := s.onDisk(nil)
	require.Equal(s.t, api.RunCompleted, o.Status, "%+v", o)
	require.False(s.t, o.FullSync, "%+v", o)
	if s.strategy != api.MirrorSwap {
		require.Zero(s.t, o.Processed, "%+v", o)
	}
	sameContent(s.t, s.was, s.content(), "stored after one more run")
}

// harmed is a cell with a harm between the second run and the third.
func (c diskCell) harmed(t *testing.T) string {
	s := c.begin(t, false)
	folder := filepath.Join(s.ledger, "sync-7")
	earlier := filepath.Join(t.TempDir(), "earlier")
	require.NoError(t, os.CopyFS(earlier, os.DirFS(folder)))
	second := s.model.expect(s.rows, matrixPairs)
	o := s.onDisk(nil)
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	s.judge(o, second)
	c.harms(t, folder, earlier)
	gone := s.rows[50].key() // it leaves the source while nothing is known of it
	s.rows = slices.Delete(slices.Clone(s.rows), 50, 51)
	third := s.model.expect(s.rows, matrixPairs)
	s.run++
	o = s.onDisk(nil)
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	want := s.applied(matrixPairs, s.was, third, s.model.keys, s.model.swapped)
	got := s.content()
	if _, there := got[gone]; there && s.deletes() {
		require.Contains(t, o.FullReason, ledger.UnknownDeletes)
		want[gone] = got[gone]
	}
	sameContent(t, want, got, "stored")
	if c.file == "state" || c.file == "all files" {
		require.True(t, o.FullSync)
		require.NotEmpty(t, o.FullReason)
	} else {
		require.Empty(t, o.FullReason, "the state has it already")
	}
	s.was = want
	s.nothingLeft()
	reason := o.FullReason
	if reason == "" {
		reason = "nothing lost: the state has what it named"
	}
	return fmt.Sprintf("| %s %s | %s | before the run | completed: %s | completed, nothing lost |", c.file, c.harm, c.crashRow, reason)
}

// harms does it to the files.
func (c diskCell) harms(t *testing.T, folder, earlier string) {
	if c.file == "all files" && (c.harm == "removed" || c.harm == "of an earlier day") {
		require.NoError(t, os.RemoveAll(folder))
		if c.harm != "removed" {
			require.NoError(t, os.CopyFS(folder, os.DirFS(earlier)))
		}
		return
	}
	names := []string{c.file}
	if c.file == "all files" {
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		names = nil
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		path := filepath.Join(folder, name)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		switch c.harm {
		case "removed":
			require.NoError(t, os.Remove(path))
			continue
		case "emptied":
			text = nil
		case "cut":
			text = text[:len(text)/2]
		case "flipped":
			text[len(text)/2] ^= 16
		default:
			text, err = os.ReadFile(filepath.Join(earlier, name))
			require.NoError(t, err)
		}
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
}

// TestLogOfAnInterruptedRunIsGone: a run that has sent something and finds no log of it
// is a full sync, and reports it; one that had sent nothing is not.
func TestLogOfAnInterruptedRunIsGone(t *testing.T) {
	row := crashRows()[slices.IndexFunc(crashRows(), func(c crashRow) bool { return c.strategy == api.MirrorDeletes })]
	s := row.begin(t, false)
	s.to.Reported = 10
	o := s.onDisk(nil)
	require.True(t, o.FullSync)
	require.Equal(t, logGone, o.FullReason)
	s.run++
	s.to.Reported = 0
	o = s.onDisk(nil)
	require.False(t, o.FullSync, o.FullReason)
}
