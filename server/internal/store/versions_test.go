package store

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store/migrations"
	"github.com/destkit/destkit/server/internal/store/postgres"
)

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
	command(t, admin, "UPDATE %s.installation SET version = %d", s.Schema(), migrations.Version()+1)
	ran := false
	err := s.Update(t.Context(), func(*Tx) error { ran = true; return nil })
	require.ErrorIs(t, err, ErrNewer)
	require.ErrorContains(t, err, "start one that is as new as the data")
	require.NotErrorIs(t, err, ErrUnavailable)
	require.False(t, ran)
	require.ErrorIs(t, s.View(t.Context(), func(*Tx) error { return nil }), ErrNewer)
	require.ErrorIs(t, s.Tell(t.Context(), "x", ""), ErrNewer)
	require.ErrorIs(t, s.Restore(t.Context(), strings.NewReader(string(copyOf(t, open(t, Options{MasterKey: testKey}))))), ErrNewer)
	command(t, admin, "UPDATE %s.installation SET version = %d", s.Schema(), migrations.Version())
	require.NoError(t, s.Update(t.Context(), change))
	require.NoError(t, s.View(t.Context(), func(*Tx) error { return nil }))

	// Who only reads is told by the notice of the migration.
	command(t, admin, "UPDATE %[1]s.installation SET version = %[2]d; SELECT pg_notify('%[3]s', '= %[2]d 1 0')", s.Schema(), migrations.Version()+1, channel(s))
	until(t, func() bool { return errors.Is(s.View(t.Context(), func(*Tx) error { return nil }), ErrNewer) })
}

// A schema of the version before is brought up to date, unless a process of that
// version has it, or who looks in is a visitor.
func TestSchemaOfTheVersionBefore(t *testing.T) {
	const installation = `CREATE TABLE installation (id TEXT NOT NULL, version BIGINT NOT NULL, epoch BIGINT NOT NULL, owner TEXT NOT NULL);
		INSERT INTO installation VALUES (gen_random_uuid(), 0, 0, '')`
	o := Options{MasterKey: testKey}.a(t, onPG)
	at, err := postgres.Parse(o.URL, "")
	require.NoError(t, err)
	admin, lock := plain(t, at.Schema), int64(hashOfSchema(at.Schema))
	steps, err := migrations.Steps(migrations.Postgres)
	require.NoError(t, err)
	command(t, admin, "%s", "CREATE SCHEMA "+at.Schema+"; "+installation+"; "+steps[0]+"; UPDATE installation SET version = 1, owner = 'pid 7, http://x'")
	command(t, admin, "SELECT pg_advisory_lock(%d)", lock)

	_, err = Open(t.Context(), o)
	var owned *OwnedError
	require.ErrorAs(t, err, &owned)
	require.ErrorContains(t, err, "the schema "+at.Schema+" is in use by pid 7, http://x")
	command(t, admin, "SELECT pg_advisory_unlock(%d)", lock)
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
