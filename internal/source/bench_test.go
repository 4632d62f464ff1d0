//go:build unix

package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// benchmarkRows reads whole tables and reports rows per second.
func benchmarkRows(b *testing.B, src Source, object Object, order []string) {
	b.ReportAllocs()
	n, before := 0, cpuSeconds(b)
	for b.Loop() {
		rows, err := src.(Reader).Rows(b.Context(), object, nil, order)
		require.NoError(b, err)
		for {
			_, err := rows.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		require.NoError(b, rows.Close())
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric((cpuSeconds(b)-before)/float64(n)*1e6, "cpu-s/M")
	b.ReportMetric(0, "ns/op")
}

// cpuSeconds is what this process has used: it says more than the clock on a
// machine that has other work to do.
func cpuSeconds(b *testing.B) float64 {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// benchedRows have ten columns, as the goals for reading have.
const benchedRows = 200_000

// benchedTable is a table like the default rows of the generator.
const benchedTable = `CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT, first_name TEXT, last_name TEXT, company_id INTEGER, city TEXT, balance REAL, active INTEGER, signed_up_on TEXT, updated_at TEXT);
	INSERT INTO users WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200000)
	SELECT n, 'amber.basin' || n || '@example.com', 'Margaret', 'Kowalski', n % 1000, 'Edinburgh', n / 100.0, n % 2, '2024-02-29', '2024-02-29T10:11:12Z' FROM n`

func BenchmarkRows(b *testing.B) {
	gen := open(b, "generator", map[string]any{"rows": benchedRows}, Options{})
	b.Run("generator", func(b *testing.B) { benchmarkRows(b, gen, Object{Name: generatedTable}, nil) })
	b.Run("generator/by-id", func(b *testing.B) { benchmarkRows(b, gen, Object{Name: generatedTable}, []string{"id"}) })
	b.Run("generator/by-email", func(b *testing.B) { benchmarkRows(b, gen, Object{Name: generatedTable}, []string{"email"}) })

	lite := open(b, "sqlite", map[string]any{"path": database(b, benchedTable)}, Options{})
	b.Run("sqlite", func(b *testing.B) { benchmarkRows(b, lite, Object{Name: "users"}, nil) })
	b.Run("sqlite/by-id", func(b *testing.B) { benchmarkRows(b, lite, Object{Name: "users"}, []string{"id"}) })
	b.Run("sqlite/by-email", func(b *testing.B) { benchmarkRows(b, lite, Object{Name: "users"}, []string{"email"}) })

	csv, jsonl := benchedFiles(b, gen)
	b.Run("csv", func(b *testing.B) {
		benchmarkRows(b, open(b, "csv", map[string]any{"path": csv}, Options{}), Object{Name: "users"}, nil)
	})
	b.Run("jsonl", func(b *testing.B) {
		benchmarkRows(b, open(b, "jsonl", map[string]any{"path": jsonl}, Options{}), Object{Name: "users"}, nil)
	})
	rows := make([]benchedUser, benchedRows)
	for i := range rows {
		rows[i] = benchedUser{int64(i), fmt.Sprintf("amber.basin%d@example.com", i), "Margaret", "Kowalski", int32(i % 1000), "Edinburgh", float64(i) / 100, i%2 == 0, 19782, int64(i)}
	}
	path := filepath.Join(b.TempDir(), "users.parquet")
	writeParquetPlain(b, path, rows)
	b.Run("parquet", func(b *testing.B) {
		benchmarkRows(b, open(b, "parquet", map[string]any{"path": path}, Options{}), Object{Name: "users"}, nil)
	})
}

type benchedUser struct {
	ID        int64   `parquet:"id"`
	Email     string  `parquet:"email"`
	FirstName string  `parquet:"first_name"`
	LastName  string  `parquet:"last_name"`
	CompanyID int32   `parquet:"company_id"`
	City      string  `parquet:"city"`
	Balance   float64 `parquet:"balance"`
	Active    bool    `parquet:"active"`
	SignedUp  int32   `parquet:"signed_up_on,date"`
	UpdatedAt int64   `parquet:"updated_at,timestamp(millisecond)"`
}

// benchedFiles writes the generator's rows as files.
func benchedFiles(b *testing.B, src Source) (csv, jsonl string) {
	columns, err := src.Columns(b.Context(), Object{Name: generatedTable})
	require.NoError(b, err)
	var c, j bytes.Buffer
	for i, column := range columns {
		if i > 0 {
			c.WriteByte(',')
		}
		c.WriteString(column.Name)
	}
	rows, err := src.(Reader).Rows(b.Context(), Object{Name: generatedTable}, nil, nil)
	require.NoError(b, err)
	for {
		values, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(b, err)
		for i, v := range values {
			fmt.Fprintf(&j, "%c%q:%s", map[bool]byte{true: '{', false: ','}[i == 0], columns[i].Name, v)
			fmt.Fprintf(&c, "%c%s", map[bool]byte{true: '\n', false: ','}[i == 0], bytes.Trim(v, `"`))
		}
		j.WriteString("}\n")
	}
	dir := b.TempDir()
	csv, jsonl = filepath.Join(dir, "users.csv"), filepath.Join(dir, "users.jsonl")
	require.NoError(b, os.WriteFile(csv, c.Bytes(), 0o600))
	require.NoError(b, os.WriteFile(jsonl, j.Bytes(), 0o600))
	return csv, jsonl
}

// writeParquetPlain writes rows as a writer does by itself.
func writeParquetPlain[T any](t testing.TB, path string, rows []T) {
	t.Helper()
	require.NoError(t, parquet.WriteFile(path, rows))
}
