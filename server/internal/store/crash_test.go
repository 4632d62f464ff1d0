package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that is killed in the middle of its writes leaves whole transactions:
// all that it was told of, and at most one more.
func TestKilledWhileWriting(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	o := Options{MasterKey: testKey}.a(t, onDisk)
	total := 0
	for round := range rounds {
		c := start(t, "write", o)
		told := 1 + round%5
		for n := 1; n <= told; n++ {
			require.Equal(t, fmt.Sprint("committed ", n), c.line(t))
		}
		c.kill()
		for c.lines.Scan() { // what it said before it died
			if strings.HasPrefix(c.lines.Text(), "committed ") {
				told++
			}
		}
		s, err := Open(t.Context(), o)
		require.NoError(t, err)
		done := requireWhole(t, s)
		require.GreaterOrEqual(t, done, total+told)
		require.LessOrEqual(t, done, total+told+1)
		total = done
		require.NoError(t, s.Close())
	}
}

// On a full disk a change fails as a whole, reading goes on, and after something
// was deleted writing goes on too.
func TestDiskFull(t *testing.T) {
	eachFull := map[string]Options{"memory": {maxPages: 150}, "disk": {Dir: t.TempDir(), maxPages: 150}}
	for name, o := range eachFull {
		t.Run(name, func(t *testing.T) {
			s := open(t, o)
			var err error
			rounds := 0
			for ; err == nil; rounds++ {
				err = s.Update(t.Context(), writeRound)
			}
			require.ErrorIs(t, err, ErrFull)
			require.ErrorContains(t, err, "no space left")
			require.Equal(t, rounds-1, requireWhole(t, s))
			// An error that is swallowed does not let half of the change through.
			err = s.Update(t.Context(), func(tx *Tx) error {
				for range 50 {
					_ = writeRound(tx)
				}
				return nil
			})
			require.ErrorIs(t, err, ErrFull)
			require.Equal(t, rounds-1, requireWhole(t, s))
			update(t, s, func(tx *Tx) {
				all, _, err := tx.Organizations(Page{PerPage: 10})
				require.NoError(t, err)
				for _, o := range all {
					require.NoError(t, tx.DeleteOrganization(o.ID))
				}
				require.NoError(t, tx.SetSetting("rounds", fmt.Sprint(rounds-1-len(all))))
			})
			for range 5 {
				require.NoError(t, s.Update(t.Context(), writeRound))
			}
			require.Equal(t, rounds-1-10+5, requireWhole(t, s))
			require.False(t, errors.Is(s.Close(), ErrFull))
		})
	}
}
