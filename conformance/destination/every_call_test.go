package destination

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// reworded is an endpoint whose replies are changed before they leave.
type reworded struct {
	*small
	change func(method string, records int, query string, w *httptest.ResponseRecorder)
}

func (e *reworded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	e.small.ServeHTTP(rec, r)
	n, _ := wire.Parse(body)
	method, records := "", 0
	if m := n.Get("method"); m.Is(wire.String) {
		method = m.Text
	}
	if list := n.Get("params", "records"); list.Is(wire.Array) {
		records = len(list.Items)
	}
	e.answering.Lock()
	e.change(method, records, r.URL.RawQuery, rec)
	e.answering.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(cmp.Or(rec.Code, http.StatusOK))
	_, _ = w.Write(rec.Body.Bytes())
}

// TestRulesHoldForEveryCall: a rule about replies is broken by any call of a run, whichever
// check it was made for, and by nothing that another rule is about.
func TestRulesHoldForEveryCall(t *testing.T) {
	replaced := func(rec *httptest.ResponseRecorder, old, text string) {
		now := strings.ReplaceAll(rec.Body.String(), old, text)
		rec.Body.Reset()
		rec.Body.WriteString(now)
	}
	for _, c := range []struct {
		mistake, selected, finds string
		change                   func(method string, records int, query string, rec *httptest.ResponseRecorder)
	}{
		{"status 422 with the results of some records", "HTTP-001 RPC-003 RES-009", "HTTP-001", func(_ string, records int, _ string, rec *httptest.ResponseRecorder) {
			if records > 0 && strings.Contains(rec.Body.String(), `"success":false`) {
				rec.Code = http.StatusUnprocessableEntity
			}
		}},
		{"a number for the id of a batch", "RPC-003 RES-001 RES-002", "RPC-003", func(_ string, records int, _ string, rec *httptest.ResponseRecorder) {
			if records > 0 {
				_, after, _ := strings.Cut(rec.Body.String(), `"id":"`)
				id, _, _ := strings.Cut(after, `"`)
				replaced(rec, `"id":"`+id+`"`, `"id":7`)
			}
		}},
		{"two results for each record of a full batch", "RES-002 RES-003 SPD-006", "RES-003", func(_ string, records int, _ string, rec *httptest.ResponseRecorder) {
			if before, list, is := strings.Cut(rec.Body.String(), `"record_results":[`); is && records == 100 {
				results, after, _ := strings.Cut(list, "]")
				rec.Body.Reset()
				rec.Body.WriteString(before + `"record_results":[` + results + "," + results + "]" + after)
			}
		}},
		{"one page of the platform for a path that it does not know", "RPC-002 RPC-005 RPC-008", "RPC-008", func(method string, _ int, _ string, rec *httptest.ResponseRecorder) {
			if strings.Contains(rec.Body.String(), "-32601") {
				rec.Code = http.StatusNotFound
				rec.Body.Reset()
				rec.Body.WriteString(`{"detail":"Not Found"}`)
			}
		}},
		{"a result for each method whose name begins with rpc.", "RPC-008 RPC-009", "RPC-008", func(method string, _ int, _ string, rec *httptest.ResponseRecorder) {
			if strings.HasPrefix(method, "rpc.") {
				replaced(rec, `"error":{"code":-32601,"message":"no such method"}`, `"result":{}`)
			}
		}},
		{"the URL with its secret in the message of a refused record", "AUTH-007 RES-006 RES-009", "AUTH-007", func(_ string, _ int, query string, rec *httptest.ResponseRecorder) {
			replaced(rec, `"skipped"`, `"skipped by https://destination.example/rpc?`+query+`"`)
		}},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			t.Parallel()
			e := newSmall()
			server := httptest.NewServer(&reworded{e, c.change})
			t.Cleanup(server.Close)
			opts := writing(e)
			opts.Select, opts.URLSecret = strings.Fields(c.selected), "query:code"
			r, err := Run(context.Background(), Target{URL: server.URL + "/rpc?code=9f6c2f5d4b7a"}, opts)
			require.NoError(t, err)
			require.Equal(t, []string{c.finds}, brokenIn(r), foundBy(r))
			require.NotContains(t, fmt.Sprintf("%+v", r), "9f6c2f5d4b7a")
		})
	}
}

// TestAnInsertThatAddsACopyIsOneFinding: SEM-002 does not report what SEM-003 covers.
func TestAnInsertThatAddsACopyIsOneFinding(t *testing.T) {
	e, copies := newSmall(), map[string]int{}
	e.treat = map[string]string{rpc.OperationInsert: rpc.OperationUpsert}
	e.keep = func(operation, key string) bool {
		if operation == rpc.OperationInsert {
			copies[key]++
		}
		return true
	}
	opts := writing(e)
	opts.Select = []string{"SEM-002", "SEM-003"}
	opts.ReadbackFunc = func(ctx context.Context, q conformance.ReadbackRequest) (conformance.ReadbackReply, error) {
		out, err := e.readback(ctx, q)
		e.mu.Lock()
		defer e.mu.Unlock()
		for i := range out.Records {
			out.Records[i].Count = max(1, copies[strings.Trim(string(out.Records[i].Identifier), `"`)])
		}
		return out, err
	}
	r, err := Run(context.Background(), Target{Handler: e}, opts)
	require.NoError(t, err)
	require.Equal(t, []string{"SEM-003"}, brokenIn(r), foundBy(r))
}
