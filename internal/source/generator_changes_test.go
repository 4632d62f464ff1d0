package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// changing is a generator whose clock is so many steps after its start.
func changing(t testing.TB, rows, inserts, updates, deletes int64) (src Source, at func(step int64)) {
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	now := start
	src = open(t, "generator", map[string]any{
		"rows": rows, "seed": 3, "columns": []any{
			map[string]any{"name": "id", "type": "id"}, map[string]any{"name": "email", "type": "email"},
			map[string]any{"name": "value", "type": "string"}, map[string]any{"name": "changed", "type": "changed_at"},
		},
		"changes": map[string]any{"every": "1h", "inserts": inserts, "updates": updates, "deletes": deletes},
	}, Options{Now: func() time.Time { return now }, Since: start})
	return src, func(step int64) { now = start.Add(time.Duration(step)*time.Hour + time.Minute) }
}

// rowsByID is the table as a map from id to the rest of the row.
func rowsByID(t testing.TB, src Source, order ...string) (rows map[int64]string, ids []string) {
	rows = map[int64]string{}
	for _, line := range readAll(t, src, Object{Name: "generated"}, nil, order) {
		id, rest, _ := strings.Cut(strings.Trim(line, "[]"), ",")
		n, err := strconv.ParseInt(id, 10, 64)
		require.NoError(t, err)
		require.NotContains(t, rows, n)
		rows[n], ids = rest, append(ids, id)
	}
	return rows, ids
}

// TestGeneratedChanges: each step adds, changes and removes exactly the configured rows, the
// oldest first, and the rows still come in the order of their keys.
func TestGeneratedChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		inserts, updates, deletes := rapid.Int64Range(0, 9).Draw(rt, "inserts"), rapid.Int64Range(0, 9).Draw(rt, "updates"), rapid.Int64Range(0, 9).Draw(rt, "deletes")
		if inserts+updates+deletes == 0 {
			inserts = 1
		}
		rows := rapid.Int64Range(0, 120).Draw(rt, "rows")
		src, at := changing(t, rows, inserts, updates, deletes)
		step := rapid.Int64Range(0, 40).Draw(rt, "step")
		at(step)
		before, _ := rowsByID(t, src)
		if step == 0 {
			require.Len(rt, before, int(rows))
		}
		at(step + 1)
		after, ids := rowsByID(t, src, "id")
		require.True(rt, slices.IsSorted(ids))
		var added, changed, removed, oldest int64
		for id, row := range after {
			was, there := before[id]
			switch {
			case !there:
				added++
			case was != row:
				changed++
				require.True(rt, strings.HasSuffix(row, fmt.Sprintf(`"2026-12-%02dT%02d:00:00Z"`, 1+(step+1)/24, (step+1)%24)), row)
				require.Equal(rt, strings.Split(was, ",")[0], strings.Split(row, ",")[0], "the email stays")
			}
		}
		for id := range before {
			if _, there := after[id]; !there {
				removed++
				oldest = max(oldest, id)
			}
		}
		for id := range after {
			require.Greater(rt, id, oldest)
		}
		require.Equal(rt, inserts, added)
		require.Equal(rt, min(deletes, int64(len(before))), removed)
		if int64(len(before)) >= updates+deletes {
			require.Equal(rt, updates, changed)
		}
		again, _ := rowsByID(t, src)
		require.Equal(rt, after, again, "the same moment, the same rows")
		at(step)
		again, _ = rowsByID(t, src)
		require.Equal(rt, before, again, "a clock that is set back")
	})
}

// TestGeneratedChangesAreBounded: many steps over few rows, and many changes over
// many rows.
func TestGeneratedChangesAreBounded(t *testing.T) {
	src, at := changing(t, 10, 0, 1000, 0)
	at(50_000)
	few, _ := rowsByID(t, src)
	require.Len(t, few, 10)
	src, at = changing(t, 10, 5, 3, 5)
	at(200_000) // hours: 22 years
	steady, _ := rowsByID(t, src)
	require.Len(t, steady, 10)
}

// TestGeneratedChangesNeedNoMemory reads ten million rows by key with changes.
func TestGeneratedChangesNeedNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads ten million rows")
	}
	const rows = 10_000_000
	src, at := changing(t, rows, 1000, 1000, 1000)
	at(1000)
	all, err := src.(Reader).Rows(t.Context(), Object{Name: "generated"}, []string{"id"}, []string{"id"})
	require.NoError(t, err)
	defer all.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var last []byte
	n := 0
	for ; ; n++ {
		row, err := all.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || bytes.Compare(last, row[0]) >= 0 {
			t.Fatal(n, err, string(last), string(row[0]))
		}
		last = append(last[:0], row[0]...)
	}
	runtime.ReadMemStats(&after)
	require.Equal(t, rows, n)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestGeneratorChangesProblems(t *testing.T) {
	for name, tc := range map[string]struct{ changes, want string }{
		"no object":         {`"1h"`, "credentials.changes: must be an object with every"},
		"nothing changes":   {`{"every":"1h"}`, "credentials.changes: must be an object with every"},
		"no every":          {`{"inserts":1}`, "credentials.changes.every: must be a duration of 1s or more"},
		"short every":       {`{"every":"10ms","inserts":1}`, "credentials.changes.every: must be"},
		"number as every":   {`{"every":60,"inserts":1}`, "credentials.changes.every: must be"},
		"negative":          {`{"every":"1h","deletes":-1}`, "credentials.changes.deletes: must be a whole number of 0 to 1000000000"},
		"fraction":          {`{"every":"1h","updates":1.5}`, "credentials.changes.updates: must be a whole number"},
		"from":              {`{"every":"1h","inserts":1,"from":"now"}`, "credentials.changes.from: must be a moment"},
		"unknown":           {`{"every":"1h","insert":1,"inserts":1}`, "credentials.changes.insert: is not known"},
		"fine":              {`{"every":"90m","inserts":1,"from":"2026-12-01T00:00:00Z"}`, ""},
		"nothing to change": {`{"every":"1h","updates":1}`, "credentials.changes.updates: needs a column of another type"},
	} {
		t.Run(name, func(t *testing.T) {
			credentials := map[string]json.RawMessage{"rows": json.RawMessage("5"), "changes": json.RawMessage(tc.changes)}
			if name == "nothing to change" {
				credentials["columns"] = json.RawMessage(`[{"name":"id","type":"id"}]`)
			}
			var got []string
			for _, p := range CheckCredentials("generator", credentials) {
				got = append(got, p.String())
			}
			if tc.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0], tc.want)
		})
	}
}
