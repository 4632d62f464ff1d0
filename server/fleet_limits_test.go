package server

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/postgrestest"
)

// TestOneLimitForAllProcesses: the runs of three workers and the planning of the
// process that serves the API stay together below the limit that answers announce
// (spec 8).
func TestOneLimitForAllProcesses(t *testing.T) {
	const limit, records = 100, 40
	url, dir := postgresURL(postgrestest.Start(t)), t.TempDir()
	config := func(c *Config, role string) {
		c.Store, c.MasterKey, c.Dir, c.Role, c.pulse = url, bytes.Repeat([]byte{7}, masterKeySize), dir, role, quickPulse()
		c.Workers = 2
	}
	l := newLimited(t, rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 8, MaximumRecordsPerSecond: 1_000_000}, limit,
		func(c *Config) { config(c, RoleAPI) })
	for range 3 {
		c := Config{AllowFiles: everyFolder, Emulate: l.s.config.Emulate, Development: true}
		config(&c, RoleWorker)
		s, err := New(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	l.customers(records)
	var runs []int64
	for range 4 {
		runs = append(runs, l.trigger(l.kept(nil).id("data.id")))
	}
	l.control("POST", "/settle", nil).want(http.StatusOK)
	for _, run := range runs {
		require.EqualValues(t, records, l.run(run).id("data.records_updated"))
	}
	all := l.calls("")
	require.Greater(t, len(all), 4*records)
	// What was let go before the first answer came does not count.
	var later []destsim.JournalEntry
	for _, e := range all {
		if e.Received.Sub(all[0].Received) > time.Second {
			later = append(later, e)
		}
	}
	require.NotEmpty(t, later)
	require.LessOrEqual(t, busiest(later, oneCall), limit+limit/100)
	t.Logf("%d calls in %s, at most %d in a second", len(all), all[len(all)-1].Received.Sub(all[0].Received), busiest(all, oneCall))
}
