package violation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// batchesSeen remembers the latest batch of every run as it went out.
type batchesSeen struct {
	mu     sync.Mutex
	byRun  map[string]*http.Request
	latest *http.Request
}

func (b *batchesSeen) carry(o *exchange.Call, next exchange.Next) (*http.Response, error) {
	if o.Method == rpc.MethodSyncBatch {
		b.mu.Lock()
		b.latest = o.HTTP.Clone(o.Context)
		b.byRun[exchange.Text(o.Param("sync_plan", "sync_run_id"))] = b.latest
		b.mu.Unlock()
	}
	return next(o)
}

// of is the latest batch of a run, nil where it has sent none.
func (b *batchesSeen) of(run any) *http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byRun[exchange.Text(run)]
}

// leaks is a violation in which something of the requests of a run is told where
// the run is.
func leaks(id, changes string, seam func(*batchesSeen) seams) violation {
	return violation{Violation{ID: id, Changes: changes}, func(*Service) seams {
		seen := &batchesSeen{byRun: map[string]*http.Request{}}
		s := seam(seen)
		s.carry = seen.carry
		return s
	}}
}

// inFailedRun adds to a member of every failed run that is shown.
func inFailedRun(member string, told func(*http.Request) string) func(*batchesSeen) seams {
	return func(seen *batchesSeen) seams {
		return seams{tell: func(a *exchange.Answer) {
			if !a.IsAny("GET /sync_runs/*, GET /syncs/*/sync_runs") {
				return
			}
			a.Data(func(run map[string]any) {
				if r := seen.of(run["id"]); r != nil && run["status"] == "failed" {
					run[member] = fmt.Sprintf("%s: %v", told(r), run[member])
				}
			})
		}}
	}
}

// inHistory adds to the message of every record that was rejected.
func inHistory(told func(*http.Request) string) func(*batchesSeen) seams {
	return func(seen *batchesSeen) seams {
		return seams{tell: func(a *exchange.Answer) {
			if !a.Is("GET /sync_runs/*/records") {
				return
			}
			parts := strings.Split(a.HTTP.URL.Path, "/")
			r := seen.of(json.Number(parts[len(parts)-2]))
			if r == nil {
				return
			}
			a.Data(func(record map[string]any) {
				if record["status"] == "rejected" {
					record["status_message"] = fmt.Sprintf("%s: %v", told(r), record["status_message"])
				}
			})
		}}
	}
}

func postTo(r *http.Request) string { return fmt.Sprintf("Post %q", r.URL) }

// secretsViolations tell secrets of connections where runs are told of (spec 5.2).
func secretsViolations() []violation {
	return []violation{
		leaks("DST-030", "the error of a failed run names the URL", inFailedRun("error_message", postTo)),
		leaks("DST-030.2", "the history of a run names the URL", inHistory(postTo)),
		leaks("DST-030.3", "the e-mail about a failed run names the URL", func(seen *batchesSeen) seams {
			return seams{mail: func(m *store.Mail) bool {
				seen.mu.Lock()
				defer seen.mu.Unlock()
				if m.Kind == "alert" && seen.latest != nil {
					m.Text += "\n" + postTo(seen.latest)
				}
				return true
			}}
		}),
		leaks("DST-031", "the detail of a failed run has the token", inFailedRun("error_detail", func(r *http.Request) string {
			return "Authorization: " + r.Header.Get("Authorization")
		})),
		leaks("DST-031.2", "the history of a run has the custom headers", inHistory(func(r *http.Request) string {
			return fmt.Sprint("headers ", r.Header)
		})),
	}
}
