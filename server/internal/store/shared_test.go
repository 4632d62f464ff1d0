package store

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/sealing"
)

// two are stores of two processes on one schema.
func two(t testing.TB) (one, other *Store) {
	t.Helper()
	o := Options{}.a(t, onPG)
	return open(t, o), open(t, o)
}

// until waits for what another process has to be told first.
func until(t testing.TB, what func() bool) {
	t.Helper()
	require.Eventually(t, what, 10*time.Second, time.Millisecond)
}

// caught waits until a store has heard of all changes so far.
func caught(t testing.TB, s *Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan struct{})
	begin, end := sync.OnceFunc(func() { close(ready) }), sync.OnceFunc(func() { close(done) })
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	listening.Go(func() {
		_ = s.Listen(ctx, func(topic, _ string) {
			begin()
			if topic == "caught" {
				end()
			}
		})
	})
	<-ready
	// What does not fit makes it ask.
	_, err := s.Pool().Exec(ctx, "SELECT pg_notify($1, '= 0 0 0'), pg_notify($1, 'caught up')", channel(s))
	require.NoError(t, err)
	<-done
}

func organize(t testing.TB, s *Store, name string) {
	t.Helper()
	update(t, s, func(tx *Tx) { require.NoError(t, tx.CreateOrganization(&Organization{Name: name})) })
}

