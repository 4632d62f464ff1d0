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

func (r *run) keptNotes() json.RawMessage {
	now := keptNotes{r.notes(), r.state.warehouseNotes}
	now.Rows = r.rows && r.kept
	text, _ := json.Marshal(now) // numbers and texts always marshal
	return text
}

// openWarehouse looks whether the state is the one that the ledger left, by what
// it has noted. behind tells that something has to be applied before anything is
// compared; entries are those that the warehouse has.
func (r *run) openWarehouse(ctx context.Context, was keptNotes) (behind bool, entries int64, err error) {
	if r.job.Warehouse == nil {
		return false, 0, nil
	}
	info, err := r.openState(ctx)
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
	clear := info.Rows > 0 && r.foreign(info, was)
	if doubt := doubtOf(was.warehouseNotes, info); doubt != "" && !clear && !r.before.Damaged {
		r.before.Damaged, r.before.Reason = true, doubt
	}
	if !was.Advanced && r.before.Mapping != (ledger.Fingerprint{}) && r.operation.changed && !r.full {
		r.full, r.reason = true, engineChanged
	}
	r.state = warehouseState{
		warehouseNotes: warehouseNotes{Advanced: true, Stamp: info.Stamp},
		clear:          clear, version: info.Version,
	}
	behind = r.before.Rows > 0 || clear
	if r.dry != nil {
		r.dry.behind, r.dry.void = r.before.Rows > 0, info.Rows == 0 || clear
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
func (r *run) foreign(info source.StateInfo, was keptNotes) bool {
	if info.Notes == nil {
		return was.notes != r.notes()
	}
	var theirs notes
	return json.Unmarshal(info.Notes, &theirs) != nil || theirs != r.notes()
}

// mapping is the fingerprint of all that makes the prints of a state
// comparable. A warehouse compares rows, so what else records are made of
// counts too.
func (r *run) mapping() ledger.Fingerprint {
	plan := r.plan.Fingerprint()
	if r.job.Warehouse == nil {
		return plan
	}
	h := sha256.New()
	fmt.Fprintf(h, "%x %d \"\"\n", plan, r.state.version)
	for _, g := range r.job.Segments { // a row has their ids only
		fmt.Fprintf(h, "%d %q\n", g.ID, g.Name)
	}
	for _, name := range r.plan.Columns() {
		for i := range r.job.Columns {
			if c := &r.job.Columns[i]; c.Name == name {
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
func (r *run) withRow(print ledger.Fingerprint, row *entry, old *ledger.Entry) ledger.Fingerprint {
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
func (r *run) beforeApply(meta ledger.Meta) ledger.Meta {
	var stamp [8]byte
	_, _ = rand.Read(stamp[:]) // never fails
	r.state.Next = hex.EncodeToString(stamp[:])
	meta.Delta, meta.Notes = true, r.keptNotes()
	return meta
}

// lastApply bounds the last words of a run that was cancelled, in real time.
const lastApply = 30 * time.Second

// apply brings what the ledger holds into the warehouse and empties it here.
func (r *run) apply(ctx context.Context, meta ledger.Meta) error {
	r.crash(BeforeApply)
	caller := ctx
	if ctx.Err() != nil { // what was acknowledged before a run was cancelled counts
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastApply)
		defer cancel()
		ctx = bounded
	}
	pending, err := r.books.Scan()
	if err != nil {
		return failed(CodeState, err, "read what the warehouse does not have yet: %v", err)
	}
	defer pending.Close()
	notes, _ := json.Marshal(r.notes()) // numbers and texts always marshal
	change := source.StateChange{
		From: r.state.Stamp, To: r.state.Next, Clear: r.state.clear, Run: r.job.Run, Mapping: hex.EncodeToString(meta.Mapping[:]),
		HighWater: meta.HighWater, Notes: notes,
		Next: func() (source.StateEntry, error) {
			e, err := pending.Next()
			return stateEntryOf(&e), err
		},
		Crash: func(committed bool) {
			if committed {
				r.crash(AfterApply)
			} else {
				r.crash(MidApply)
			}
		},
	}
	if meta.Damaged {
		change.Damaged = meta.Reason
	}
	err = r.job.Warehouse.Apply(ctx, change)
	switch {
	case err != nil && ctx == caller && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		f := failed(CodeState, err, "%v; what was acknowledged is kept, and applied by the next run", err)
		f.Transient = !errors.Is(err, source.ErrStateReadOnly)
		return f
	}
	r.state.Stamp, r.state.Next, r.state.clear = r.state.Next, "", false
	meta.Notes = r.keptNotes()
	if err := r.books.Drain(meta); err != nil {
		return failed(CodeState, err, "empty the books of what the warehouse has: %v", err)
	}
	r.crash(AfterDrain)
	return nil
}
