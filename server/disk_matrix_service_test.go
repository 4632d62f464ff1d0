package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
)

const (
	diskPage = "../docs/evidence/disk-matrix-service.md"
	diskHead = `# Disk fault matrix of the service

Each cell damages one file of a service, or removes free space or the right to write, and performs the
operation that reads or writes the file: the database, its log, the checksum of its last stop, the
journal of a file that rows are appended to, backups and snapshots. The ledger has
[its own matrix](disk-matrix.md). Refused: an error names the file or its folder and the remedy, and
every file is unchanged. The test then applies the remedy, every response of the API is as before, and
the next run brings the destination to what the operation promises; an audit confirms it. ` + "`make docs`" + `
writes this page.

SQLite pages have no checksums, so two kinds of damage are not detected: a changed byte within a value
of a database whose process was killed or is running; and a truncated log of a killed process, which
looks like the incomplete end that a kill can leave (if a run was in the lost part, the ledger misses
it and the start is refused). A backup is compared with its own checksum.

| file | harm | operation | outcome |
|---|---|---|---|
`
)

// diskCellOfService is one harm to one file in one operation. run asserts the outcome.
type diskCellOfService struct {
	file, harm, operation, outcome string
	run                            func(t *testing.T)
}

func (c diskCellOfService) String() string { return c.file + "/" + c.harm + "/" + c.operation }

func (c diskCellOfService) line() string {
	return fmt.Sprintf("| %s | %s | %s | %s |", c.file, c.harm, c.operation, c.outcome)
}

// TestDiskMatrixOfTheService damages the service's files other than the ledger: each
// damage is refused or recovered from, and reported.
func TestDiskMatrixOfTheService(t *testing.T) {
	matrixtest.NotShort(t)
	var cells []diskCellOfService
	for _, some := range [][]diskCellOfService{storeCells(), servedCells(), logCells(), copyCells(), journalCells(), roomCells(), beneathCells()} {
		cells = append(cells, some...)
	}
	table := &matrixtest.Table[int]{}
	page, err := os.ReadFile(diskPage)
	require.True(t, err == nil || *updateLedger, "run with -update: %v", err)
	t.Cleanup(func() {
		if *updateLedger {
			table.Write(t, diskPage, diskHead, fmt.Sprintf("\n%d cells.\n", len(cells)), len(cells))
		}
	})
	var list []matrixtest.Cell
	for _, c := range cells {
		list = append(list, matrixtest.Cell{Name: c.String()})
	}
	runs := matrixtest.Sample(t, []string{"server/internal/store/", "server/internal/sync/ledger/"}, list)
	for i, c := range cells {
		if !runs[i] {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.run(t)
			table.Add(i, c.line())
			if !*updateLedger {
				require.Contains(t, string(page), c.line()+"\n", "run with -update")
			}
		})
	}
	if matrixtest.Whole() && !*updateLedger && len(roomCells()) > 0 {
		require.Contains(t, string(page), fmt.Sprintf("\n%d cells.\n", len(cells)), "run with -update")
	}
}

// diskWorld is a service in a directory that was stopped after two days, and is harmed.
type diskWorld struct {
	*inPlace
	earlier string // the directory as it was a day before
	look    string // what the API shows
}

// newDiskWorld makes a sync with this operation, which has run on both days.
func newDiskWorld(t *testing.T, operation string) *diskWorld {
	t.Helper()
	return newDiskWorldIn(t, operation, t.TempDir())
}

func newDiskWorldIn(t *testing.T, operation, folder string) *diskWorld {
	t.Helper()
	dir := filepath.Join(folder, "data")
	w := &diskWorld{inPlace: &inPlace{newSyncWorld(t, func(c *Config) { c.Dir, c.MasterKey = dir, bytes.Repeat([]byte{7}, 32) }), dir, 0}}
	if operation == "update" { // it changes existing rows, and adds nothing
		w.batch(rpc.OperationInsert, map[string]any{"email": "ada@example.com", "last_name": "x"}, map[string]any{"email": "grace@example.com", "last_name": "x"},
			map[string]any{"email": "alan@example.com", "last_name": "x"}, map[string]any{"email": "mary@example.com", "last_name": "x"})
	}
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace')`)
	w.id = w.kept(map[string]any{"operation": operation}).id("data.id")
	w.runAndAudit()
	w.stop()
	w.earlier = filepath.Join(t.TempDir(), "earlier")
	copyTree(t, w.dir, w.earlier)
	require.NoError(t, w.start())
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (3, 'alan@example.com', 'Alan')`)
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Acknowledged"}).want(201)
	w.runAndAudit()
	w.look = worldOf(w.world)
	return w
}

// runAndAudit has the sync run, and an audit find nothing.
func (w *diskWorld) runAndAudit() {
	w.t.Helper()
	ended := w.oneRun(w.id).ended("completed")
	require.Zero(w.t, ended.id("data.records_failed"), string(ended.text))
	flawless(w.t, w.audits(w.id, nil))
}

// whole asserts that nothing acknowledged is lost, and that the sync goes on.
func (w *diskWorld) whole() {
	w.t.Helper()
	same(w.t, w.look, worldOf(w.world))
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (4, 'mary@example.com', 'Mary')`)
	w.runAndAudit()
}

// starts opens the directory again, and asserts that it is whole.
func (w *diskWorld) starts() {
	w.t.Helper()
	require.NoError(w.t, w.start())
	w.whole()
}

// refusedStart asserts that a start is refused with these words and changes nothing.
func (w *diskWorld) refusedStart(says string) {
	w.t.Helper()
	before := files(w.t, w.dir)
	err := w.start()
	require.ErrorContains(w.t, err, says)
	require.ErrorContains(w.t, err, w.dir)
	after := files(w.t, w.dir)
	for path, text := range before {
		if strings.HasSuffix(path, "-shm") { // SQLite creates it again
			continue
		}
		now, there := after[path]
		require.True(w.t, there, "%s is gone", path)
		require.True(w.t, text == now, "%s was changed", path)
	}
}
