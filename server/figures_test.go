package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFigures(t *testing.T) {
	w := newWorld(t)
	id := w.newSync()
	w.do("GET", "/syncs", w.key, nil).want(200)
	w.do("GET", "/syncs", "wrong", nil).want(401)
	w.do("GET", "/nothing/secret-path", w.key, nil).want(404)
	w.trigger(id)
	w.fault(map[string]any{"kind": "rate_limited", "operation": "listSyncs"})
	w.do("GET", "/syncs", w.key, nil).want(429)
	text := string(w.control("GET", "/metrics", nil).want(200).text)
	for _, line := range []string{
		`destkit_requests_total{operation="listSyncs",status="200"} 1`,
		`destkit_requests_total{operation="listSyncs",status="401"} 1`,
		`destkit_requests_total{operation="listSyncs",status="429"} 1`,
		`destkit_requests_total{operation="none",status="404"} 1`,
		`destkit_request_duration_seconds_count{operation="listSyncs"} 3`,
		`destkit_destination_calls_total{method="list_objects",outcome="ok"} 1`,
		`destkit_faults_fired_total{kind="rate_limited"} 1`,
		`destkit_stored_rows{kind="syncs"} 1`,
		`destkit_sync_runs{status=`,
		`destkit_store_bytes `,
		`go_goroutines `,
	} {
		require.Contains(t, text, line)
	}
	require.NotContains(t, text, "secret-path")
}
