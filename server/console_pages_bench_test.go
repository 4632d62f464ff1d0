//go:build unix

package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/console"
)

// processorTime is what this process has taken so far.
func processorTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSyncWithOpenPages is what fifty open pages of the console cost a full sync of
// 200,000 rows: runs with and without them in turns, by the processor time of service,
// destination and pages together. "more-%" is the difference of the medians.
func BenchmarkSyncWithOpenPages(b *testing.B) {
	const rows, pages = 200_000, 50
	w := newWorld(b, func(c *Config) { c.Development = false })
	conn, err := sqlite.OpenConn(w.sourceFile())
	require.NoError(b, err)
	require.NoError(b, sqlitex.ExecuteScript(conn, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO customers SELECT i, 'person' || i || '@example.com', 'Person ' || i, i %% 90, i * 0.5, '2026-01-02T03:04:05Z' FROM n;`, rows), nil))
	require.NoError(b, conn.Close())
	id := w.syncFrom(origin{
		connection: map[string]any{"name": "Shop", "type": "sqlite", "credentials": map[string]any{"path": w.source}},
		object:     map[string]any{"type": "table", "table_catalog": "main", "table_schema": "main", "table_name": "customers"},
	}, nil)
	require.Equal(b, "completed", w.oneRun(id).at("data.status"))
	front := httptest.NewServer(w.s)
	defer front.Close()
	views := []string{"/", "/requests", "/calls", "/clock", fmt.Sprintf("/workspaces/1/syncs/%d", id)}
	full := func() time.Duration {
		began := processorTime(b)
		run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, map[string]any{"force_full_sync": true}).want(http.StatusOK).id("data.sync_run_id")
		w.control("POST", "/settle", nil).want(http.StatusOK)
		took := processorTime(b) - began
		ended := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(http.StatusOK)
		require.Equal(b, int64(rows), ended.id("data.records_processed"))
		return took
	}
	watched := func() time.Duration {
		ctx, leave := context.WithCancel(b.Context())
		defer leave()
		for i := range pages {
			r, err := http.NewRequestWithContext(ctx, "GET", front.URL+console.Path+"/live?page="+views[i%len(views)], nil)
			require.NoError(b, err)
			answer, err := front.Client().Do(r)
			require.NoError(b, err)
			defer answer.Body.Close()
			require.Equal(b, http.StatusOK, answer.StatusCode, views[i%len(views)])
			lines := bufio.NewReader(answer.Body)
			_, err = lines.ReadString('\n')
			require.NoError(b, err)
			go func() { _, _ = io.Copy(io.Discard, lines) }()
		}
		return full()
	}
	full() // the destination has all records from now on
	var alone, seen []time.Duration
	for b.Loop() {
		alone = append(alone, full())
		seen = append(seen, watched())
	}
	middle := func(all []time.Duration) float64 {
		slices.Sort(all)
		return all[len(all)/2].Seconds()
	}
	b.ReportMetric(middle(alone), "cpu-s/alone")
	b.ReportMetric(middle(seen), "cpu-s/pages")
	b.ReportMetric(100*(middle(seen)/middle(alone)-1), "more-%")
}
