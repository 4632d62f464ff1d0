package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store/migrations"
)

// notice is what is heard.
type notice struct{ topic, text string }

// heard gives what a store hears, without the first word that it listens and those of
// caught.
func heard(t testing.TB, s *Store) <-chan notice {
	t.Helper()
	all, ready := make(chan notice, 100), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var first sync.Once
	go func() {
		ended <- s.Listen(ctx, func(topic, text string) {
			begun := false
			first.Do(func() { begun = true; close(ready) })
			if !begun && topic != "caught" {
				all <- notice{topic, text}
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
	<-ready
	return all
}

// A process that cannot hear the others trusts nothing that it keeps, and hears
// again by itself.
func TestListenerIsCutOff(t *testing.T) {
	admin := plain(t, "cut_admin")
	one, other := two(t)
	said := heard(t, other)
	caught(t, other)
	require.Equal(t, other.Generation(), other.Generation())
	require.True(t, other.Hears())

	command(t, admin, "SELECT pg_terminate_backend(%d, 5000)", listener(t, admin, other))
	require.Equal(t, notice{}, <-said, "something may have been missed")
	organize(t, one, "missed")
	caught(t, other)
	require.NoError(t, one.Tell(t.Context(), "word", "again"))
	require.Equal(t, notice{"word", "again"}, <-said)
}

// Every role of the database may give notices. What a false one says of the schema is
// not believed, and does not hide the next change.
func TestFalseNotices(t *testing.T) {
	one, other := two(t)
	admin := plain(t, "false_notices")
	said := heard(t, other)
	organize(t, one, "first")
	caught(t, other)
	for _, text := range []string{
		fmt.Sprintf("= %d 9223372036854775807 0", migrations.Version()), "= 999999 1 0", fmt.Sprintf("= %d 1 77", migrations.Version()), "= x", "=", "", " ", "=  -1",
	} {
		command(t, admin, "NOTIFY \"%s\", '%s'", channel(one), text)
		require.NoError(t, one.Tell(t.Context(), "after", text))
		for n := range said {
			if n == (notice{"after", text}) {
				break
			}
		}
		require.NoError(t, other.View(t.Context(), func(*Tx) error { return nil }), text)
		before := other.Generation()
		organize(t, one, "next")
		require.NoError(t, one.Tell(t.Context(), "after", "change"))
		for n := range said {
			if n == (notice{"after", "change"}) {
				break
			}
		}
		require.NotEqual(t, before, other.Generation(), text)
		require.Equal(t, int64(0), other.keys.Epoch())
		organize(t, other, "own")
	}
}

// listener is the process of the server by which the one of two stores hears that was
// opened last. A lock tells it from those of other tests: both stores ask for the state of
// their schema every second, and wait for it.
func listener(t testing.TB, admin *pgx.Conn, s *Store) (pid int64) {
	t.Helper()
	tx, err := admin.Begin(t.Context())
	require.NoError(t, err)
	table := fmt.Sprintf("%q.installation", s.Schema())
	_, err = tx.Exec(t.Context(), "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	until(t, func() bool {
		var waiting int
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT count(*), coalesce((array_agg(pid ORDER BY backend_start DESC))[1], 0)
			FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE relation = $1::text::regclass AND NOT granted`, table).Scan(&waiting, &pid))
		return waiting == 2
	})
	require.NoError(t, tx.Rollback(t.Context()))
	return pid
}

// Notices are part of the change, and reach every process in order.
func TestNotices(t *testing.T) {
	one, other := two(t)
	here, there := heard(t, one), heard(t, other)
	update(t, one, func(tx *Tx) {
		require.NoError(t, tx.Notify("run", "1"))
		require.NoError(t, tx.CreateOrganization(&Organization{Name: "x"}))
		require.NoError(t, tx.Notify("run", "2 and more"))
		for _, wrong := range []string{"", "=", "two words", "nul\x00"} {
			require.Error(t, tx.Notify(wrong, ""))
		}
		require.ErrorContains(t, tx.Notify("long", strings.Repeat("x", 7900)), "up to 7900 bytes")
		require.ErrorContains(t, tx.Notify("nul", "\x00"), "no U+0000")
	})
	require.Error(t, one.Update(t.Context(), func(tx *Tx) error {
		require.NoError(t, tx.Notify("run", "undone"))
		return errors.New("boom")
	}))
	update(t, other, func(tx *Tx) { require.NoError(t, tx.Notify("alone", "")) })
	require.NoError(t, one.Tell(t.Context(), "last", "é"))
	require.Error(t, one.Tell(t.Context(), "two words", ""))
	for _, news := range []<-chan notice{here, there} {
		require.Equal(t, []notice{{"run", "1"}, {"run", "2 and more"}, {"alone", ""}, {"last", "é"}}, []notice{<-news, <-news, <-news, <-news})
	}
}
