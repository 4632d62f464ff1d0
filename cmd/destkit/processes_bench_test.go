//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// BenchmarkProcesses: how many records per second one, two and three workers send
// to a simulator in a process of its own: syncs of 100,000 rows that were sent never
// before, each to an object of its own, in batches of 1,000. The database writes
// through to the disk. One process more serves the API.
//
// A destination that answers at once shows what the machine can do, whose
// processors all of them share. One that takes 200 ms for a batch, of which it
// takes two at once from each sync, shows what workers add that work on two syncs
// at a time each.
func BenchmarkProcesses(b *testing.B) {
	b.Run("at_once", func(b *testing.B) { benchmarkWorkers(b, 16, 6, 0) })
	b.Run("in_200ms", func(b *testing.B) { benchmarkWorkers(b, 2, 2, 200) })
}

func benchmarkWorkers(b *testing.B, parallel, each int, takes float64) {
	const syncs, rows = 6, 100_000
	for _, workers := range []int{1, 2, 3} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			in := newInstallation(b)
			in.throughToTheDisk(b)
			in.start("api")
			for range workers {
				in.start("worker", "--workers", strconv.Itoa(each))
			}
			from := in.make("/sources", map[string]any{"connection": map[string]any{
				"name": "rows", "type": "generator", "credentials": map[string]any{"rows": rows, "seed": 1},
			}})
			for b.Loop() {
				b.StopTimer()
				url := simulatorOfThings(b, syncs, parallel, takes)
				to := in.destination(fmt.Sprintf("destination %d", time.Now().UnixNano()), url)
				var ids []int64
				for i := range syncs {
					ids = append(ids, in.sync(from, to, thing(i), api.OperationUpsert, map[string]any{
						"type": api.ObjectTable, "table_catalog": "main", "table_schema": "main", "table_name": "generated",
					}, "id", "email", "city"))
				}
				b.StartTimer()
				var runs []int64
				for _, id := range ids {
					runs = append(runs, in.run(id))
				}
				for _, id := range runs {
					r := in.wait(id)
					require.Equal(b, api.RunCompleted, r.Status, "%v", r.ErrorMessage)
					require.EqualValues(b, rows, *r.RecordsUpdated)
				}
			}
			b.ReportMetric(float64(syncs*rows)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// throughToTheDisk has the database wait for the disk.
func (in *installation) throughToTheDisk(b *testing.B) {
	b.Helper()
	for _, statement := range []string{"ALTER SYSTEM SET fsync = on", "SELECT pg_reload_conf()"} {
		_, err := in.admin.Exec(b.Context(), statement)
		require.NoError(b, err)
	}
}

// simulatorOfThings starts a simulator in a process of its own.
func simulatorOfThings(b *testing.B, many, parallel int, takes float64) (url string) {
	file := b.TempDir() + "/things.yaml"
	var text strings.Builder
	fmt.Fprintf(&text, "speed: {maximum_batch_size: 1000, maximum_parallel_batches: %d, maximum_records_per_second: 1000000}\nobjects:\n", parallel)
	for i := range many {
		fmt.Fprintf(&text, "  - {name: %[1]s, label: %[1]s, operations: [upsert], fields: [{name: id, label: Id, type: integer, identifier: true, required: true, unique: true}, {name: first, label: First, type: string}, {name: second, label: Second, type: string}]}\n", thing(i))
	}
	require.NoError(b, os.WriteFile(file, []byte(text.String()), 0o600))
	cmd := exec.Command("destkit", "destsim", "--addr", "127.0.0.1:0", "--config", file)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGKILL); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	require.True(b, ok, "%s", line)
	if takes > 0 {
		control := &syncs.Client{Root: url, HTTP: http.DefaultClient}
		require.NoError(b, control.Control(b.Context(), http.MethodPost, "/faults", destsim.Fault{
			Kind: "delay", Delay: &destsim.Delay{MS: takes}, When: destsim.Trigger{Method: rpc.MethodSyncBatch},
		}, nil))
	}
	return url
}
