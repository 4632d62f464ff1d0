package source

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// limited is a database with two rows, read within limits.
func limited(t *testing.T, l Limits) *sqliteSource {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	conn, err := handles.Open(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	require.NoError(t, err)
	require.NoError(t, sqlitex.ExecuteScript(conn, `CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);
		INSERT INTO t VALUES (1, 'x'), (2, hex(zeroblob(600000)))`, nil))
	require.NoError(t, handles.Close(conn))
	return &sqliteSource{path: path, scratch: t.TempDir(), options: Options{Limits: l}}
}

// drainAll reads to the end.
func drainAll(ctx context.Context, s *sqliteSource, o Object, order ...string) (n int, err error) {
	rows, err := s.Rows(ctx, o, nil, order)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; ; n++ {
		if _, err := rows.Next(); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

// TestQueriesKeepWithinTheirMemory: whatever a query makes much of little with is
// refused in the words of a limit, and costs no more than the limits say.
func TestQueriesKeepWithinTheirMemory(t *testing.T) {
	s := limited(t, Limits{Row: 1 << 20})
	const many = `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 100000) `
	for name, c := range map[string]struct{ query, part string }{
		"a random value":  {`SELECT randomblob(400000000) AS a`, "a row has more than 1048576 bytes"},
		"zeros":           {`SELECT length(hex(zeroblob(900000))) AS a`, "1048576 bytes"},
		"a wide row":      {`SELECT ` + strings.TrimSuffix(strings.Repeat(`randomblob(1000000) AS a_, `, 1), ", ") + `, randomblob(900000) AS b`, "--max-row"},
		"replacing":       {`SELECT replace(replace(hex(zeroblob(100000)), '0', '0123456789'), '0', '0123456789') AS a`, "1048576 bytes"},
		"concatenation":   {many + `SELECT group_concat(x, 'xxxxxxxxxxxxxxxxxxxx') AS a FROM c`, "1048576 bytes"},
		"JSON of all":     {many + `SELECT json_group_array(x || 'xxxxxxxxxx') AS a FROM c`, "1048576 bytes"},
		"a long query":    {`SELECT '` + strings.Repeat("x", longestQuery) + `' AS a`, "too"},
		"a deep query":    {`SELECT ` + strings.Repeat("(1+", 300) + "1" + strings.Repeat(")", 300) + ` AS a`, "depth"},
		"many selections": {strings.Repeat(`SELECT 1 AS a UNION ALL `, 600) + `SELECT 1 AS a`, "too many terms"},
		"attaching":       {`ATTACH 'other.db' AS b`, "must be one SELECT"},
		"a pragma":        {`PRAGMA hard_heap_limit=0`, "must be one SELECT"},
		"an extension":    {`SELECT load_extension('x') AS a`, "not authorized"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := drainAll(t.Context(), s, Object{Query: c.query})
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, c.part)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
		})
	}
	// Stored rows have the same limit, even if the long column is not selected.
	_, err := drainAll(t.Context(), s, Object{Name: "t"}, "id")
	require.ErrorContains(t, err, "a row has more than 1048576 bytes")
	n, err := drainAll(t.Context(), limited(t, Limits{}), Object{Name: "t"}, "id")
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

// TestManyLongValuesAreRefusedTogether: values that are short enough one by one do
// not fill the memory together.
func TestManyLongValuesAreRefusedTogether(t *testing.T) {
	s := limited(t, Limits{})
	columns := make([]string, 100)
	for i := range columns {
		columns[i] = "hex(zeroblob(8000000)) AS c_" + string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	_, err := drainAll(t.Context(), s, Object{Query: "SELECT " + strings.Join(columns, ", ")})
	require.ErrorIs(t, err, errMemory)
	n, err := drainAll(t.Context(), s, Object{Name: "t"}, "id")
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

// TestQueriesHaveADeadline: a source that gives no row for too long is given up, and
// one whose rows are fetched slowly is not.
func TestQueriesHaveADeadline(t *testing.T) {
	s := limited(t, Limits{Query: 50 * time.Millisecond})
	for _, order := range [][]string{nil, {"a"}} {
		_, err := drainAll(t.Context(), s, Object{Query: `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS a FROM c WHERE x < 0`}, order...)
		require.ErrorContains(t, err, "the source has given no row for 50ms")
		require.ErrorContains(t, err, "--query-timeout")
	}
	_, err := s.Columns(t.Context(), Object{Query: `SELECT 1 AS a`})
	require.NoError(t, err)
	own, w := Limits{Query: time.Millisecond}.watched(t.Context())
	w.opened()
	for range 100 { // whoever fetches the rows takes all the time that it wants
		w.look()
	}
	require.NoError(t, own.Err())
	w.enter()
	for range 12 {
		w.look()
	}
	require.ErrorContains(t, context.Cause(own), "no row for 1ms")
	w.stop()
}

// TestQueriesEndWhenTheyAreCancelled: in the middle of one step.
func TestQueriesEndWhenTheyAreCancelled(t *testing.T) {
	s := limited(t, Limits{})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	go cancel(gone)
	_, err := drainAll(ctx, s, Object{Query: `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS a FROM c WHERE x < 0`})
	require.ErrorIs(t, err, gone)
}

// TestMessagesOfServersAreBounded: a length that a message announces is refused before
// room is made for it, wherever the pieces of the stream are cut.
func TestMessagesOfServersAreBounded(t *testing.T) {
	message := func(n int) string {
		return "D" + string([]byte{byte((n + 4) >> 24), byte((n + 4) >> 16), byte((n + 4) >> 8), byte(n + 4)})
	}
	for _, one := range []bool{true, false} {
		from := io.Reader(strings.NewReader(message(3) + "abc" + message(0) + message(10) + "0123456789"))
		if one {
			from = iotest.OneByteReader(from)
		}
		text, err := io.ReadAll(&messageLimit{from: from, limits: Limits{Row: 10}})
		require.NoError(t, err)
		require.Len(t, text, 28)
		from = strings.NewReader(message(3) + "abc" + message(1<<30) + "x")
		if one {
			from = iotest.OneByteReader(from)
		}
		_, err = io.ReadAll(&messageLimit{from: from, limits: Limits{Row: 10}})
		require.ErrorContains(t, err, "a row has more than 10 bytes")
	}
}
