package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// outcome is one thing that goes wrong, and how a run of three rows ends then.
// The expected ends are in docs/evidence/outcomes.md.
type outcome struct {
	what   string
	method string // the calls that bad answers
	bad    misbehave
	slow   bool                            // bad needs the deadline of a call each time
	first  bool                            // a run completes before it goes wrong
	sync   func(h *hostile) map[string]any // changes of the sync; nil: none
	sql    string                          // of the source, before the run
	heal   string                          // … before the next one
	do     func(h *hostile, id int64)      // before the run
	check  func(h *hostile)                // after all
}

// shown is a run in the columns of the document.
type shown struct {
	status, code, message, record string
	counts                        [7]int64
}

// TestMatrixOutcomes holds every outcome against docs/evidence/outcomes.md; -update writes it.
// Whatever happened, the next run repairs it: what could be sent is stored then,
// once.
func TestMatrixOutcomes(t *testing.T) {
	matrixtest.Long(t)
	if testing.Short() {
		t.Skip("makes a service for each outcome")
	}
	var mu sync.Mutex
	rows := map[string]string{}
	groups := []struct {
		title string
		cases []outcome
	}{{"The destination", brokenRules()}, {"The source", badRows()}}
	t.Run("cases", func(t *testing.T) {
		for _, g := range groups {
			for _, o := range g.cases {
				t.Run(o.what, func(t *testing.T) {
					t.Parallel()
					row := o.show(t)
					mu.Lock()
					defer mu.Unlock()
					rows[o.what] = row
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	const file = "../docs/evidence/outcomes.md"
	kept := contentOf(t, file)
	want := string(kept)
	for _, g := range groups {
		begin, end := "<!-- "+g.title+" -->\n", "<!-- end -->"
		at := strings.Index(want, begin)
		require.Positive(t, at, g.title)
		at += len(begin)
		var table strings.Builder
		table.WriteString("| what | run | error_message | records | next run |\n|---|---|---|---|---|\n")
		for _, o := range g.cases {
			table.WriteString(rows[o.what])
		}
		want = want[:at] + table.String() + want[at+strings.Index(want[at:], end):]
	}
	if *updateLedger {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(kept), "run go test ./server -run TestMatrixOutcomes -update")
}

// show makes the outcome happen and gives its row of the document.
func (o outcome) show(t *testing.T) string {
	timeout := 30 * time.Second
	if o.slow {
		timeout = 800 * time.Millisecond // the good calls keep it on a busy machine
	}
	h := newHostile(t, timeout, o.method, o.bad)
	var changes map[string]any
	if o.sync != nil {
		changes = o.sync(h)
	}
	id := h.kept(changes).id("data.id")
	if o.first {
		require.Equal(t, "completed", h.runs(id).at("data.status"))
	}
	if o.sql != "" {
		h.changeSource(o.sql)
	}
	h.armed.Store(true)
	if o.do != nil {
		o.do(h, id)
	}
	run := h.ended(id)
	h.armed.Store(false)
	if o.heal != "" {
		h.changeSource(o.heal)
	}
	next := h.ended(id)
	if o.check != nil {
		o.check(h)
	}
	code := run.status
	if run.code != "" {
		code += ", `" + run.code + "`"
	}
	message := run.message
	if message == "" && run.record != "" {
		message = "record: " + run.record
	}
	again := fmt.Sprintf("%s, %d updated", next.status, next.counts[5])
	if next.counts[6] > 0 {
		again += fmt.Sprintf(", %d failed", next.counts[6])
	}
	c := run.counts
	counts := fmt.Sprintf("%d read, %d invalid; %d updated, %d failed", c[0], c[3], c[5], c[6])
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", o.what, code, strings.ReplaceAll(message, "|", `\|`), counts, again)
}

// ended triggers a run and moves the clock until it is over.
func (h *hostile) ended(id int64) (s shown) {
	h.t.Helper()
	h.s.clock.Freeze(true) // else each advance waits for the attempts to come, in real time
	run := h.trigger(id)
	for range 2000 {
		a := h.do("GET", fmt.Sprintf("/sync_runs/%d", run), h.key, nil).want(200)
		if s.status = a.at("data.status").(string); s.status != api.RunQueued && s.status != api.RunWorking {
			text := func(name string) string {
				value, _ := a.at("data." + name).(string)
				return strings.ReplaceAll(value, strings.TrimPrefix(h.world.dest.URL, "http://"), "HOST")
			}
			s.code, s.message = text("error_code"), text("error_message")
			if a.at("data.source_record_count") != nil {
				s.counts = a.counts()
			}
			s.record = h.reason(id, run)
			return s
		}
		h.advance(5 * time.Second)
	}
	require.Fail(h.t, "the run does not end")
	return s
}

// reason is the message of the first record that was not taken.
func (h *hostile) reason(id, run int64) string {
	h.t.Helper()
	for _, verdict := range []ledger.Verdict{ledger.Invalid, ledger.Rejected} {
		found, _, err := h.s.ledger.Sync(id).Records(run, ledger.Filter{Verdict: verdict}, 0, 1)
		if err != nil { // it never came to its books
			return ""
		}
		if len(found) > 0 {
			return found[0].Message
		}
	}
	return ""
}

// brokenRules are destinations that break a rule of the protocol, or are not
// well: in every call of the method.
func brokenRules() []outcome {
	const batch, speed = "sync_batch", "get_sync_speed"
	const envelope = `{"jsonrpc":"2.0","id":"%s"`
	return []outcome{
		{what: "the id of another call", method: batch, bad: over(func(r []byte) []byte { return bytes.Replace(r, []byte(`"id":"`), []byte(`"id":"x`), 1) })},
		{what: "neither result nor error", method: batch, bad: says(200, envelope+`}`)},
		{what: "result and error", method: batch, bad: says(200, envelope+`,"result":{"record_results":[]},"error":{"code":1,"message":"m"}}`)},
		{what: "another version of JSON-RPC", method: batch, bad: over(func(r []byte) []byte { return bytes.Replace(r, []byte(`"2.0"`), []byte(`"1.0"`), 1) })},
		{what: "a result without record_results", method: batch, bad: says(200, envelope+`,"result":{}}`)},
		{what: "result is null", method: batch, bad: says(200, envelope+`,"result":null}`)},
		{what: "an error object with code and message", method: batch, bad: says(200, envelope+`,"error":{"code":-32050,"message":"quota exceeded"}}`)},
		{what: "an error object with status 500", method: batch, bad: says(500, envelope+`,"error":{"code":-32051,"message":"database is down"}}`)},
		{what: "an error without code and message", method: batch, bad: says(200, envelope+`,"error":{}}`)},
		{what: "no result for one record", method: batch, bad: results(func(l []any) []any { return l[1:] })},
		{what: "no result for any record", method: batch, bad: results(func([]any) []any { return []any{} })},
		{what: "results of unknown identifiers beside the right ones", method: batch, bad: results(func(l []any) []any {
			return append(l, map[string]any{"identifier": "who@example.com", "success": true})
		})},
		{what: "success and failure for one record", method: batch, bad: results(func(l []any) []any {
			return append(l, map[string]any{"identifier": "ada@example.com", "success": false, "error_message": "or not"})
		})},
		{what: "failure without a message", method: batch, bad: results(func(l []any) []any {
			l[0] = map[string]any{"identifier": l[0].(map[string]any)["identifier"], "success": false}
			return l
		})},
		{what: "success that is no boolean", method: batch, bad: results(func(l []any) []any { l[0].(map[string]any)["success"] = "true"; return l })},
		{what: "an empty reply", method: batch, bad: says(200, "")},
		{what: "no JSON", method: batch, bad: says(200, "ok")},
		{what: "a page of HTML", method: batch, bad: says(200, "<html><body>Sign in</body></html>")},
		{what: "an array", method: batch, bad: says(200, `[]`)},
		{what: "a truncated reply", method: batch, bad: func(w http.ResponseWriter, _ *http.Request, _ string, pass func() []byte) {
			reply := pass()
			w.Header().Set("Content-Length", fmt.Sprint(len(reply)))
			_, _ = w.Write(reply[:len(reply)/2])
			panic(http.ErrAbortHandler)
		}},
		{what: "a reply of 17 MB", method: batch, bad: func(w http.ResponseWriter, _ *http.Request, _ string, _ func() []byte) {
			_, _ = io.CopyN(w, zeros{}, 17<<20)
		}},
		{what: "a gzip bomb", method: batch, bad: func(w http.ResponseWriter, _ *http.Request, _ string, _ func() []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb())
		}},
		{what: "gzip that is none", method: batch, bad: func(w http.ResponseWriter, _ *http.Request, _ string, pass func() []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(pass())
		}},
		{what: "204 No Content", method: batch, bad: says(204, "")},
		{what: "a redirect", method: batch, bad: func(w http.ResponseWriter, r *http.Request, _ string, _ func() []byte) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}},
		{what: "401", method: batch, bad: says(401, "who are you?")},
		{what: "403", method: batch, bad: says(403, "not you")},
		{what: "404", method: batch, bad: says(404, "no such page")},
		{what: "500", method: batch, bad: says(500, "<html>oops</html>")},
		{what: "503", method: batch, bad: says(503, "later")},
		{what: "429 for more than an hour", method: batch, bad: says(429, "slow down")},
		{what: "the connection is closed without a reply", method: batch, bad: func(http.ResponseWriter, *http.Request, string, func() []byte) { panic(http.ErrAbortHandler) }},
		{what: "stored, and the reply is lost", method: batch, bad: func(_ http.ResponseWriter, _ *http.Request, _ string, pass func() []byte) {
			pass()
			panic(http.ErrAbortHandler)
		}},
		{what: "no reply in time", slow: true, method: batch, bad: func(_ http.ResponseWriter, r *http.Request, _ string, _ func() []byte) { <-r.Context().Done() }},
		{what: "get_sync_speed: zeros", method: speed, bad: says(200, envelope+`,"result":{"maximum_batch_size":0,"maximum_parallel_batches":0,"maximum_records_per_second":0}}`)},
		{what: "get_sync_speed: a negative number", method: speed, bad: says(200, envelope+`,"result":{"maximum_batch_size":100,"maximum_parallel_batches":-4,"maximum_records_per_second":50}}`)},
		{what: "get_sync_speed: texts", method: speed, bad: says(200, envelope+`,"result":{"maximum_batch_size":"100","maximum_parallel_batches":"4","maximum_records_per_second":"50"}}`)},
		{what: "get_sync_speed: a key is missing", method: speed, bad: says(200, envelope+`,"result":{"maximum_batch_size":100}}`)},
		{what: "get_sync_speed: an error object", method: speed, bad: says(200, envelope+`,"error":{"code":-32000,"message":"not today"}}`)},
		{what: "get_sync_speed: the largest numbers", method: speed, bad: says(200, envelope+`,"result":{"maximum_batch_size":9223372036854775807,"maximum_parallel_batches":9223372036854775807,"maximum_records_per_second":9223372036854775807}}`)},
	}
}
