package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
)

// TestSortOnDisk: more than fits goes to disk and comes back whole.
func TestSortOnDisk(t *testing.T) {
	pad := string(bytes.Repeat([]byte("x"), 500))
	src := open(t, "jsonl", map[string]any{"path": testkit.WriteFile(t, "a.jsonl", func() string {
		var b bytes.Buffer
		for i := range 40_000 {
			fmt.Fprintf(&b, "{\"k\":%d,\"pad\":%q}\n", (i*7919)%40_000, pad)
		}
		return b.String()
	}())}, Options{Scratch: t.TempDir()})
	rows, err := src.(Reader).Rows(t.Context(), Object{Name: "a"}, []string{"k", "pad"}, []string{"k"})
	require.NoError(t, err)
	require.Equal(t, "*rowsort.merge", fmt.Sprintf("%T", rows))
	var last string
	n := 0
	for {
		values, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Greater(t, string(values[0]), last)
		require.Len(t, values[1], 502)
		require.True(t, json.Valid(values[1]))
		last = string(values[0])
		n++
	}
	require.Equal(t, 40_000, n)
	require.NoError(t, rows.Close())
}

// TestSortsSayWhyTheyFail: the reason of a reading that is sorted is that of the reading.
func TestSortsSayWhyTheyFail(t *testing.T) {
	_, err := limited(t, Limits{}).Rows(t.Context(), Object{Query: "SELECT id, zeroblob(400000000) AS long FROM t"}, nil, []string{"id"})
	require.ErrorContains(t, err, "a row has more than")
}
