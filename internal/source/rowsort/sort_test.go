package rowsort

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/internal/source/internal/cell"
)

// listed hands out rows from memory, in its own memory that it reuses.
type listed struct {
	rows   [][][]byte
	at     int
	fail   error
	closed int
	buf    [][]byte
}

func (l *listed) Close() error { l.closed++; return nil }

func (l *listed) Next() ([][]byte, error) {
	if l.at == len(l.rows) {
		if l.fail != nil {
			return nil, l.fail
		}
		return nil, io.EOF
	}
	for _, cell := range l.buf {
		for i := range cell {
			cell[i] = '#' // earlier cells are not valid any more
		}
	}
	l.buf = l.buf[:0]
	for _, cell := range l.rows[l.at] {
		l.buf = append(l.buf, bytes.Clone(cell))
	}
	l.at++
	return l.buf, nil
}

func drain(t require.TestingT, rows Rows) (out [][][]byte) {
	for {
		values, err := rows.Next()
		if errors.Is(err, io.EOF) {
			_, err = rows.Next()
			require.ErrorIs(t, err, io.EOF, "the end stays the end")
			return out
		}
		require.NoError(t, err)
		row := make([][]byte, len(values))
		for i, v := range values {
			row[i] = bytes.Clone(v)
		}
		out = append(out, row)
	}
}

// TestSortIsStableSort compares the sorter, with any memory, with a stable sort.
func TestSortIsStableSort(t *testing.T) {
	scratch := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 4).Draw(t, "width")
		order := rapid.SliceOfN(rapid.IntRange(0, width-1), 1, 3).Draw(t, "order")
		limit := rapid.IntRange(1, 3000).Draw(t, "limit")
		cell := rapid.Custom(func(t *rapid.T) []byte {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				return []byte("null")
			case 1:
				return cell.AppendString(nil, rapid.StringMatching(`[a-c !"]{0,12}`).Draw(t, "text"))
			default:
				return []byte(fmt.Sprint(rapid.IntRange(-20, 200).Draw(t, "number")))
			}
		})
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, width, width), 0, 80).Draw(t, "rows")
		from := &listed{rows: rows}
		sorted, err := sortLimited(context.Background(), from, order, scratch, limit)
		require.NoError(t, err)
		got := drain(t, sorted)
		require.NoError(t, sorted.Close())

		want := slices.Clone(rows)
		slices.SortStableFunc(want, func(a, b [][]byte) int {
			for _, k := range order {
				if c := bytes.Compare(a[k], b[k]); c != 0 {
					return c
				}
			}
			return 0
		})
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
	})
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	require.Empty(t, left, "the file on disk has no name")
}

func TestSortFails(t *testing.T) {
	boom := errors.New("boom")
	from := &listed{rows: [][][]byte{{[]byte("1")}}, fail: boom}
	_, err := Sort(t.Context(), from, []int{0}, t.TempDir())
	require.ErrorIs(t, err, boom)
	require.Equal(t, 1, from.closed)

	many := make([][][]byte, 100)
	for i := range many {
		many[i] = [][]byte{[]byte("1")}
	}
	_, err = sortLimited(t.Context(), &listed{rows: many}, []int{0}, t.TempDir()+"/missing", 50)
	require.ErrorContains(t, err, "sort rows on disk: ")
	require.ErrorIs(t, err, os.ErrNotExist)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Sort(ctx, &listed{rows: many}, []int{0}, "")
	require.ErrorIs(t, err, context.Canceled)
}

// TestLongRowsWaitOnDisk: of long rows that are merged one is in memory, and of the
// others their keys.
func TestLongRowsWaitOnDisk(t *testing.T) {
	const long = 4 * wideRecord
	var rows [][][]byte
	for i := range 20 {
		rows = append(rows, [][]byte{bytes.Repeat([]byte{byte('a' + i)}, long), fmt.Appendf(nil, "%02d", (i*7)%20), []byte("short")})
	}
	sorted, err := sortLimited(t.Context(), &listed{rows: rows}, []int{1}, t.TempDir(), 50)
	require.NoError(t, err)
	defer sorted.Close()
	m, merged := sorted.(*merge)
	require.True(t, merged)
	held := 0
	for _, h := range m.heads {
		held += cap(h.record)
	}
	require.Less(t, held, long)
	want := slices.Clone(rows)
	slices.SortStableFunc(want, func(a, b [][]byte) int { return bytes.Compare(a[1], b[1]) })
	require.Equal(t, want, drain(t, sorted))
}
