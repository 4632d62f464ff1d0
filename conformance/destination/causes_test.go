package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
)

const errorReply = `{"jsonrpc":"2.0","id":$ID,"error":{"code":%d,"message":%q}}`

// TestCausesThatWereWrong: mistakes with the cause that they have, and with one that was
// once printed for them.
func TestCausesThatWereWrong(t *testing.T) {
	batches := func(e *small, answer func(records int, body []byte) string) {
		e.answer = func(method string, _ int, body []byte) string {
			_, p := batchIn(body)
			if method != rpc.MethodSyncBatch || len(p.Records) == 0 {
				return ""
			}
			return answer(len(p.Records), body)
		}
	}
	for _, c := range []struct {
		name     string
		mistake  func(e *small)
		selected string
		finds    string
		right    string
		observed bool
		wrong    []string
	}{
		{"results without identifiers", func(e *small) {
			batches(e, func(n int, _ []byte) string {
				return `{"jsonrpc":"2.0","id":$ID,"result":{"record_results":[` + strings.TrimSuffix(strings.Repeat(`{"success":true},`, n), ",") + `]}}`
			})
		}, "RES-002 RES-004 SEM-001 SPD-006", "RES-004", "carry no identifier", true, []string{"skips records that raise"}},
		{"a method that is not there", func(e *small) {
			e.answer = func(method string, _ int, _ []byte) string {
				if method != rpc.MethodGetSyncSpeed {
					return ""
				}
				return fmt.Sprintf(errorReply, -32601, "no such method")
			}
		}, "SPD-002", "SPD-002", "has no method get_sync_speed", false, []string{"first text of the protocol"}},
		{"SQL built from text", func(e *small) {
			batches(e, func(_ int, body []byte) string {
				if !bytes.Contains(body, []byte("'")) {
					return ""
				}
				return fmt.Sprintf(errorReply, -32000, `near "so": syntax error`)
			})
		}, "DAT-014", "DAT-011", "SQL is built from text", false, []string{"takes less than the declared type", "in one place"}},
		{"a pool that is too small", func(e *small) {
			e.before = func(method string) {
				if method == rpc.MethodSyncBatch {
					time.Sleep(2 * time.Millisecond)
				}
			}
			batches(e, func(int, []byte) string {
				e.mu.Lock()
				defer e.mu.Unlock()
				if e.atOnce < 2 {
					return ""
				}
				return fmt.Sprintf(errorReply, -32000, fmt.Sprintf("QueuePool limit of size 2 overflow %d reached", e.atOnce))
			})
		}, "PAR-002", "PAR-002", "no connection to the database is free", false, []string{"kept in a global", "a buffer or a connection is shared"}},
		{"identifiers in lower case", func(e *small) { e.fold = strings.ToLower },
			"DUR-005 SEM-001 SEM-006 SPD-006 STA-002 FLD-014 SEM-014", "DUR-005", "stores identifiers in lower case", true, []string{"looks elsewhere", "not awaited", "a body limit", "list_fields left"}},
		{"half of a batch refused by position", func(e *small) {
			e.refuse = func(place, of int) string {
				if of > 1 && place%2 == 1 {
					return "internal error"
				}
				return ""
			}
		}, "DAT-014 DUP-003", "OPS-007", "for their position in the batch", false, []string{"takes less than the declared type"}},
		{"a member under another name", func(e *small) {
			e.answer = func(method string, _ int, _ []byte) string {
				if method != rpc.MethodTestConnection {
					return ""
				}
				return `{"jsonrpc":"2.0","id":$ID,"result":{"healthy":true}}`
			}
		}, "CON-001", "CON-001", `another name, "healthy"`, false, []string{"text or a number"}},
		{"no limit", func(e *small) { e.speed.MaximumRecordsPerSecond = 0 }, "SPD-001", "SPD-001", "no limit", false, []string{"a configuration as text"}},
		{"no results yet", func(e *small) {
			batches(e, func(int, []byte) string { return `{"jsonrpc":"2.0","id":$ID,"result":{"record_results":[]}}` })
		}, "OPS-004", "OPS-004", "not awaited", false, []string{"listed but not handled"}},
		{"keys in capitals in the results", func(e *small) {
			batches(e, func(_ int, body []byte) string {
				_, p := batchIn(body)
				return acknowledging(p, func(key []byte) []byte { return bytes.Replace(key, []byte("zz-conf"), []byte("ZZ-CONF"), 1) })
			})
		}, "RES-004", "RES-004", "are put into one case", false, []string{"parsed, trimmed or folded"}},
		{"code that reads a member that is not there", func(e *small) {
			e.answer = func(method string, _ int, _ []byte) string {
				if method != rpc.MethodGetSyncSpeed {
					return ""
				}
				return fmt.Sprintf(errorReply, -32603, "KeyError: 'tenant'")
			}
		}, "SPD-002", "SPD-002", "reads tenant", false, []string{"first text of the protocol"}},
		{"a field that was sent is missing", func(e *small) {
			e.refuse = func(int, int) string { return "email is missing" }
		}, "OPS-007", "OPS-007", "and it was sent", false, []string{"tests the wrong condition"}},
		{"writes that stay in a buffer", func(e *small) {
			held := map[string]rpc.Record{}
			e.keep = func(string, string) bool { return false }
			batches(e, func(_ int, body []byte) string {
				_, p := batchIn(body)
				for _, r := range p.Records {
					held[exchange.KeyText(r["email"])] = r
				}
				if len(p.Records) >= 10 {
					e.mu.Lock()
					defer e.mu.Unlock()
					if e.stored["contact"] == nil {
						e.stored["contact"] = map[string]rpc.Record{}
					}
					maps.Copy(e.stored["contact"], held)
					clear(held)
				}
				return ""
			})
		}, "SEM-006", "SEM-006", "stay in a buffer", true, []string{"the values that are sent", "is not committed, or its error"}},
		{"a key that is put into a URL", func(e *small) {
			e.fold = func(key string) string { before, _, _ := strings.Cut(key, "?"); return before }
		}, "SEM-014", "SEM-014", "behind a ? only", false, []string{"or their number", "a variable is shared"}},
		{"deletes that come later", func(e *small) {
			batches(e, func(_ int, body []byte) string {
				req, p := batchIn(body)
				if p.SyncPlan.Operation != rpc.OperationDelete {
					return ""
				}
				go func() {
					time.Sleep(150 * time.Millisecond)
					e.reply(req)
				}()
				return acknowledging(p, func(key []byte) []byte { return key })
			})
		}, "SEM-009", "SEM-009", "the write is not awaited", true, []string{"not implemented"}},
		{"one failure ends the batch", func(e *small) {
			e.fields[1].Required = true
			batches(e, func(_ int, body []byte) string {
				if !bytes.Contains(body, []byte(`"name":null`)) {
					return ""
				}
				return fmt.Sprintf(errorReply, -32000, "name must not be empty")
			})
		}, "RES-018", "RES-018", "without handling of the single row", false, []string{"a limit for the size"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newSmall()
			c.mistake(e)
			opts := writing(e)
			opts.Select = strings.Fields(c.selected)
			r, err := Run(context.Background(), Target{Handler: e}, opts)
			require.NoError(t, err)
			require.Equal(t, []string{c.finds}, brokenIn(r), foundBy(r))
			require.Zero(t, r.Counts[conformance.HarnessError])
			f := resultOf(t, r, c.finds).Findings[0]
			printed := ""
			for _, check := range r.Checks {
				for _, f := range check.Findings {
					printed += f.Cause + "\n"
				}
			}
			require.Contains(t, f.Cause, c.right)
			require.Equal(t, c.observed, f.Observed)
			for _, wrong := range c.wrong {
				require.NotContains(t, printed, wrong)
			}
		})
	}
}

