package server

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
)

// TestOneLimitForAllProcesses: the runs of three workers and the planning of the
// process that serves the API stay together below the limit that answers announce
// (spec 8). Calls are counted when they are sent: a machine that is busy may hold some
// of them up on their way, and the destination then sees more in the second after.
func TestOneLimitForAllProcesses(t *testing.T) {
	matrixtest.Long(t)
	const limit, records = 100, 40
	var sent moments
	url, dir := postgresURL(testkit.StartPostgres(t)), t.TempDir()
	config := func(c *Config, role string) {
		c.sent = sent.add
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
	calls := sent.all()
	require.Len(t, calls, len(all))
	// What was let go before the first answer came does not count.
	later := slices.DeleteFunc(slices.Clone(calls), func(at time.Time) bool { return at.Sub(calls[0]) <= time.Second })
	require.NotEmpty(t, later)
	require.LessOrEqual(t, busiestSecond(later), limit+limit/100)
	t.Logf("%d calls in %s: in a second at most %d were sent, %d were seen", len(calls), calls[len(calls)-1].Sub(calls[0]), busiestSecond(later), busiest(all, oneCall))
}

// moments are those at which something was sent.
type moments struct {
	mu   sync.Mutex
	list []time.Time
}

func (m *moments) add() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, time.Now())
}

func (m *moments) all() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

// busiestSecond is the most that lies within one second.
func busiestSecond(list []time.Time) (most int) {
	for i, first := range list {
		n := 0
		for _, at := range list[i:] {
			if at.Before(first.Add(time.Second)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
