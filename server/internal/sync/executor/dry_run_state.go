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
func (r *run) look() error {
	found, err := r.books.Survey()
	if errors.Is(err, ledger.ErrBusy) {
		return err
	}
	if err != nil {
		return failed(CodeState, err, "read the state of the sync: %v", err)
	}
	if len(found.Unsettled) > 0 {
		return fmt.Errorf("run %d: %w", found.Unsettled[0], ErrUnsettled)
	}
	r.before, r.dry.blank = found.Meta, found.Empty
	r.dry.reset()
	return nil
}

// looker is a warehouse that says what Open would find, and changes nothing.
type looker interface {
	Look(ctx context.Context) (source.StateInfo, error)
}

// openState opens the state in the warehouse, or only looks at it.
func (r *run) openState(ctx context.Context) (source.StateInfo, error) {
	if r.dry == nil {
		return r.job.Warehouse.Open(ctx)
	}
	state, able := r.job.Warehouse.(looker)
	if !able {
		return source.StateInfo{}, ErrNotDry
	}
	return state.Look(ctx)
}

// scanDry is the state as it is when a run compares: what the warehouse has, with
// what it would be given first over it.
func (r *run) scanDry(ctx context.Context) (State, error) {
	if r.job.Warehouse == nil {
		if r.dry.blank {
			return noState{}, nil
		}
		return r.books.Scan()
	}
	var pending, whole State = noState{}, noState{}
	var err error
	if r.dry.behind {
		if pending, err = r.books.Scan(); err != nil {
			return nil, err
		}
	}
	if !r.dry.void {
		rows, err := r.job.Warehouse.Read(ctx, nil)
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
