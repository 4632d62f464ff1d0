package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/internal/cluster/shelf/shelftest"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// bookPlace is where the books of a sync are, as a child process can be told of it:
// in a folder, in memory where there is none, or shared, on a shelf in PostgreSQL.
type bookPlace struct {
	Dir  string
	Room *shelftest.Room `json:",omitempty"` // instead
}

// newBookPlace is one that is new.
func newBookPlace(t testing.TB, shared bool) bookPlace {
	t.Helper()
	if !shared {
		return bookPlace{Dir: t.TempDir()}
	}
	room := shelftest.Take(t)
	return bookPlace{Room: &room}
}

// open is what a process does that begins to work. On a shelf it is told apart by
// what is given too.
func (b bookPlace) open(crash func(string)) (books *ledger.Ledger, on *shelftest.Shelf, err error) {
	o := ledger.Options{Dir: b.Dir, Crash: crash}
	if b.Room != nil {
		if on, err = b.Room.Shelf(); err != nil {
			return nil, nil, err
		}
		o.Shelf = on
	}
	books, err = ledger.Open(o)
	return books, on, err
}

// openBooks opens books of one process, which are shared or in memory.
func openBooks(t testing.TB, shared bool) *ledger.Ledger {
	t.Helper()
	var at bookPlace
	if shared {
		at = newBookPlace(t, shared)
	}
	books, _, err := at.open(nil)
	require.NoError(t, err)
	return books
}

// tenthOfTenth reports whether the cell with this number runs in PostgreSQL: a fixed
// hundredth outside of the matrix tier.
func tenthOfTenth(t *testing.T, cell int) bool {
	t.Helper()
	return matrixtest.Tenth(t, cell) && (matrixtest.Whole() || matrixtest.Named() || cell%100 == 13)
}