// batchIn reads a request; one that is no batch has no records.
func batchIn(body []byte) (req rpc.Request, p rpc.BatchParams) {
	req, err := rpc.DecodeRequest(body)
	if err == nil {
		_ = json.Unmarshal(req.Params, &p)
	}
	return req, p
}

// acknowledging is a reply that reports success for each record, under an altered key.
func acknowledging(p rpc.BatchParams, alter func(key []byte) []byte) string {
	var results []string
	for _, r := range p.Records {
		results = append(results, fmt.Sprintf(`{"identifier":%s,"success":true}`, alter(r["email"])))
	}
	return `{"jsonrpc":"2.0","id":$ID,"result":{"record_results":[` + strings.Join(results, ",") + `]}}`
}

// TestABodyLimitIsOneFinding: the status 413 leads to the limit, whichever check meets it.
func TestABodyLimitIsOneFinding(t *testing.T) {
	e := newSmall()
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body) > 60_000 {
			http.Error(w, "request entity too large", http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		e.ServeHTTP(w, r)
	})
	opts := writing(e)
	opts.Select = []string{"DAT-011", "DAT-012"}
	r, err := Run(context.Background(), Target{Handler: limited}, opts)
	require.NoError(t, err)
	require.Equal(t, []string{"DAT-011"}, brokenIn(r), foundBy(r))
	require.Contains(t, resultOf(t, r, "DAT-011").Findings[0].Cause, "limit for the body")
	require.True(t, slices.Contains(resultOf(t, r, "DAT-012").BlockedBy, "DAT-011"))
}
