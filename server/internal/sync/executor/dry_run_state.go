package executor

import (
	"errors"
	"fmt"
	"io"

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

// noState is a state without entries.
type noState struct{}

// Next implements State.
func (noState) Next() (ledger.Entry, error) { return ledger.Entry{}, io.EOF }

// Close implements State.
func (noState) Close() error { return nil }
