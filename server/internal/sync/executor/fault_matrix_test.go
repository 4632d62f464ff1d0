package executor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// The sizes of the fault matrix; the second for faults with commit phases.
const (
	fewRecords  = 2_000
	manyRecords = 20_000
)

// column is an operation on a destination of the fault matrix.
type column struct {
	promise
	sheet bool
}

func (c column) String() string {
	if c.sheet {
		return c.name + " (sheet)"
	}
	return c.name
}

// large reports the operations that meet faults with the larger number too. A
// sheet is filled like any other destination, so append alone is enough of it.
func (c column) large() bool { return !c.sheet || c.operation == api.OperationAppend && !c.skip }

// columns: append goes to an emulated type, since a custom destination does not
// take it, and swap to both.
func columns() []column {
	var list []column
	for _, p := range promises() {
		// A moment is not among the columns of the sheet, so that append goes over
		// the protocol, as inserts.
		if p.operation != api.OperationAppend || p.highWater {
			list = append(list, column{p, false})
		}
		if p.operation == api.OperationAppend && !p.highWater || p.strategy == api.MirrorSwap {
			list = append(list, column{p, true})
		}
	}
	return list
}

// faultCell is one fault in one operation.
type faultCell struct {
	faultCase
	column
	records int
}

func faultCells() []faultCell {
	var cells []faultCell
	for _, c := range columns() {
		for _, f := range faultCases(c.sheet) {
			if !f.deletes || c.deletes() && !c.sheet {
				cells = append(cells, faultCell{f, c, fewRecords})
			}
			if f.many && c.large() && (!f.deletes || c.deletes()) {
				cells = append(cells, faultCell{f, c, manyRecords})
			}
		}
	}
	return cells
}

// TestFaultMatrix lets every fault of the simulator meet every operation. The run repairs it,
// or reports exactly what failed, and the next run, without the fault, repairs that; the model
// compares the stored records after each of them.
func TestFaultMatrix(t *testing.T) {
	matrixtest.NotShort(t)
	table := &faultTable{cells: map[string]map[string]string{}}
	t.Cleanup(func() { table.finish(t) })
	cells := faultCells()
	runs := sampleOf(t, cells, faultCell.title, faultFiles(t))
	for i, c := range cells {
		if !runs[i] {
			continue
		}
		matrixtest.RunCell(t, c.title(), func(t *testing.T) {
			table.add(c, c.meet(t))
		})
	}
}

// TestTheFaultMatrixHasEveryKind holds the matrix and the simulator together.
func TestTheFaultMatrixHasEveryKind(t *testing.T) {
	var kinds []string
	for _, k := range destsim.FaultKinds() {
		kinds = append(kinds, k.Name)
	}
	slices.Sort(kinds)
	require.Equal(t, kinds, kindsOf(faultCases(false)))
}

// meet is one cell.
func (c faultCell) meet(t *testing.T) string {
	deadline := time.Minute
	if c.late {
		deadline = batchDeadline(c.sheet)
	}
	s := newFaultScene(t, c.promise, c.sheet, c.records, deadline)
	s.begin(c.records)
	was := s.content()
	task := s.model.expect(s.rows, s.pairs)
	want := s.p.applied(s.pairs, was, task, s.model.keys, s.model.swapped)
	id, err := s.sim.ArmFault(c.fitted())
	require.NoError(t, err)
	o := s.sync()
	require.Empty(t, s.sim.UnfiredFaults(), "the fault never fired, so nothing was tested")
	lost := s.said(o, task, was, want)
	said := c.outcome(t, o, lost)
	require.NoError(t, s.sim.DisarmFault(id))
	if !c.lies {
		require.Empty(t, lost, "acknowledged, and not stored")
	}
	return said + s.repair(task, want, lost)
}

// fitted is the fault in the words of the destination: the object and the field
// that it has, and an operation that is not the one in use.
func (c faultCell) fitted() destsim.Fault {
	fault := c.fault
	if fault.Drift == nil {
		return fault
	}
	drift := *fault.Drift
	if c.sheet {
		drift.Object = strings.Replace(drift.Object, person, "Sheet1", 1)
		drift.Field = strings.Replace(drift.Field, "level", "amount", 1)
	}
	if drift.Action == "set_operations" && c.operation == api.OperationUpdate {
		drift.Operations = []string{rpc.OperationInsert}
	} else if drift.Action == "set_operations" {
		drift.Operations = []string{rpc.OperationUpdate}
	}
	fault.Drift = &drift
	return fault
}

