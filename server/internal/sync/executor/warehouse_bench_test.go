package executor

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/postgrestest"
)

// BenchmarkWarehouse is BenchmarkMillion with the state in the warehouse, so
// that a run without changes reads no row over the network.
func BenchmarkWarehouse(b *testing.B) {
	rows := 1_000_000
	if text := os.Getenv("DESTKIT_BENCH_ROWS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(b, err)
		rows = n
	}
	for _, advanced := range []bool{false, true} {
		b.Run(fmt.Sprintf("%d/advanced=%v", rows, advanced), func(b *testing.B) {
			work, change := millionPostgres(b, rows)
			work.Advanced = advanced
			server := postgrestest.Start(b)
			conn, err := pgx.Connect(b.Context(), fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=postgres", server.Folder, server.Port, postgrestest.User, postgrestest.Password))
			require.NoError(b, err)
			b.Cleanup(func() {
				_, err := conn.Exec(context.Background(), "DROP SCHEMA IF EXISTS destkit CASCADE")
				require.NoError(b, err)
				require.NoError(b, conn.Close(context.Background()))
			})
			all := benchmarkMillion(b, rows, 1, work, change)
			b.ReportMetric(all.seconds("alone")/all.seconds("unchanged"), "unchanged/alone")
			b.ReportMetric(all.seconds("unchanged")/all.seconds("changed"), "changed/unchanged")
		})
	}
}
