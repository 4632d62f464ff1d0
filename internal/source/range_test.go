package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// readRange reads the cells of rows as one text each.
func readRange(t testing.TB, src Source, object Object, columns []string, of Range) (out []string) {
	t.Helper()
	rows, err := src.(Ranger).Range(t.Context(), object, columns, of)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for {
		values, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("[%s]", bytes.Join(values, []byte(","))))
	}
}

// rangesOf holds ranges that follow each other against the whole.
func rangesOf(t *testing.T, src Source, object Object, column string, columns ...string) {
	t.Helper()
	whole := readAll(t, src, object, columns, []string{column})
	sample, rows, err := src.(Ranger).Sample(t.Context(), object, column)
	require.NoError(t, err)
	require.EqualValues(t, len(whole), rows)
	require.NotEmpty(t, sample)
	require.True(t, slices.IsSortedFunc(sample, bytes.Compare))
	for _, count := range []int{1, 2, 5, 40} {
		var bounds [][]byte
		for i := 1; i < count; i++ {
			at := sample[i*len(sample)/count]
			if len(bounds) == 0 || !bytes.Equal(bounds[len(bounds)-1], at) {
				bounds = append(bounds, at)
			}
		}
		var parts []string
		for i := range len(bounds) + 1 {
			of := Range{Column: column}
			if i > 0 {
				of.From = bounds[i-1]
			}
			if i < len(bounds) {
				of.To = bounds[i]
			}
			parts = append(parts, readRange(t, src, object, columns, of)...)
		}
		require.Equal(t, whole, parts, "%d ranges", count)
	}
}

func TestRangesOfASQLiteTable(t *testing.T) {
	path := database(t, `CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);
		INSERT INTO t VALUES (-9223372036854775808, 'least'), (9223372036854775807, 'most'), (0, 'zero'), (-1, 'one'), (-10, 'ten'), (-9, 'nine');
		WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 3000) INSERT INTO t SELECT v, 'n' || v FROM n;
		CREATE TABLE u (code TEXT PRIMARY KEY, name TEXT, early TEXT, size REAL UNIQUE) WITHOUT ROWID; CREATE INDEX early ON u (early) WHERE early > 'a';
		INSERT INTO u SELECT char(30 + v % 70) || substr(' a!b"\\c', v % 9, v % 4) || v, 'n' || v, 'e', v FROM (SELECT id AS v FROM t WHERE id BETWEEN 1 AND 2500);
		INSERT INTO u VALUES ('a', 1, 1, 0.1), ('a b', 2, 2, 0.2), ('a!', 3, 3, 0.3), ('a"', 4, 4, 0.4), ('ä', 5, 5, 0.5), (CAST(x'61ff' AS TEXT), 6, 6, 0.6), (x'6162', 7, 7, 0.7);
		CREATE TABLE names (id INTEGER PRIMARY KEY, name VARCHAR(20)); CREATE INDEX by_name ON names (name, id); INSERT INTO names SELECT id, name FROM t; INSERT INTO names (name) VALUES (NULL), (NULL);
		CREATE VIEW seen AS SELECT * FROM names; CREATE TABLE empty (id INTEGER PRIMARY KEY)`)
	src := open(t, "sqlite", map[string]any{"path": path}, Options{})
	rangesOf(t, src, Object{Name: "t"}, "id", "name", "id")
	rangesOf(t, src, Object{Name: "u"}, "code", "name", "code")
	rangesOf(t, src, Object{Name: "names"}, "name", "name")
	for object, column := range map[string]string{"u": "name", "u ": "early", "U": "size", "seen": "name"} {
		object = strings.TrimSpace(object)
		sample, _, err := src.(Ranger).Sample(t.Context(), Object{Name: object}, column)
		require.NoError(t, err)
		require.Empty(t, sample, "%s of %s has no index, or no texts", column, object)
		_, err = src.(Ranger).Range(t.Context(), Object{Name: object}, []string{column}, Range{Column: column})
		require.ErrorIs(t, err, ErrNoRange)
	}
	sample, rows, err := src.(Ranger).Sample(t.Context(), Object{Name: "empty"}, "id")
	require.NoError(t, err)
	require.Zero(t, rows)
	require.Empty(t, sample)
	sample, _, err = src.(Ranger).Sample(t.Context(), Object{Query: "SELECT id FROM t"}, "id")
	require.NoError(t, err)
	require.Empty(t, sample)
}

func TestRangesOfAGenerator(t *testing.T) {
	for _, rows := range []int{1, 9, 10, 11, 1234} {
		src := open(t, "generator", map[string]any{"rows": rows}, Options{})
		rangesOf(t, src, Object{Name: "generated"}, "id", "id", "email")
	}
	src := open(t, "generator", map[string]any{"rows": 10}, Options{})
	sample, rows, err := src.(Ranger).Sample(t.Context(), Object{Name: "generated"}, "email")
	require.NoError(t, err)
	require.EqualValues(t, 10, rows)
	require.Empty(t, sample)
	_, err = src.(Ranger).Range(t.Context(), Object{Name: "generated"}, nil, Range{Column: "email"})
	require.ErrorIs(t, err, ErrNoRange)
}

func TestTheFirstNumberByDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 1200).Draw(t, "limit")
		from := []byte(rapid.StringMatching(`[0-9]{0,5}`).Draw(t, "from"))
		want := int64(0)
		for n := int64(1); n <= limit; n++ {
			text := strconv.FormatInt(n, 10)
			if text >= string(from) && (want == 0 || text < strconv.FormatInt(want, 10)) {
				want = n
			}
		}
		require.Equal(t, want, firstByDigits(from, limit), "first of %d not below %q", limit, from)
	})
}

func TestTheBoundsOfALane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64Range(-2000, 2000), rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
		bound := func(name string) []byte {
			if rapid.Bool().Draw(t, "no "+name) {
				return nil
			}
			return strconv.AppendInt(nil, number.Draw(t, name), 10)
		}
		r := Range{From: bound("from"), To: bound("to")}
		n := number.Draw(t, "number")
		text := strconv.AppendInt(nil, n, 10)
		inside := bytes.Compare(text, r.From) >= 0 && (r.To == nil || bytes.Compare(text, r.To) < 0)
		found := false
		require.NoError(t, lanes(func(low, high int64, _ bool) error {
			low, high, ok := r.bounds(low, high)
			found = found || ok && low <= n && n <= high
			return nil
		}))
		require.Equal(t, inside, found, "%d in [%s, %s)", n, r.From, r.To)
	})
}
