package serve

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server"
)

// TestEmulatedDestinationsOfSeveralProcesses: what one has stored the others have,
// also after all of them have closed it, until it is removed.
func TestEmulatedDestinationsOfSeveralProcesses(t *testing.T) {
	shared := newDatabase(t, "several")
	first, second := NewPool("", shared), NewPool(t.TempDir(), shared)
	one, err := first.Emulate("destination-1", objects)
	require.NoError(t, err)
	two, err := second.Emulate("destination-1", objects)
	require.NoError(t, err)
	require.Contains(t, put(one, "a", "Made"), `"success":true`)
	require.Contains(t, put(two, "b", "Kept"), `"success":true`)
	total := func(e *server.Emulated) int {
		_, total, err := e.Records("Contact", 0, 10)
		require.NoError(t, err)
		return total
	}
	require.Equal(t, 2, total(one))
	require.Equal(t, 2, total(two))

	// It is not called any more: it closes, and the next call finds everything.
	require.NoError(t, first.open["destination-1"].(*sharedSim).rest())
	require.NoError(t, second.open["destination-1"].(*sharedSim).rest())
	require.Nil(t, first.open["destination-1"].(*sharedSim).sim)
	require.Equal(t, 2, total(one))
	var saved bytes.Buffer
	require.NoError(t, two.Snapshot(&saved))
	require.Contains(t, saved.String(), `"Made"`)

	// What is tried out is shared with no one.
	tried, err := first.Emulate("unsaved-1", objects)
	require.NoError(t, err)
	require.Contains(t, put(tried, "c", "Kept"), `"success":true`)
	other, err := second.Emulate("unsaved-1", objects)
	require.NoError(t, err)
	require.Zero(t, total(other))

	// Removed by one, it is gone for all; the schema of others is left alone.
	require.NoError(t, one.Close())
	require.NoError(t, one.Remove())
	require.NotContains(t, put(two, "d", "Kept"), `"success":true`)
	require.NoError(t, two.Close())
	again, err := second.Emulate("destination-1", objects)
	require.NoError(t, err)
	require.Zero(t, total(again))
	require.NoError(t, again.Close())
	require.NoError(t, again.Remove())
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
}

// TestSharedSimulatorsRest: it is closed when no one has called it for a while.
func TestSharedSimulatorsRest(t *testing.T) {
	sim := &sharedSim{config: destsim.Config{}, idle: time.Millisecond}
	require.NoError(t, sim.with(func(*destsim.Sim) error {
		require.NoError(t, sim.rest())
		require.NotNil(t, sim.sim, "it is called")
		return nil
	}))
	require.Eventually(t, func() bool {
		sim.mu.Lock()
		defer sim.mu.Unlock()
		return sim.sim == nil
	}, time.Minute, time.Millisecond)
	require.NoError(t, sim.Close())

	// One that cannot be opened is a call that may be made again, and says no secret.
	sim.config.Store = "postgres://u:SECRET@127.0.0.1:1/d"
	w := httptest.NewRecorder()
	sim.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "connection refused")
	require.NotContains(t, w.Body.String(), "SECRET")
	_, _, err := sim.emulated().Records("contact", 0, 1)
	require.ErrorIs(t, err, server.ErrUnavailable, "an answer of 503, and not the service's own failure")
}

// TestSharedSchemas: each destination of each service has one of its own, whose name
// PostgreSQL does not cut.
func TestSharedSchemas(t *testing.T) {
	of := func(schema, key string) string {
		s, err := DatabaseOf(server.Place{Store: "postgres://u@h:1/d?sslmode=require&search_path=" + schema, StorePassword: "p&w"})
		require.NoError(t, err)
		return s.of(key)
	}
	require.Equal(t, "postgres://u:p&w@h:1/d?pool_max_conn_idle_time=10s&pool_max_conns=8&schema=crm_destination_7&sslmode=require", of("crm", "destination-7"))
	long := strings.Repeat("a", 45) // the longest but one that a service may have
	for _, key := range []string{"destination-7", "destination-7000000000"} {
		require.NotEqual(t, of(long+"a", key), of(long+"b", key))
		require.NotEqual(t, of(long, key), of(long, key+"1"))
	}
	none, err := DatabaseOf(server.Place{})
	require.NoError(t, err)
	require.Nil(t, none)
}
