package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

const errorReply = `{"jsonrpc":"2.0","id":$ID,"error":{"code":%d,"message":%q}}`

// TestCausesThatWereWrong: mistakes with the cause that they have, and with one that was
// once printed for them.
func TestCausesThatWereWrong(t *testing.T) {
	batches := func(e *small, answer func(records int, body []byte) string) {
		e.answer = func(method string, _ int, body []byte) string {
			var p rpc.BatchParams
			req, err := rpc.DecodeRequest(body)
			if method != rpc.MethodSyncBatch || err != nil || json.Unmarshal(req.Params, &p) != nil || len(p.Records) == 0 {
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
		}, "DAT-014 DUP-003", "DUP-003", "for their position in the batch", false, []string{"takes less than the declared type"}},
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
