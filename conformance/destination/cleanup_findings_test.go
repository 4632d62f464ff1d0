package destination

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// deletesIn are the identifiers of a delete batch; nil for every other call.
func deletesIn(body string) (keys []string) {
	var call struct{ Params rpc.BatchParams }
	if json.Unmarshal([]byte(body), &call) != nil || call.Params.SyncPlan.Operation != rpc.OperationDelete {
		return nil
	}
	for _, r := range call.Params.Records {
		keys = append(keys, string(r["email"]))
	}
	return keys
}

// TestTheCleanUpCounts: what goes wrong in the clean-up, whose delete batches are the largest
// of the run, is a finding of the check about it.
func TestTheCleanUpCounts(t *testing.T) {
	t.Parallel()
	const most = 30
	many := func(body string) bool { return len(deletesIn(body)) > most }
	for _, c := range []struct {
		name, check, actual, cause string
		serve                      func(t *testing.T, e *refuser) (url string, h http.Handler)
		left                       int // -1: all
	}{
		{"it ends the process", "ERR-006", "stopped accepting connections after sync_batch of the clean-up with", "with operation delete ends the process", func(t *testing.T, e *refuser) (string, http.Handler) {
			f := newFragile(t, e, "", 0)
			f.kills = many
			return "http://" + f.address, nil
		}, -1},
		{"it ends the process, which comes back", "ERR-006", "it was back after", "with operation delete ends the process", func(t *testing.T, e *refuser) (string, http.Handler) {
			f := newFragile(t, e, "", 20*time.Millisecond)
			f.kills = many
			return "http://" + f.address, nil
		}, 0},
		{"one record cannot be deleted", "SEM-009", `near "q": syntax error; the read-back still shows it`, "SQL is built from text", func(_ *testing.T, e *refuser) (string, http.Handler) {
			return "", instead{e, func(body string) string {
				keys := deletesIn(body)
				if len(keys) == 0 || !strings.Contains(strings.Join(keys, ""), "'") {
					return ""
				}
				if len(keys) > 1 {
					return `"error":{"code":-32000,"message":"near \"q\": syntax error"}`
				}
				return fmt.Sprintf(`"result":{"record_results":[{"identifier":%s,"success":false,"error_message":"near \"q\": syntax error"}]}`, keys[0])
			}}
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newRefuser(func(attempt) string { return "" })
			url, h := c.serve(t, e)
			r, err := Run(context.Background(), Target{URL: url, Handler: h, Token: scriptToken}, conformance.Options{
				Write: true, Objects: e.objects, Select: []string{"SEM-009", "RES-004", "DUR-001", "ERR-006"}, Seed: 7, RunID: scriptRun,
				ReadbackFunc: e.readback, ReturnWait: 300 * time.Millisecond,
			})
			require.NoError(t, err)
			require.Equal(t, []string{c.check}, brokenIn(r), foundBy(r))
			got := resultOf(t, r, c.check).Findings[0]
			require.Contains(t, got.Actual, c.actual)
			require.Contains(t, got.Cause, c.cause)
			require.Equal(t, 1, r.ExitStatus, r.Summary)
			left := len(e.keys("contact"))
			require.True(t, left == c.left || c.left < 0 && left > most, left)
			require.Equal(t, left, len(r.Residue.Refused), "what is left behind is named")
			require.Contains(t, r.Summary, quantity.Count(left, "record")+" left behind;")
		})
	}
}

// instead answers some bodies itself.
type instead struct {
	*refuser
	answer func(body string) string // members of the reply; "" leaves it to the refuser
}

func (h instead) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	answer := h.answer(string(body))
	if answer == "" {
		h.refuser.ServeHTTP(w, r)
		return
	}
	var call struct{ ID json.RawMessage }
	_ = json.Unmarshal(body, &call)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, call.ID, answer)
}