// What one process writes the other one reads, with secrets, and writers of both
// never meet.
func TestTwoProcessesOnOneSchema(t *testing.T) {
	one, other := two(t)
	require.True(t, one.Shared())
	require.Equal(t, one.Schema(), other.Schema())
	var w *world
	update(t, one, func(tx *Tx) { w = build(t, tx, "acme") })
	require.Equal(t, w.secrets(), secrets(t, other, w))
	organize(t, other, "second")
	require.Equal(t, []string{"acme", "second"}, names(t, one))

	const rounds = 20
	var writers sync.WaitGroup
	for _, s := range []*Store{one, other, one, other} {
		writers.Go(func() {
			for range rounds {
				if err := s.Update(t.Context(), func(tx *Tx) error {
					n, err := roundsDone(tx)
					if err != nil {
						return err
					}
					return tx.SetSetting("rounds", fmt.Sprint(n+1))
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	view(t, one, func(tx *Tx) {
		n, err := roundsDone(tx)
		require.NoError(t, err)
		require.Equal(t, 4*rounds, n, "no change is lost")
	})
	token, err := one.SealText("log")
	require.NoError(t, err)
	text, err := other.UnsealText(token)
	require.NoError(t, err)
	require.Equal(t, "log", text)
}

// What was cached under a generation is good until any process has changed
// something.
func TestGenerationOfTwoProcesses(t *testing.T) {
	one, other := two(t)
	caught(t, one)
	caught(t, other)
	before := one.Generation()
	require.Equal(t, before, one.Generation())
	organize(t, one, "a")
	own := one.Generation()
	require.Greater(t, own, before, "at once")
	seen := other.Generation()
	organize(t, one, "b")
	until(t, func() bool { return other.Generation() > seen })

	caught(t, one)
	caught(t, other)
	own, seen = one.Generation(), other.Generation()
	require.Error(t, one.Update(t.Context(), func(tx *Tx) error {
		require.NoError(t, tx.CreateOrganization(&Organization{Name: "undone"}))
		return errors.New("boom")
	}))
	update(t, one, func(tx *Tx) {
		_, _, err := tx.Organizations(Page{})
		require.NoError(t, err)
	})
	require.Equal(t, own, one.Generation(), "nothing was changed")
	require.Equal(t, seen, other.Generation())
}

// Stores of one process have nothing to share, and say so.
func TestEmbeddedStoresAreNotShared(t *testing.T) {
	for _, kind := range []string{inMem, onDisk} {
		s := open(t, Options{}.a(t, kind))
		require.False(t, s.Shared())
		require.Nil(t, s.Pool())
		require.Empty(t, s.Schema())
		require.True(t, s.Hears())
		require.NoError(t, s.Tell(t.Context(), "x", ""))
		update(t, s, func(tx *Tx) {
			require.Nil(t, tx.PostgreSQL())
			require.NoError(t, tx.Notify("x", ""))
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Listen(ctx, func(string, string) { t.Error("heard something") }), context.Canceled)
		ended := make(chan error)
		go func() { ended <- s.Listen(t.Context(), func(string, string) { t.Error("heard something") }) }()
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-ended, ErrClosed)
	}
}

// A process that has stopped in the middle of a change does not stop the others.
func TestStoppedWriter(t *testing.T) {
	one, other := two(t)
	err := one.Update(t.Context(), func(tx *Tx) error {
		require.NoError(t, tx.CreateOrganization(&Organization{Name: "frozen"}))
		_, err := tx.conn.Run("SET idle_in_transaction_session_timeout = '20ms'", nil) // not the 15 s that are read below
		require.NoError(t, err)
		organize(t, other, "goes on")
		return nil
	})
	require.ErrorIs(t, err, ErrUnavailable)
	require.Equal(t, []string{"goes on"}, names(t, one))
	view(t, one, func(tx *Tx) {
		require.NoError(t, tx.query("SELECT current_setting('idle_in_transaction_session_timeout')", func(c database.Cells) error {
			require.Equal(t, "1min", c.Text(0))
			return nil
		}))
	})
	update(t, one, func(tx *Tx) {
		require.NoError(t, tx.query("SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout')", func(c database.Cells) error {
			require.Equal(t, "15s 30s", c.Text(0)+" "+c.Text(1))
			return nil
		}))
	})
}

// keyOf is the data key of the installation that seals the texts of a store.
func keyOf(t testing.TB, s *Store) uint64 {
	t.Helper()
	token, err := s.SealText("text")
	require.NoError(t, err)
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, SealedPrefix))
	require.NoError(t, err)
	return binary.BigEndian.Uint64(sealed[1:])
}

// New data keys are taken up by the processes that run; a new master key is not
// given while they do, and ends those that it finds.
func TestKeysOfTwoProcesses(t *testing.T) {
	one, other := two(t)
	var w *world
	update(t, one, func(tx *Tx) { w = build(t, tx, "acme") })
	require.Equal(t, w.secrets(), secrets(t, other, w))
	before := keyOf(t, other)
	require.NoError(t, one.RotateDataKeys(t.Context()))
	require.Equal(t, w.secrets(), secrets(t, other, w))
	until(t, func() bool { return keyOf(t, other) != before })
	token, err := one.SealText("new")
	require.NoError(t, err)
	_, err = other.UnsealText(token)
	require.NoError(t, err)
	update(t, other, func(tx *Tx) { build(t, tx, "second") })
	require.Equal(t, w.secrets(), secrets(t, one, w))

	next := []byte(strings.Repeat("n", sealing.KeySize))
	_, err = one.Pool().Exec(t.Context(), "INSERT INTO processes VALUES ('p', 'all', '1', 'http://there', now(), clock_timestamp())")
	require.NoError(t, err)
	var owned *OwnedError
	require.ErrorAs(t, one.RotateMasterKey(t.Context(), next), &owned)
	require.Equal(t, "http://there", owned.Owner)
	_, err = one.Pool().Exec(t.Context(), "UPDATE processes SET seen = clock_timestamp() - interval '11 s'")
	require.NoError(t, err)
	require.NoError(t, one.RotateMasterKey(t.Context(), next))
	ran := false
	err = other.Update(t.Context(), func(*Tx) error { ran = true; return nil })
	require.ErrorIs(t, err, ErrWrongKey)
	require.False(t, ran, "a key that it made could be opened by nobody")
	require.Equal(t, w.secrets(), secrets(t, one, w))
	require.Len(t, names(t, other), 2, "reading goes on")
}

// A world that is replaced ends what other processes keep of it.
func TestRestoreUnderAnotherProcess(t *testing.T) {
	one, other := two(t)
	var w *world
	update(t, one, func(tx *Tx) { w = build(t, tx, "acme") })
	data := copyOf(t, one)
	update(t, one, func(tx *Tx) { build(t, tx, "gone") })
	require.Len(t, names(t, other), 2)
	seen := other.Generation()
	require.NoError(t, one.Restore(t.Context(), strings.NewReader(string(data))))
	until(t, func() bool { return other.Generation() != seen && other.keys.Epoch() == one.keys.Epoch() })
	require.Equal(t, []string{"acme"}, names(t, other))
	require.Equal(t, w.secrets(), secrets(t, other, w))
	organize(t, other, "after")
	require.Equal(t, []string{"acme", "after"}, names(t, one))

	_, err := Open(t.Context(), Options{URL: placeOf(one).URL, MasterKey: testKey, From: strings.NewReader(string(data))})
	require.ErrorIs(t, err, ErrHasData)
}

// A pool takes no connection on which nothing can be changed: it would keep those to a
// server that has become a standby.
func TestPoolTakesNoStandby(t *testing.T) {
	s := open(t, Options{}.a(t, onPG))
	admin := plain(t, "standby_admin")
	command(t, admin, "ALTER ROLE tester IN DATABASE postgres SET default_transaction_read_only = on")
	s.Pool().Reset()
	_, err := s.Pool().Exec(t.Context(), "SELECT 1")
	command(t, admin, "ALTER ROLE tester IN DATABASE postgres RESET default_transaction_read_only")
	require.ErrorIs(t, Explained(err), ErrUnavailable)
	require.ErrorContains(t, Explained(err), "read only")
	_, err = s.Pool().Exec(t.Context(), "SELECT 1")
	require.NoError(t, err)
}
