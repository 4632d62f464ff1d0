package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/internal/cluster/shelf/shelftest"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// ledgerPlace is where the ledger of a sync is, as a child process can be told of it:
// in a folder, in memory where there is none, or shared, on a shelf in PostgreSQL.
type ledgerPlace struct {
	Dir  string
	Room *shelftest.Room `json:",omitempty"` // instead
}

// newLedgerPlace is one that is new.
func newLedgerPlace(t testing.TB, shared bool) ledgerPlace {
	t.Helper()
	if !shared {
		return ledgerPlace{Dir: t.TempDir()}
	}
	room := shelftest.Take(t)
	return ledgerPlace{Room: &room}
}

// open is what a process does that begins to work. On a shelf it is told apart by
// what is given too.
func (b ledgerPlace) open(crash func(string)) (opened *ledger.Ledger, on *shelftest.Shelf, err error) {
	o := ledger.Options{Dir: b.Dir, Crash: crash}
	if b.Room != nil {
		if on, err = b.Room.Shelf(); err != nil {
			return nil, nil, err
		}
		o.Shelf = on
	}
	opened, err = ledger.Open(o)
	return opened, on, err
}

// openLedger opens the ledger of one process, which is shared or in memory.
func openLedger(t testing.TB, shared bool) *ledger.Ledger {
	t.Helper()
	var at ledgerPlace
	if shared {
		at = newLedgerPlace(t, shared)
	}
	opened, _, err := at.open(nil)
	require.NoError(t, err)
	return opened
}

// sampledOnPostgres reports whether the cell with this number runs in PostgreSQL: all do
// in the tier of the matrices, a fixed hundredth in the others.
func sampledOnPostgres(cell int) bool {
	return matrixtest.Whole() || matrixtest.Named() || cell%100 == 13
}
