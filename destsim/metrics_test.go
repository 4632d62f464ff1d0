package destsim

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func TestFigures(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	s := newSim(t, Config{Clock: func() time.Time { return now }})
	for range 20 {
		invoke(s, rpc.MethodSyncBatch, fourRecords(s, "upsert"))
	}
	now = now.Add(time.Second)
	armJSON(t, s, `{"kind":"record_failure","when":{"identifier":"a@x"}}`)
	invoke(s, rpc.MethodSyncBatch, fourRecords(s, "upsert"))
	invoke(s, "no_such_method", `{}`)
	invoke(s, "another", `{}`)
	now = now.Add(time.Second)

	w := control(s, http.MethodGet, "/_control/figures", "")
	require.Equal(t, 200, w.Code)
	var f Figures
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &f))
	require.Len(t, f.Methods, 2)
	other, batches := f.Methods[0], f.Methods[1]
	require.Equal(t, "other", other.Method)
	require.Equal(t, int64(2), other.Errors)
	require.Equal(t, MethodFigures{
		Method: "sync_batch", Calls: 21, Records: 84, Succeeded: 83, Failed: 1,
		CallsPerSecond: 2.1, RecordsPerSecond: 8.4, PeakCalls: 20, PeakRecords: 80,
	}, batches)
	require.Zero(t, f.InFlight)
	require.Equal(t, int64(1), f.PeakCalls)
	require.Equal(t, int64(1), f.PeakBatches)

	now = now.Add(time.Minute)
	require.Zero(t, s.Figures().Methods[1].CallsPerSecond, "a minute later")
	require.NoError(t, s.Reset())
	require.Empty(t, s.Figures().Methods)
}

// TestPeaksAreParallelism lets calls wait for one another inside the
// simulator.
func TestPeaksAreParallelism(t *testing.T) {
	s := newSim(t, Config{})
	var meet, group sync.WaitGroup
	meet.Add(5)
	s.chain().add(seams{batch: func(*call, *batch) {
		meet.Done()
		meet.Wait()
	}})
	for range 5 {
		group.Go(func() { invoke(s, rpc.MethodSyncBatch, fourRecords(s, "upsert")) })
	}
	group.Wait()
	require.Equal(t, int64(5), s.Figures().PeakBatches)
	require.Equal(t, int64(5), s.Figures().PeakCalls)
	require.Zero(t, s.Figures().Batches)
}

func TestMetrics(t *testing.T) {
	s, second := newSim(t, Config{Token: "hush"}), newSim(t, Config{})
	call := func(method, params string) {
		post(s, string(rpc.EncodeRequest(nil, method, []byte(params), "x")), "Authorization", "Bearer hush")
	}
	call(rpc.MethodSyncBatch, fourRecords(s, "upsert"))
	armJSON(t, s, `{"kind":"http_status","status":503}`)
	call(rpc.MethodSyncBatch, fourRecords(s, "upsert"))
	call(`evil"}`, `{}`)
	w := control(s, http.MethodGet, "/_control/metrics", "")
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Header().Get("Content-Type"), "text/plain")
	for _, want := range []string{
		`destsim_calls_total{method="sync_batch",status="200"} 1`,
		`destsim_calls_total{method="sync_batch",status="503"} 1`,
		`destsim_calls_total{method="other",status="503"} 1`,
		`destsim_call_errors_total{method="sync_batch"} 1`,
		`destsim_records_total{result="succeeded"} 4`,
		`destsim_records_total{result="none"} 4`,
		`destsim_call_duration_seconds_count{method="sync_batch"} 2`,
		`destsim_call_duration_seconds_bucket{method="sync_batch",le="+Inf"} 2`,
		`destsim_calls_in_flight 0`,
		`destsim_batches_in_flight 0`,
		`destsim_faults_fired_total{kind="http_status"} 2`,
		`destsim_stored_records{object="contact"} 4`,
		`destsim_body_bytes_total{direction="out"}`,
	} {
		require.Contains(t, w.Body.String(), want)
	}
	require.NotContains(t, w.Body.String(), "hush")
	require.NotContains(t, control(second, http.MethodGet, "/_control/metrics", "").Body.String(), "destsim_calls_total{", "every simulator has its own")
}
