package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

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
