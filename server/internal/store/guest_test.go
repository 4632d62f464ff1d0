package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

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

	// A failure that is not told of undoes all of it.
	err = s.Update(ctx, func(tx *Tx) error {
		require.Error(t, insert(tx.PostgreSQL(), 1))
		return nil
	})
	require.ErrorContains(t, err, "the transaction had failed before")
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

// What ends the connection of an Update is told as the store tells it, also where the
// statement of another met it and put words of its own before it.
func TestGuestsFailAsTheStoreDoes(t *testing.T) {
	s := open(t, Options{}.a(t, onPG))
	admin := s.Pool()
	err := s.Update(t.Context(), func(tx *Tx) error {
		guest := tx.PostgreSQL()
		_, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend($1, 5000)", int64(guest.Conn().PgConn().PID()))
		require.NoError(t, err)
		_, err = guest.Exec(t.Context(), "SELECT 1")
		require.Error(t, err)
		return fmt.Errorf("enqueue run 7: %w", err)
	})
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "enqueue run 7")
	require.True(t, Passing(err))

	boom := errors.New("boom")
	err = s.Update(t.Context(), func(tx *Tx) error { tx.PostgreSQL(); return boom })
	require.Equal(t, boom, err)
	require.NoError(t, s.Update(t.Context(), func(tx *Tx) error { return tx.SetSetting("k", "v") }))
}
