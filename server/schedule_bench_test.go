//go:build linux

package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
)

// hourlySyncs fills a data folder with n syncs that all fall due at every full hour.
func hourlySyncs(b testing.TB, w *world, n int, schedule *api.Schedule) {
	body := syncBody(w.newSource(), w.newDestination())
	body["mode"] = map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": schedule}}
	first := w.do("POST", "/syncs", w.key, body).want(200).id("data.sync_id")
	w.copies(first, n-1)
	require.NoError(b, w.s.schedule.All(b.Context()))
}

// processor is the time that this process has spent on a processor.
func processor(b testing.TB) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

var residentPeak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory of this process since forgetPeak.
func peak(b testing.TB) float64 {
	text := contentOf(b, "/proc/self/status")
	kB := must(strconv.ParseFloat(string(residentPeak.FindSubmatch(text)[1]), 64))(b)
	return kB / 1024
}

func forgetPeak(b testing.TB) {
	require.NoError(b, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
}

// BenchmarkDueSyncs is one hour of n hourly syncs on the embedded store: one after
// the other while the clock is advanced, and all at once where it jumps. The
// simulated destination is in the same process.
func BenchmarkDueSyncs(b *testing.B) {
	for _, n := range []int{500, 1000, 5000} {
		for name, move := range map[string]string{"advanced": `{"advance":"1h"}`, "at-once": `{"set":"2026-12-01T09:00:00Z"}`} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				w := newWorld(b, ownFolder(b))
				w.control("POST", "/clock", `{"set":"2026-12-01T08:30:00Z"}`).want(200)
				hourlySyncs(b, w, n, &api.Schedule{Frequency: api.FrequencyHourly})
				for b.Loop() {
					forgetPeak(b)
					before := processor(b)
					w.control("POST", "/clock", move).want(200)
					w.control("POST", "/settle", nil).want(200)
					b.ReportMetric((processor(b) - before).Seconds(), "cpu-s")
					b.ReportMetric(peak(b), "peak-MB")
				}
				require.GreaterOrEqual(b, w.counts().Runs[api.RunCompleted], int64(n), "%v", whyFailed(b, w))
			})
		}
	}
}

// whyFailed counts the runs that have failed by what they say.
func whyFailed(b testing.TB, w *world) map[string]int {
	why := map[string]int{}
	require.NoError(b, w.s.store.View(b.Context(), func(tx *store.Tx) error {
		for id := int64(1); ; id++ {
			run, err := store.SyncRuns.Any(tx, id)
			if err != nil {
				return nil
			}
			if run.Run.ErrorMessage != nil {
				why[*run.Run.ErrorMessage]++
			}
		}
	}))
	return why
}

// discard is a writer that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkStoredSyncs is a folder of 100,000 syncs, each tenth of which runs once a day.
func BenchmarkStoredSyncs(b *testing.B) {
	const n = 100_000
	w := newWorld(b, ownFolder(b))
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	w.copies(w.newSync(), n-n/10-1)
	hourlySyncs(b, w, n/10, &api.Schedule{Frequency: api.FrequencyDaily})
	for name, page := range map[string]int{"first": 1, "middle": n / 200, "last": n / 100} {
		b.Run("list/"+name, func(b *testing.B) {
			for b.Loop() {
				r := httptest.NewRequest("GET", api.BasePath+fmt.Sprintf("/syncs?per_page=100&page=%d", page), nil)
				r.Header.Set("Authorization", "Bearer "+w.key)
				w.s.ServeHTTP(&discard{header: http.Header{}}, r)
			}
		})
	}
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			forgetPeak(b)
			require.NoError(b, w.s.Snapshot(b.Context(), io.Discard))
			b.ReportMetric(peak(b), "peak-MB")
		}
	})
	require.NoError(b, w.s.Close())
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			forgetPeak(b)
			before := processor(b)
			s := must(New(b.Context(), w.s.config))(b)
			b.ReportMetric((processor(b) - before).Seconds(), "cpu-s")
			b.ReportMetric(peak(b), "peak-MB")
			b.StopTimer()
			require.NoError(b, s.Close())
			b.StartTimer()
		}
	})
}
