//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// BenchmarkPartsOverProcesses: how many records per second one, two and three workers
// send of one run: a table of 1,000,000 rows in PostgreSQL whose rows were sent never
// before, in batches of 1,000, to a destination that takes 200 ms for each. One worker
// sends the run as a whole; more of them have a part each. The database writes through
// to the disk, and one process more serves the API.
//
// The destination allows so many batches at once from the sync, whoever sends them:
// sixteen are 80,000 records per second at most, fifty are 250,000. What is below that
// is the work of the processes. DESTKIT_BENCH_ROWS takes another number of rows; below
// 300,000 there are not three parts.
func BenchmarkPartsOverProcesses(b *testing.B) {
	rows := int64(1_000_000)
	if text := os.Getenv("DESTKIT_BENCH_ROWS"); text != "" {
		var err error
		rows, err = strconv.ParseInt(text, 10, 64)
		require.NoError(b, err)
	}
	for _, parallel := range []int{16, 50} {
		for _, workers := range []int{1, 2, 3} {
			b.Run(fmt.Sprintf("batches=%d/workers=%d", parallel, workers), func(b *testing.B) { benchmarkParts(b, rows, parallel, workers) })
		}
	}
}

func benchmarkParts(b *testing.B, rows int64, parallel, workers int) {
	in := newInstallation(b)
	in.throughToTheDisk(b)
	in.start("api")
	for range workers {
		in.start("worker", "--workers", "1")
	}
	from := in.make("/sources", map[string]any{"connection": map[string]any{
		"name": "rows", "type": "postgres", "credentials": in.table(b, rows),
	}})
	for b.Loop() {
		b.StopTimer()
		to := in.destination(fmt.Sprintf("destination %d", time.Now().UnixNano()), simulatorOfThings(b, 1, parallel, 200))
		id := in.sync(from, to, thing(0), api.OperationUpsert, map[string]any{
			"type": api.ObjectTable, "table_catalog": partsDatabase, "table_schema": "public", "table_name": "people",
		}, "id", "email", "city")
		b.StartTimer()
		r := in.wait(in.run(id))
		b.StopTimer()
		require.Equal(b, api.RunCompleted, r.Status, "%v", r.ErrorMessage)
		require.EqualValues(b, rows, number(r.RecordsUpdated))
		if parts := in.parts(b, id); workers > 1 {
			require.Equal(b, workers, parts, "each has a part")
		} else {
			require.Zero(b, parts, "it was not cut")
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

const partsDatabase = "parts_bench"

// table makes the source in a database of its own, once for all that ask for so many
// rows, and gives its credentials.
func (in *installation) table(b *testing.B, rows int64) map[string]any {
	b.Helper()
	credentials := in.database.Credentials()
	credentials["database"] = partsDatabase
	address := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s", credentials["host"], in.database.Port, credentials["username"], credentials["password"], partsDatabase)
	var made int64
	if conn, err := pgx.Connect(b.Context(), address); err == nil {
		err = conn.QueryRow(b.Context(), "SELECT count(*) FROM people").Scan(&made)
		require.NoError(b, err)
		require.NoError(b, conn.Close(context.Background()))
	}
	if made == rows {
		return credentials
	}
	_, err := in.admin.Exec(b.Context(), "CREATE DATABASE "+partsDatabase)
	require.NoError(b, err)
	conn, err := pgx.Connect(b.Context(), address)
	require.NoError(b, err)
	defer func() { require.NoError(b, conn.Close(context.Background())) }()
	for _, statement := range []string{
		"CREATE TABLE people (id bigint PRIMARY KEY, email text, city text)",
		fmt.Sprintf("INSERT INTO people SELECT v, 'person' || v || '@example.com', 'Town ' || v %% 1000 FROM generate_series(1, %d) v", rows),
		"VACUUM ANALYZE people",
	} {
		_, err := conn.Exec(b.Context(), statement)
		require.NoError(b, err)
	}
	return credentials
}

// parts counts the logs of the parts of the last run of a sync.
func (in *installation) parts(b *testing.B, sync int64) (n int) {
	b.Helper()
	require.NoError(b, in.admin.QueryRow(b.Context(), "SELECT count(*) FROM "+in.schema+".ledger_files WHERE sync = $1 AND name LIKE '%.part-%' AND size > 0", sync).Scan(&n))
	return n
}
