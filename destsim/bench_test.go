package destsim

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/destkit/destkit/destsim/rpc"
)

// discard is a ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkBatch measures the handler alone: batches of a record and of a
// thousand, a plan of ten fields, keys that are new and then change.
func BenchmarkBatch(b *testing.B) {
	benchmarkBatches(b, func(testing.TB) Config { return Config{} })
}

// BenchmarkBatchKept is BenchmarkBatch with the bodies in the journal.
func BenchmarkBatchKept(b *testing.B) {
	benchmarkBatches(b, func(testing.TB) Config { return Config{KeepBodies: true} })
}

// BenchmarkBatchSQLite measures the same on a disk.
func BenchmarkBatchSQLite(b *testing.B) {
	benchmarkBatches(b, func(b testing.TB) Config { return Config{Store: "sqlite:" + b.TempDir() + "/records.db"} })
}

func benchmarkBatches(b *testing.B, config func(testing.TB) Config) {
	for _, size := range []int{1, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := newSim(b, config(b))
			var bodies []string
			for i := range 200 {
				var records []string
				for j := range size {
					records = append(records, fmt.Sprintf(`{"email":"user-%d-%d@example.com","last_name":"Lovelace","first_name":"Ada","age":%d,"score":1.25,"balance":"12.50","subscribed":true,"birth_date":"1815-12-10","last_seen_at":"2021-03-29T16:32:23Z","tags":["a","b"]}`, i, j, j))
				}
				bodies = append(bodies, string(rpc.EncodeRequest(nil, rpc.MethodSyncBatch, []byte(planOf(s, "contact", "upsert", "email", records...)), "id-1")))
			}
			b.SetBytes(int64(len(bodies[0])))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(bodies[i%len(bodies)]))
				s.ServeHTTP(discard{http.Header{}}, r)
				i++
			}
			b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
