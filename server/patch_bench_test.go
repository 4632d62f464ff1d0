//go:build linux

package server

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// BenchmarkPatchWhileRunsWork is how long a PATCH of a sync takes while the runs of 500
// syncs are worked on, as many at once as there are places, by the clock of the machine.
func BenchmarkPatchWhileRunsWork(b *testing.B) {
	const syncs, calls = 500, 1000
	w := newWorld(b, ownFolder(b), func(c *Config) { c.Dialect = DialectLive })
	w.control("POST", "/clock", `{"set":"2026-12-01T08:30:00Z"}`).want(200)
	hourlySyncs(b, w, syncs, &api.Schedule{Frequency: api.FrequencyHourly})
	patch := func(id int64) time.Duration {
		r := httptest.NewRequest("PATCH", fmt.Sprintf("%s/syncs/%d", api.BasePath, id), strings.NewReader(fmt.Sprintf(`{"label":"Changed %d"}`, id)))
		r.Header.Set("Authorization", "Bearer "+w.key)
		r.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		began := time.Now()
		w.s.ServeHTTP(answer, r)
		took := time.Since(began)
		require.Contains(b, []int{200, 409}, answer.Code, answer.Body.String())
		return took
	}
	list := w.do("GET", "/syncs?per_page=100", w.key, nil).want(200)
	var ids []int64
	for i := range 100 {
		ids = append(ids, list.id(fmt.Sprintf("data.%d.id", i)))
	}
	for b.Loop() {
		// The clock is moved while the calls come, so that runs fall due all the time.
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			w.control("POST", "/clock", `{"set":"2026-12-01T09:00:00Z"}`).want(200)
			w.control("POST", "/settle", nil).want(200)
		}()
		took := make([]time.Duration, 0, calls)
		working := 0
		for i := range calls {
			if len(w.s.clock.Running()) > 0 {
				working++
			}
			took = append(took, patch(ids[i%len(ids)]))
		}
		<-moved
		slices.Sort(took)
		b.ReportMetric(float64(took[calls/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[calls*99/100].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(working)*100/calls, "%-while-working")
		w.control("POST", "/clock", `{"set":"2026-12-01T08:30:00Z"}`).want(200)
	}
}
