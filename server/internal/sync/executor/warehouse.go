package executor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Warehouse keeps the state of one sync beside its source (the
// advanced engine); a *source.PostgresState.
//
// The ledger stays the truth: verdicts are durable there first. Its own state
// holds only what the warehouse does not have yet, deletions included, and is
// emptied when the warehouse has committed it. So a warehouse that cannot be
// written costs nothing but the run, and the next one applies what it missed.
type Warehouse interface {
	// Open makes what is missing and says what the state knows of itself.
	Open(ctx context.Context) (source.StateInfo, error)
	// Read compares in the warehouse, or gives the whole state in key order where
	// c is nil. The error is a source.ErrNotInSQL where it cannot compare.
	Read(ctx context.Context, c *source.Comparison) (source.StateReader, error)
	// Apply changes the state in one transaction; twice is as once.
	Apply(ctx context.Context, c source.StateChange) error
}

// The points at which a killed process must lose nothing, around the state of a
// warehouse.
const (
	BeforeApply = "before-apply" // the ledger has what the warehouse does not have yet
	MidApply    = "mid-apply"    // the warehouse has it, and has not committed
	AfterApply  = "after-apply"  // it has committed; the ledger does not know
	AfterDrain  = "after-drain"  // the ledger has let go of it
)

// WarehouseCrashPoints lists them in their order.
func WarehouseCrashPoints() []string {
	return []string{BeforeApply, MidApply, AfterApply, AfterDrain}
}

// warehouseState is what a run knows of the state in its warehouse.
type warehouseState struct {
	warehouseNotes
	clear   bool // its keys are of another identifier
	version int  // of the server: the fingerprints of rows are its own
}

// warehouseNotes stand in the ledger: the stamp of the state in the warehouse,
// and the one that it gets. By them a state is known that is not the one that
// this ledger left: of a restored database, or of another service.
type warehouseNotes struct {
	Advanced bool   `json:"advanced,omitempty"`
	Stamp    string `json:"stamp,omitempty"`
	Next     string `json:"next,omitempty"`
}

// engineChanged is a reason for a full sync.
const engineChanged = "the sync engine of the source has changed"

func (bk *booking) keptNotes() json.RawMessage {
	now := keptNotes{bk.notes(), bk.state.warehouseNotes}
	now.Rows = bk.rows && bk.kept
	text, _ := json.Marshal(now) // numbers and texts always marshal
	return text
}

// openWarehouse looks whether the state is the one that the ledger left, by what
// it has noted. behind tells that something has to be applied before anything is
// compared; entries are those that the warehouse has.
func (bk *booking) openWarehouse(ctx context.Context, was keptNotes) (behind bool, entries int64, err error) {
	if bk.job.Warehouse == nil {
		return false, 0, nil
	}
	info, err := bk.openState(ctx)
	switch {
	case errors.Is(err, ErrNotDry):
		return false, 0, err
	case errors.Is(err, source.ErrStateReadOnly):
		return false, 0, failed(CodeConfiguration, err, "%v", err)
	case err != nil && ctx.Err() != nil:
		return false, 0, context.Cause(ctx)
	case err != nil:
		f := failed(CodeState, err, "%v", err)
		f.Transient = true
		return false, 0, f
	}
	clear := info.Rows > 0 && bk.foreign(info, was)
	if doubt := doubtOf(was.warehouseNotes, info); doubt != "" && !clear && !bk.before.Damaged {
		bk.before.Damaged, bk.before.Reason = true, doubt
	}
	if !was.Advanced && bk.before.Mapping != (ledger.Fingerprint{}) && bk.operation.changed && !bk.full {
		bk.full, bk.reason = true, engineChanged
	}
	bk.state = warehouseState{
		warehouseNotes: warehouseNotes{Advanced: true, Stamp: info.Stamp},
		clear:          clear, version: info.Version,
	}
	behind = bk.before.Rows > 0 || clear
	if bk.dry != nil {
		bk.dry.behind, bk.dry.void = bk.before.Rows > 0, info.Rows == 0 || clear
	}
	return behind, info.Rows, nil
}

// doubtOf says why acknowledgements may be missing in a state (spec 7.2.5).
func doubtOf(was warehouseNotes, info source.StateInfo) string {
	switch known := was.Stamp != "" || was.Next != ""; {
	case info.Broken != "":
		return info.Broken
	case info.Fresh && was.Stamp != "":
		return "the state in the warehouse is gone"
	case info.Fresh, info.Stamp == was.Stamp, info.Stamp == was.Next:
		return ""
	case !known:
		return "the service does not know the state in the warehouse"
	}
	return "the state in the warehouse is not the one that this service left"
}

// foreign tells that the keys of a state are those of another identifier or
// another object, or may be: a mirror would delete what they happen to name.
func (t *terms) foreign(info source.StateInfo, was keptNotes) bool {
	if info.Notes == nil {
		return was.notes != t.notes()
	}
	var theirs notes
	return json.Unmarshal(info.Notes, &theirs) != nil || theirs != t.notes()
}

// mapping is the fingerprint of all that makes the prints of a state
// comparable. A warehouse compares rows, so what else records are made of
// counts too.
func (bk *booking) mapping() ledger.Fingerprint {
	plan := bk.plan.Fingerprint()
	if bk.job.Warehouse == nil {
		return plan
	}
	h := sha256.New()
	fmt.Fprintf(h, "%x %d \"\"\n", plan, bk.state.version)
	for _, g := range bk.job.Segments { // a row has their ids only
		fmt.Fprintf(h, "%d %q\n", g.ID, g.Name)
	}
	for _, name := range bk.plan.Columns() {
		for i := range bk.job.Columns {
			if c := &bk.job.Columns[i]; c.Name == name {
				fmt.Fprintf(h, "%q %q %q\n", name, c.Type, c.Kind)
			}
		}
	}
	var print ledger.Fingerprint
	copy(print[:], h.Sum(nil))
	return print
}

// withRow makes the print that a warehouse keeps: half of the record's, by
// which it is decided here as ever, and the row's, by which the warehouse finds
// what has to be looked at.
func withRow(print ledger.Fingerprint, row *entry, old *ledger.Entry) ledger.Fingerprint {
	binary.BigEndian.PutUint64(print[8:], uint64(row.print))
	if old != nil {
		copy(old.Print[8:], print[8:])
	}
	return print
}

// entryOf is an entry of a warehouse as the ledger has it, and stateEntryOf the
// other way round.
func entryOf(e *source.StateEntry) ledger.Entry {
	out := ledger.Entry{Key: e.Key, Known: e.Known, Verdict: ledger.Acknowledged, Deleted: e.Deleted, Row: e.Sent}
	if e.Rejected {
		out.Verdict = ledger.Rejected
	}
	binary.BigEndian.PutUint64(out.Print[:], uint64(e.Record))
	binary.BigEndian.PutUint64(out.Print[8:], uint64(e.Row))
	return out
}

func stateEntryOf(e *ledger.Entry) source.StateEntry {
	return source.StateEntry{
		Key: e.Key, Known: e.Known, Rejected: e.Verdict == ledger.Rejected, Deleted: e.Deleted, Removed: e.Removed, Sent: e.Row,
		Record: int64(binary.BigEndian.Uint64(e.Print[:])), Row: int64(binary.BigEndian.Uint64(e.Print[8:])),
	}
}

// beforeApply gives the state in the warehouse its next stamp, which the ledger
// knows before the warehouse does.
func (bk *booking) beforeApply(meta ledger.Meta) ledger.Meta {
	var stamp [8]byte
	_, _ = rand.Read(stamp[:]) // never fails
	bk.state.Next = hex.EncodeToString(stamp[:])
	meta.Delta, meta.Notes = true, bk.keptNotes()
	return meta
}

// lastApply bounds the last words of a run that was cancelled, in real time.
const lastApply = 30 * time.Second

// apply brings what the ledger holds into the warehouse and empties it here.
func (bk *booking) apply(ctx context.Context, meta ledger.Meta) error {
	bk.crash(BeforeApply)
	caller := ctx
	if ctx.Err() != nil { // what was acknowledged before a run was cancelled counts
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastApply)
		defer cancel()
		ctx = bounded
	}
	pending, err := bk.ledger.Scan()
	if err != nil {
		return failed(CodeState, err, "read what the warehouse does not have yet: %v", err)
	}
	defer pending.Close()
	notes, _ := json.Marshal(bk.notes()) // numbers and texts always marshal
	change := source.StateChange{
		From: bk.state.Stamp, To: bk.state.Next, Clear: bk.state.clear, Run: bk.job.Run, Mapping: hex.EncodeToString(meta.Mapping[:]),
		HighWater: meta.HighWater, Notes: notes,
		Next: func() (source.StateEntry, error) {
			e, err := pending.Next()
			return stateEntryOf(&e), err
		},
		Crash: func(committed bool) {
			if committed {
				bk.crash(AfterApply)
			} else {
				bk.crash(MidApply)
			}
		},
	}
	if meta.Damaged {
		change.Damaged = meta.Reason
	}
	err = bk.job.Warehouse.Apply(ctx, change)
	switch {
	case err != nil && ctx == caller && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		f := failed(CodeState, err, "%v; what was acknowledged is kept, and applied by the next run", err)
		f.Transient = !errors.Is(err, source.ErrStateReadOnly)
		return f
	}
	bk.state.Stamp, bk.state.Next, bk.state.clear = bk.state.Next, "", false
	meta.Notes = bk.keptNotes()
	if err := bk.ledger.Drain(meta); err != nil {
		return failed(CodeState, err, "empty the books of what the warehouse has: %v", err)
	}
	bk.crash(AfterDrain)
	return nil
}
