package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func names(t testing.TB, s *Store) (found []string) {
	t.Helper()
	view(t, s, func(tx *Tx) {
		all, _, err := tx.Organizations(Page{Ascending: true})
		require.NoError(t, err)
		for _, o := range all {
			found = append(found, o.Name)
		}
	})
	return found
}

// A failed change leaves nothing behind, and the next one works.
func TestUpdateIsUndone(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		boom := errors.New("boom")
		ctx, cancel := context.WithCancel(t.Context())
		create := func(tx *Tx) { require.NoError(t, tx.CreateOrganization(&Organization{Name: "undone"})) }
		require.ErrorIs(t, s.Update(t.Context(), func(tx *Tx) error { create(tx); return boom }), boom)
		require.PanicsWithError(t, "boom", func() {
			_ = s.Update(t.Context(), func(tx *Tx) error { create(tx); panic(boom) })
		})
		require.ErrorIs(t, s.Update(ctx, func(tx *Tx) error { create(tx); cancel(); return nil }), context.Canceled)
		require.ErrorIs(t, s.Update(ctx, func(*Tx) error { return nil }), context.Canceled)
		require.ErrorIs(t, s.View(ctx, func(tx *Tx) error { _, _, err := tx.Organizations(Page{}); return err }), context.Canceled)
		require.Panics(t, func() { _ = s.View(t.Context(), func(*Tx) error { panic(boom) }) })
		require.Empty(t, names(t, s))
		update(t, s, func(tx *Tx) { require.NoError(t, tx.CreateOrganization(&Organization{Name: "kept"})) })
		require.Equal(t, []string{"kept"}, names(t, s))
	})
}

// A failure that may have ended the transaction cannot be swallowed.
func TestBrokenTransactionIsNotCommitted(t *testing.T) {
	s := open(t, Options{})
	err := s.Update(t.Context(), func(tx *Tx) error {
		require.NoError(t, tx.CreateOrganization(&Organization{Name: "half"}))
		_, _ = tx.exec("INSERT INTO nowhere VALUES (1)")
		require.Error(t, tx.CreateOrganization(&Organization{Name: "other half"}))
		return nil
	})
	require.ErrorContains(t, err, "nowhere")
	require.Empty(t, names(t, s))
}

func TestViewCannotChange(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		err := s.View(t.Context(), func(tx *Tx) error { return tx.CreateOrganization(&Organization{}) })
		require.ErrorContains(t, err, "a View cannot change anything")
		err = s.View(t.Context(), func(tx *Tx) error {
			_, err := tx.conn.Run("DELETE FROM organizations", nil)
			return err
		})
		require.Regexp(t, "read-?only", err)
	})
}

// Many views at once, each sees one state; changes take turns.
func TestViewsAreConsistent(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		const pairs = 30
		done := make(chan error)
		go func() {
			for i := range pairs {
				err := s.Update(t.Context(), func(tx *Tx) error {
					return errors.Join(tx.CreateOrganization(&Organization{Name: fmt.Sprint(i)}),
						tx.CreateOrganization(&Organization{Name: fmt.Sprint(i)}))
				})
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		const viewers = 4
		views := make(chan error)
		for range viewers {
			go func() {
				for seen := int64(0); seen < 2*pairs; {
					err := s.View(t.Context(), func(tx *Tx) error {
						_, total, err := tx.Organizations(Page{PerPage: 1})
						all, again, err2 := tx.Organizations(Page{})
						if total%2 != 0 || total != again || int64(len(all)) != total || total < seen {
							return fmt.Errorf("saw %d of %d, %d before", len(all), total, seen)
						}
						seen = total
						return errors.Join(err, err2)
					})
					if err != nil {
						views <- err
						return
					}
				}
				views <- nil
			}()
		}
		require.NoError(t, <-done)
		for range viewers {
			require.NoError(t, <-views)
		}
	})
}

// Two views are open at the same time.
func TestViewsRunInParallel(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		inside, both := make(chan bool), make(chan bool)
		go func() {
			_ = s.View(context.Background(), func(tx *Tx) error {
				_, _, err := tx.Organizations(Page{})
				inside <- true
				<-both
				return err
			})
			close(inside)
		}()
		<-inside
		require.Empty(t, names(t, s))
		close(both)
		<-inside
	})
}

func TestClosedStore(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.ErrorIs(t, s.View(t.Context(), func(*Tx) error { return nil }), ErrClosed)
		require.ErrorIs(t, s.Update(t.Context(), func(*Tx) error { return nil }), ErrClosed)
		require.ErrorIs(t, s.Copy(t.Context(), nil), ErrClosed)
		require.ErrorIs(t, s.RotateDataKeys(t.Context()), ErrClosed)
	})
}

// Stores in memory have nothing in common.
func TestMemoryStoresAreApart(t *testing.T) {
	one, other := open(t, Options{}), open(t, Options{})
	update(t, one, func(tx *Tx) { require.NoError(t, tx.CreateOrganization(&Organization{Name: "one"})) })
	require.Empty(t, names(t, other))
}

// TestKindsOfUnfit: only errors that require another place or file are ErrUnfit.
func TestKindsOfUnfit(t *testing.T) {
	for _, kind := range []error{ErrNewer, ErrNotACopy} {
		err := fmt.Errorf("open it: %w", kind)
		require.ErrorIs(t, err, ErrUnfit)
		require.ErrorIs(t, err, kind)
	}
	require.NotErrorIs(t, ErrNewer, ErrNotACopy)
	for _, other := range []error{ErrFull, ErrDisk, ErrDamaged, ErrWrongKey, ErrHasData} {
		require.NotErrorIs(t, other, ErrUnfit)
	}
	dir := t.TempDir()
	s, err := Open(t.Context(), Options{Dir: dir, MasterKey: make([]byte, 32)})
	require.NoError(t, err)
	defer s.Close()
	require.ErrorIs(t, Backup(t.Context(), dir, filepath.Join(dir, "backup.db")), ErrUnfit, "within the directory it copies")
}

// TestLine: who waits for the writer is served by urgency, then in the order of coming;
// no one waits for ever, and who gives up is forgotten.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		var mu sync.Mutex
		var order []string
		come := func(name string, u Urgency) {
			go func() {
				if l.take(WithUrgency(t.Context(), u), nil) == nil {
					mu.Lock()
					order = append(order, name)
					mu.Unlock()
					l.leave()
				}
			}()
			synctest.Wait()
		}
		require.NoError(t, l.take(t.Context(), nil))
		come("p", Patient)
		come("u1", Usual)
		ctx, cancel := context.WithCancel(WithUrgency(t.Context(), Urgent))
		gone := make(chan error)
		go func() { gone <- l.take(ctx, nil) }()
		synctest.Wait()
		for i := range 20 {
			come(fmt.Sprint("a", i), Urgent)
		}
		come("u2", Usual)
		require.Equal(t, 24, l.waits())
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		l.leave()
		synctest.Wait()
		require.Equal(t, "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 p a15 a16 a17 a18 a19 u1 u2", strings.Join(order, " "),
			"the sixteenth turn is for who has waited longest")
		require.Zero(t, l.waits())

		closed := make(chan struct{})
		require.NoError(t, l.take(t.Context(), closed), "it is free again")
		go func() { gone <- l.take(t.Context(), closed) }()
		synctest.Wait()
		close(closed)
		require.ErrorIs(t, <-gone, ErrClosed)
		require.ErrorIs(t, l.take(t.Context(), closed), ErrClosed)
		l.leave()
		require.NoError(t, l.take(t.Context(), nil), "who gave up has left nothing behind")
	})
}
