package executor

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// look finds the state as Begin would, without opening a log.
func (bk *booking) look() error {
	found, err := bk.ledger.Survey()
	if errors.Is(err, ledger.ErrBusy) {
		return err
	}
	if err != nil {
		return failed(CodeState, err, "read the state of the sync: %v", err)
	}
	if len(found.Unsettled) > 0 {
		return fmt.Errorf("run %d: %w", found.Unsettled[0], ErrUnsettled)
	}
	bk.before, bk.dry.blank = found.Meta, found.Empty
	bk.dry.reset()
	return nil
}

// looker is a warehouse that says what Open would find, and changes nothing.
type looker interface {
	Look(ctx context.Context) (source.StateInfo, error)
}

// openState opens the state in the warehouse, or only looks at it.
func (t *terms) openState(ctx context.Context) (source.StateInfo, error) {
	if t.dry == nil {
		return t.job.Warehouse.Open(ctx)
	}
	state, able := t.job.Warehouse.(looker)
	if !able {
		return source.StateInfo{}, ErrNotDry
	}
	return state.Look(ctx)
}

// scanDry is the state as it is when a run compares: what the warehouse has, with
// what it would be given first over it.
func (bk *booking) scanDry(ctx context.Context) (State, error) {
	if bk.job.Warehouse == nil {
		if bk.dry.blank {
			return noState{}, nil
		}
		return bk.ledger.Scan()
	}
	var pending, whole State = noState{}, noState{}
	var err error
	if bk.dry.behind {
		if pending, err = bk.ledger.Scan(); err != nil {
			return nil, err
		}
	}
	if !bk.dry.void {
		rows, err := bk.job.Warehouse.Read(ctx, nil)
		if err != nil {
			return nil, errors.Join(err, pending.Close())
		}
		whole = &wholeState{rows}
	}
	return &overlaid{whole: whole, pending: pending}, nil
}

// noState is a state without entries.
type noState struct{}

// Next implements State.
func (noState) Next() (ledger.Entry, error) { return ledger.Entry{}, io.EOF }

// Close implements State.
func (noState) Close() error { return nil }