// said compares a run that met a fault with the model: every record that it
// calls sent is stored, every one that it names or does not mention is as it was
// or as it shall be, and nothing else has changed. It gives the records that the
// destination has lied about.
func (s *faultScene) said(o Outcome, t *task, was, want contents) (lost []string) {
	s.t.Helper()
	sent, named := s.verdicts(ledger.Acknowledged), s.verdicts(ledger.Rejected)
	info := fmt.Sprintf("%+v", o)
	require.Equal(s.t, o.Processed, o.Updated+o.Failed, info)
	require.Equal(s.t, [2]int64{o.Updated, o.Failed}, [2]int64{int64(len(sent)), int64(len(named))}, "counters and ledger: %s", info)
	due := either(t.write, t.remove)
	for key := range either(keySet(sent), keySet(named)) {
		if !due[key] {
			require.Fail(s.t, "record "+key+" was not to be sent")
		}
	}
	if o.Status == api.RunCompleted {
		require.Len(s.t, due, len(sent)+len(named), "each record has a verdict: %s", info)
		require.Equal(s.t, [4]int64{t.rows, int64(len(t.write)), int64(len(t.remove)), t.invalid}, [4]int64{o.SourceRecords, o.SourceUpdates, o.SourceDeletes, o.Invalid}, info)
	} else {
		require.NotEmpty(s.t, o.Code, info)
		require.NotEmpty(s.t, o.Message, info)
	}
	for key, message := range named {
		if message == "" {
			require.Fail(s.t, "record "+key+" failed without a reason")
		}
	}
	got := s.content()
	for key := range either(either(keySet(was), keySet(want)), keySet(got)) {
		_, acknowledged := sent[key]
		switch {
		case got[key] == want[key]:
		case acknowledged:
			lost = append(lost, key)
		case !due[key] || got[key] != was[key]:
			require.Fail(s.t, "a value from nowhere", "record %s is %q, was %q, shall be %q", key, got[key], was[key], want[key])
		}
	}
	return lost
}

// outcome puts the end of the run into a word, and refuses one that the fault
// must not have.
func (c faultCell) outcome(t *testing.T, o Outcome, lost []string) string {
	info := fmt.Sprintf("%+v", o)
	switch {
	case c.repaired || c.lies:
		require.Equal(t, api.RunCompleted, o.Status, info)
		require.Zero(t, o.Failed, info)
		require.Equal(t, c.lies, len(lost) > 0, info)
		if c.lies {
			return "a lie, seen by reading back"
		}
		return "repaired"
	case o.Code != "":
		require.Equal(t, api.RunFailed, o.Status, info)
		if c.code != "" {
			require.Equal(t, c.code, o.Code, info)
		}
		require.Zero(t, c.named, info)
		return o.Code
	case c.code != "":
		require.Fail(t, "the run has to fail", info)
	case c.named > 0:
		require.Equal(t, c.named, o.Failed, info)
		return fmt.Sprintf("%d named", c.named)
	case c.mild && o.Failed == 0:
		return "repaired"
	}
	require.Positive(t, o.Failed, "the run has to say something: %s", info)
	return "failed ones named"
}

// repair makes the next runs, without the fault.
func (s *faultScene) repair(task *task, want contents, lost []string) string {
	s.t.Helper()
	word := ""
	if len(lost) > 0 {
		if s.p.operation == api.OperationAppend {
			return ", and no run repairs it" // each row is sent once
		}
		s.job.Full, s.job.FullReason = true, "the audit"
		word = ", and a full sync repairs it"
	}
	o := s.sync()
	s.job.Full = false
	require.Equal(s.t, api.RunCompleted, o.Status, "%+v", o)
	require.Zero(s.t, o.Failed, "%+v", o)
	sameContent(s.t, want, s.content(), "stored after the next run")
	left := 0
	if s.p.strategy == api.MirrorSwap { // each row is sent in each run
		left = len(task.valid)
	}
	o = s.sync()
	require.Equal(s.t, [2]int64{int64(left), int64(left)}, [2]int64{o.Processed, o.Updated}, "nothing is left to do: %+v", o)
	if left > 0 {
		sameContent(s.t, want, s.content(), "stored in the end")
	}
	return word
}

// faultTable is the matrix as it is published: faults by operations.
type faultTable struct {
	mu    sync.Mutex
	cells map[string]map[string]string
	met   int
}

func (f *faultTable) add(c faultCell, said string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := c.name
	if c.many {
		name = fmt.Sprintf("%s, %d records", name, c.records)
	}
	if f.cells[name] == nil {
		f.cells[name] = map[string]string{}
	}
	f.cells[name][c.String()] = said
	f.met++
}

const faultHead = `# Fault matrix

Each cell combines a fault of the simulated destination with a run of an operation: 2,000 records in twenty
batches, four in parallel, and 20,000 records for faults with commit phases. "repaired": the run itself
delivered everything. A code: the run failed with this error_code. "named": the run reports these records as
failed, with their messages. A model compares the destination with the run in every cell: what the run calls
sent is stored, nothing is stored twice, and the counters are those of the ledger. The next run, without the
fault, delivers exactly what was left. Only a read-back detects a destination that acknowledges what it does
not store (acknowledge_unstored). ` + "`make docs`" + ` writes this page.

`

// finish writes the table with -update.
func (f *faultTable) finish(t *testing.T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !*update {
		return
	}
	if all := len(faultCells()); f.met != all {
		t.Errorf("only %d of %d cells have run: write the table with DESTKIT_TIER=full", f.met, all)
		return
	}
	table := &matrixtest.Table[string]{}
	head, rule := "| fault |", "|---|"
	for _, c := range columns() {
		head, rule = head+" "+c.String()+" |", rule+"---|"
	}
	for name, cells := range f.cells {
		line := "| " + name + " |"
		for _, c := range columns() {
			line += " " + cmp.Or(cells[c.String()], "–") + " |"
		}
		table.Add(name, line)
	}
	table.Write(t, "../../../../docs/evidence/fault-matrix.md", faultHead+head+"\n"+rule+"\n", fmt.Sprintf("\n%d cells.\n", f.met), len(f.cells))
}
