package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// two are stores of two processes on one schema.
func two(t testing.TB) (one, other *Store) {
	t.Helper()
	o := Options{}.a(t, onPG)
	return open(t, o), open(t, o)
}

// heard gives what a store hears, without the first word that it listens.
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
			if !begun {
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

// until waits for what another process has to be told first.
func until(t testing.TB, what func() bool) {
	t.Helper()
	require.Eventually(t, what, 10*time.Second, time.Millisecond)
}

// caught waits until a store has heard of all changes so far.
func caught(t testing.TB, s *Store) {
	t.Helper()
	c, err := s.engine.(*postgres).dial(t.Context(), true)
	require.NoError(t, err)
	defer c.close()
	at, err := c.look()
	require.NoError(t, err)
	until(t, func() bool {
		s.news.mu.Lock()
		defer s.news.mu.Unlock()
		return s.news.seen >= at.generation
	})
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

// A process that cannot hear the others trusts nothing that it keeps, and hears
// again by itself.
func TestListenerIsCutOff(t *testing.T) {
	admin := plain(t, "cut_admin")
	one, other := two(t)
	said := heard(t, other)
	caught(t, other)
	require.Equal(t, other.Generation(), other.Generation())
	require.True(t, other.Hears())

	command(t, admin, "SELECT pg_terminate_backend(%d, 5000)", listener(t, admin))
	require.Equal(t, notice{}, <-said, "something may have been missed")
	organize(t, one, "missed")
	caught(t, other)
	require.NoError(t, one.Tell(t.Context(), "word", "again"))
	require.Equal(t, notice{"word", "again"}, <-said)

	// A connection that answers no question is none.
	silent := &news{store: other, start: time.Now().Add(-time.Hour)}
	silent.heard.Store(1)
	first := silent.generation()
	require.NotEqual(t, first, silent.generation())
	require.False(t, silent.hears())
}

// listener is the process of the server that the store hears by that was opened
// last.
func listener(t testing.TB, admin *link) (pid int64) {
	t.Helper()
	pid, err := numberOf(admin, "SELECT pid FROM pg_stat_activity WHERE query IN (?, ?) ORDER BY backend_start DESC LIMIT 1",
		readMoment, selectKeys+"workspace_id IS NULL")
	require.NoError(t, err)
	require.NotZero(t, pid)
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
		require.ErrorContains(t, tx.Notify("long", strings.Repeat("x", noticeRoom)), "up to 7900 bytes")
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

// Who is too slow is told that there was too much, and goes on.
func TestSlowListener(t *testing.T) {
	s := open(t, Options{}.a(t, onPG))
	said, reached, goOn := make(chan notice, 2*earRoom), make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	calls := 0
	go func() {
		ended <- s.Listen(ctx, func(topic, text string) {
			if calls++; calls == 2 {
				close(reached)
				<-goOn
			}
			said <- notice{topic, text}
		})
	}()
	require.Equal(t, notice{}, <-said)
	s.news.tell(notice{"first", ""})
	<-reached
	for n := range earRoom + 1 {
		s.news.tell(notice{"n", fmt.Sprint(n)})
	}
	close(goOn)
	require.Equal(t, notice{"first", ""}, <-said)
	require.Equal(t, notice{}, <-said)
	s.news.tell(notice{"after", ""})
	require.Equal(t, notice{"after", ""}, <-said)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
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

// Ten processes that start at once make one installation.
func TestManyStartAtOnce(t *testing.T) {
	o := Options{MasterKey: testKey}.a(t, onPG)
	stores := make([]*Store, 8)
	var starts sync.WaitGroup
	for i := range stores {
		starts.Go(func() {
			var err error
			if stores[i], err = Open(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	for _, s := range stores {
		require.NotNil(t, s)
		defer func() { require.NoError(t, s.Close()) }()
	}
	view(t, stores[0], func(tx *Tx) {
		n, err := tx.number("SELECT count(*) FROM data_keys")
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		n, err = tx.number("SELECT count(*) FROM installation")
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	})
	token, err := stores[1].SealText("text")
	require.NoError(t, err)
	text, err := stores[7].UnsealText(token)
	require.NoError(t, err)
	require.Equal(t, "text", text)
}

// A process of a program before stops when a newer one has migrated the schema,
// and works again with one of its own version.
func TestNewerProgramHasTheSchema(t *testing.T) {
	admin := plain(t, "newer_admin")
	s := open(t, Options{}.a(t, onPG))
	change := func(tx *Tx) error { return tx.SetSetting("k", "v") }
	require.NoError(t, s.Update(t.Context(), change))
	command(t, admin, "UPDATE %s.installation SET version = %d", s.Schema(), schemaVersion()+1)
	ran := false
	err := s.Update(t.Context(), func(*Tx) error { ran = true; return nil })
	require.ErrorIs(t, err, ErrNewer)
	require.ErrorContains(t, err, "start one that is as new as the data")
	require.NotErrorIs(t, err, ErrUnavailable)
	require.False(t, ran)
	require.ErrorIs(t, s.View(t.Context(), func(*Tx) error { return nil }), ErrNewer)
	require.ErrorIs(t, s.Tell(t.Context(), "x", ""), ErrNewer)
	require.ErrorIs(t, s.Restore(t.Context(), strings.NewReader(string(copyOf(t, open(t, Options{MasterKey: testKey}))))), ErrNewer)
	command(t, admin, "UPDATE %s.installation SET version = %d", s.Schema(), schemaVersion())
	require.NoError(t, s.Update(t.Context(), change))
	require.NoError(t, s.View(t.Context(), func(*Tx) error { return nil }))

	// Who only reads is told by the notice of the migration.
	command(t, admin, "UPDATE %[1]s.installation SET version = %[2]d; SELECT pg_notify('%[3]s', '= %[2]d 1 0')", s.Schema(), schemaVersion()+1, s.engine.(*postgres).notify)
	until(t, func() bool { return errors.Is(s.View(t.Context(), func(*Tx) error { return nil }), ErrNewer) })
}

// A schema of the version before is brought up to date, unless a process of that
// version has it, or who looks in is a visitor.
func TestSchemaOfTheVersionBefore(t *testing.T) {
	o := Options{MasterKey: testKey}.a(t, onPG)
	p, err := newPostgres(o)
	require.NoError(t, err)
	admin := plain(t, p.at.Schema)
	text, err := migrations.ReadFile("migrations/postgres/0001_rest.sql")
	require.NoError(t, err)
	command(t, admin, "%s", "CREATE SCHEMA "+p.at.Schema+"; "+installationTable+"; "+string(text)+"; UPDATE installation SET version = 1, owner = 'pid 7, http://x'")
	command(t, admin, "SELECT pg_advisory_lock(%d)", p.lock)

	_, err = Open(t.Context(), o)
	var owned *OwnedError
	require.ErrorAs(t, err, &owned)
	require.ErrorContains(t, err, "the schema "+p.at.Schema+" is in use by pid 7, http://x")
	command(t, admin, "SELECT pg_advisory_unlock(%d)", p.lock)
	o.Visit = true
	_, err = Open(t.Context(), o)
	require.ErrorIs(t, err, ErrUnfit)
	require.ErrorContains(t, err, "older version")
	o.Visit = false
	s := open(t, o)
	organize(t, s, "moved")
	o.Visit = true
	require.Equal(t, []string{"moved"}, names(t, open(t, o)))
}

// The transaction of an Update in the hands of others ends with it.
func TestTransactionForOthers(t *testing.T) {
	s := open(t, Options{}.a(t, onPG))
	_, err := s.Pool().Exec(t.Context(), "CREATE TABLE things (id BIGINT PRIMARY KEY)")
	require.NoError(t, err, "the schema is the search path")
	ctx := t.Context()
	count := func() (n int) {
		require.NoError(t, s.Pool().QueryRow(ctx, "SELECT count(*) FROM "+s.Schema()+".things").Scan(&n))
		return n
	}
	boom := errors.New("boom")
	insert := func(tx pgx.Tx, id int) error {
		_, err := tx.Exec(ctx, "INSERT INTO things (id) VALUES ($1)", id)
		return err
	}
	require.ErrorIs(t, s.Update(ctx, func(tx *Tx) error { return errors.Join(insert(tx.PostgreSQL(), 1), boom) }), boom)
	require.Zero(t, count())

	before := s.Generation()
	var kept pgx.Tx
	update(t, s, func(tx *Tx) {
		kept = tx.PostgreSQL()
		require.Same(t, kept, tx.PostgreSQL())
		require.NoError(t, insert(kept, 1))
		require.NoError(t, tx.CreateOrganization(&Organization{Name: "with it"}))
		require.Error(t, kept.Commit(ctx))
		require.Error(t, kept.Rollback(ctx))
		point, err := kept.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, insert(point, 2))
		require.Error(t, insert(point, 2))
		require.NoError(t, point.Rollback(ctx))
		require.ErrorIs(t, point.Rollback(ctx), pgx.ErrTxClosed)
		point, err = kept.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, insert(point, 3))
		require.NoError(t, point.Commit(ctx))
		rows, err := kept.Query(ctx, "SELECT id FROM things ORDER BY id")
		require.NoError(t, err)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int])
		require.NoError(t, err)
		require.Equal(t, []int{1, 3}, ids)
		n, err := kept.CopyFrom(ctx, pgx.Identifier{"things"}, []string{"id"}, pgx.CopyFromRows([][]any{{4}, {5}}))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		batch := &pgx.Batch{}
		batch.Queue("INSERT INTO things VALUES (6)")
		require.NoError(t, kept.SendBatch(ctx, batch).Close())
		_, err = kept.Prepare(ctx, "seven", "INSERT INTO things VALUES (7)")
		require.NoError(t, err)
		_, err = kept.Exec(ctx, "seven")
		require.NoError(t, err)
		require.NotNil(t, kept.Conn())
	})
	require.Equal(t, 6, count())
	require.Equal(t, []string{"with it"}, names(t, s))
	require.Greater(t, s.Generation(), before)

	// A failure that nobody tells of undoes all of it.
	err = s.Update(ctx, func(tx *Tx) error {
		require.Error(t, insert(tx.PostgreSQL(), 1))
		return nil
	})
	require.ErrorIs(t, err, errFailedBefore)
	require.NoError(t, s.Update(ctx, func(tx *Tx) error { return tx.SetSetting("k", "v") }))

	gone, cancel := context.WithCancel(ctx)
	cancel()
	update(t, s, func(tx *Tx) {
		kept := tx.PostgreSQL()
		_, err := kept.Exec(gone, "DELETE FROM things")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, kept.QueryRow(gone, "SELECT 1").Scan(), context.Canceled)
		_, err = kept.Query(gone, "SELECT 1")
		require.ErrorIs(t, err, context.Canceled)
		require.Error(t, kept.SendBatch(gone, &pgx.Batch{}).Close())
	})
	view(t, s, func(tx *Tx) { require.Nil(t, tx.PostgreSQL()) })
	require.Equal(t, 6, count())
}

// A process that has stopped in the middle of a change does not stop the others.
func TestStoppedWriter(t *testing.T) {
	one, other := two(t)
	err := one.Update(t.Context(), func(tx *Tx) error {
		require.NoError(t, tx.CreateOrganization(&Organization{Name: "frozen"}))
		command(t, tx.conn.(*link), "SET %s = '20ms'", idleTimeout) // not the 5 s that are read below
		organize(t, other, "goes on")
		return nil
	})
	require.ErrorIs(t, err, ErrUnavailable)
	require.Equal(t, []string{"goes on"}, names(t, one))
	view(t, one, func(tx *Tx) {
		require.NoError(t, tx.query("SELECT current_setting('idle_in_transaction_session_timeout')", func(c cells) error {
			require.Equal(t, "1min", c.text(0))
			return nil
		}))
	})
	update(t, one, func(tx *Tx) {
		require.NoError(t, tx.query("SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout')", func(c cells) error {
			require.Equal(t, "5s 30s", c.text(0)+" "+c.text(1))
			return nil
		}))
	})
}

// New data keys are taken up by the processes that run; a new master key is not
// given while they do, and ends those that it finds.
func TestKeysOfTwoProcesses(t *testing.T) {
	one, other := two(t)
	var w *world
	update(t, one, func(tx *Tx) { w = build(t, tx, "acme") })
	require.Equal(t, w.secrets(), secrets(t, other, w))
	before := other.keys.installation().id
	require.NoError(t, one.RotateDataKeys(t.Context()))
	require.Equal(t, w.secrets(), secrets(t, other, w))
	until(t, func() bool { return other.keys.installation().id != before })
	token, err := one.SealText("new")
	require.NoError(t, err)
	_, err = other.UnsealText(token)
	require.NoError(t, err)
	update(t, other, func(tx *Tx) { build(t, tx, "second") })
	require.Equal(t, w.secrets(), secrets(t, one, w))

	next := []byte(strings.Repeat("n", keySize))
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
	until(t, func() bool { return other.Generation() != seen && other.keys.now() == one.keys.now() })
	require.Equal(t, []string{"acme"}, names(t, other))
	require.Equal(t, w.secrets(), secrets(t, other, w))
	organize(t, other, "after")
	require.Equal(t, []string{"acme", "after"}, names(t, one))

	_, err := Open(t.Context(), Options{URL: placeOf(one).URL, MasterKey: testKey, From: strings.NewReader(string(data))})
	require.ErrorIs(t, err, ErrHasData)
}

// Clocks differ, and how much is told when it matters.
func TestSkewedClocks(t *testing.T) {
	var told []time.Duration
	p := &postgres{skewed: func(ahead time.Duration) { told = append(told, ahead) }}
	at := func(ahead, took time.Duration) { p.compare(time.Now().Add(ahead-took/2).UnixMicro(), took) }
	at(time.Second, 3*time.Second)
	require.Empty(t, told, "not known that well")
	at(-time.Hour, 0)
	at(-time.Hour, time.Minute)
	require.Len(t, told, 1)
	require.InDelta(t, -time.Hour, told[0], float64(time.Second))
	at(0, 0)
	require.Len(t, told, 2)
	require.InDelta(t, 0, told[1], float64(time.Second))
}
