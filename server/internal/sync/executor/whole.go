package executor

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// ScanState opens the state of a sync, wherever it lives: in the ledger where
// warehouse is nil, else in the warehouse, with what the ledger has and the
// warehouse does not over it. A state that was never made is empty.
func ScanState(ctx context.Context, books *ledger.Sync, warehouse Warehouse) (State, error) {
	if warehouse == nil {
		return books.Scan()
	}
	pending, err := books.Scan() // first: what is applied in between comes twice, and not never
	if err != nil {
		return nil, err
	}
	rows, err := warehouse.Read(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, pending.Close())
	}
	return &overlaid{whole: &wholeState{rows}, pending: pending}, nil
}

// wholeState is the state that a warehouse has.
type wholeState struct{ rows source.StateReader }

// Next implements State.
func (w *wholeState) Next() (ledger.Entry, error) {
	row, err := w.rows.Next()
	if err != nil {
		return ledger.Entry{}, err
	}
	return entryOf(&row.Entry), nil
}

// Close implements State.
func (w *wholeState) Close() error { return w.rows.Close() }

// overlaid is a state with a delta over it, both in the order of their keys.
type overlaid struct {
	whole, pending State
	begun          bool
	old, now       ledger.Entry
	oldErr, nowErr error
}

// Next implements State.
func (o *overlaid) Next() (ledger.Entry, error) {
	if !o.begun {
		o.begun = true
		o.old, o.oldErr = o.whole.Next()
		o.now, o.nowErr = o.pending.Next()
	}
	for {
		switch {
		case o.oldErr != nil && !errors.Is(o.oldErr, io.EOF):
			return ledger.Entry{}, o.oldErr
		case o.nowErr != nil:
			if errors.Is(o.nowErr, io.EOF) && o.oldErr == nil {
				return o.giveOld(), nil
			}
			return ledger.Entry{}, o.nowErr
		}
		order := -1
		if o.oldErr == nil {
			order = bytes.Compare(o.now.Key, o.old.Key)
		}
		if order > 0 {
			return o.giveOld(), nil
		}
		var before *ledger.Entry
		if order == 0 {
			before = &o.old
		}
		merged, kept := overEntry(o.now, before)
		merged.Key, merged.Row = bytes.Clone(merged.Key), bytes.Clone(merged.Row)
		o.now, o.nowErr = o.pending.Next()
		if order == 0 {
			o.old, o.oldErr = o.whole.Next()
		}
		if kept {
			return merged, nil
		}
	}
}

// giveOld gives an entry of which the delta says nothing.
func (o *overlaid) giveOld() ledger.Entry {
	e := o.old
	e.Key, e.Row = bytes.Clone(e.Key), bytes.Clone(e.Row)
	o.old, o.oldErr = o.whole.Next()
	return e
}

// overEntry puts an entry of a delta over what the state has, as applying it
// does; false: nothing is left.
func overEntry(now ledger.Entry, old *ledger.Entry) (ledger.Entry, bool) {
	removed := now.Removed
	now.Removed = false
	if old != nil && !now.Known && !removed {
		now.Known, now.Print = old.Known, old.Print
		if old.Known || now.Row == nil {
			now.Row = old.Row
		}
	}
	return now, now.Known || now.Verdict == ledger.Rejected
}

// Close implements State.
func (o *overlaid) Close() error { return errors.Join(o.whole.Close(), o.pending.Close()) }
