package rowsort_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/api"
)

// twoRows is a database with two rows that is open.
func twoRows(t *testing.T) source.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	conn, err := handles.Open(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	require.NoError(t, err)
	require.NoError(t, sqlitex.ExecuteScript(conn, `CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2)`, nil))
	require.NoError(t, handles.Close(conn))
	src, err := source.Open(t.Context(), "sqlite", map[string]json.RawMessage{"path": api.Raw(path)}, source.Options{Scratch: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, src.Close()) })
	return src.(source.Reader)
}

// TestWideRowsAreSortedInTurn: a sort waits for its turn to take a wide row, as long as
// its context is valid, and gives the turn back with the row on disk.
func TestWideRowsAreSortedInTurn(t *testing.T) {
	s := twoRows(t)
	wide := source.Object{Query: "SELECT 3 - id AS id, hex(zeroblob(1000000)) AS long FROM t"}
	reason := errors.New("told to stop")
	rowsort.SortTurn <- struct{}{}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
	_, err := s.Rows(ctx, wide, nil, []string{"id"})
	require.ErrorIs(t, err, reason)
	<-rowsort.SortTurn
	waits := 0
	ctx = rowsort.WithWide(t.Context(), func() error { waits++; return nil })
	rows, err := s.Rows(ctx, wide, nil, []string{"id"})
	require.NoError(t, err)
	require.Zero(t, waits, "nothing is handed out yet")
	require.Empty(t, rowsort.SortTurn, "the turn is given back")
	for _, want := range []string{"1", "2"} {
		row, err := rows.Next()
		require.NoError(t, err)
		require.Equal(t, want, string(row[0]))
		require.Len(t, row[1], 2_000_002)
	}
	require.Equal(t, 2, waits)
	_, err = rows.Next()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, rows.Close())
}
