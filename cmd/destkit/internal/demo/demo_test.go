package demo

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

// TestDemoNotices: the demo is a test of the whole, so each number counts.
func TestDemoNotices(t *testing.T) {
	step := steps(1000)[2]
	good := figures{Number: 3, Source: 1010, Updates: 30, Processed: 30, Updated: 30, Requests: 1, Stored: 1010}
	run := api.SyncRun{Status: api.RunCompleted}
	for name, tc := range map[string]struct {
		change func(*figures, *api.SyncRun)
		want   string // "" nothing is wrong
	}{
		"as it must be":    {func(*figures, *api.SyncRun) {}, ""},
		"a row too few":    {func(r *figures, _ *api.SyncRun) { r.Source-- }, "run 3: source_record_count is 1,009 instead of 1,010"},
		"too much sent":    {func(r *figures, _ *api.SyncRun) { r.Updates++ }, "run 3: source_record_updates is 31 instead of 30"},
		"a delete":         {func(r *figures, _ *api.SyncRun) { r.Deletes++ }, "run 3: source_record_deletes is 1 instead of 0"},
		"a failed record":  {func(r *figures, _ *api.SyncRun) { r.Failed++ }, "run 3: records_failed is 1 instead of 0"},
		"not all arrived":  {func(r *figures, _ *api.SyncRun) { r.Updated-- }, "run 3: records_updated is 29 instead of 30"},
		"counted twice":    {func(r *figures, _ *api.SyncRun) { r.Processed++ }, "run 3: records_processed is 31 instead of 30"},
		"a lost record":    {func(r *figures, _ *api.SyncRun) { r.Stored-- }, "run 3: the number of records in the destination is 1,009 instead of 1,010"},
		"nothing was sent": {func(r *figures, _ *api.SyncRun) { r.Requests = 0 }, "run 3: the destination got 0 batches for 30 records"},
		"an invalid row":   {func(_ *figures, s *api.SyncRun) { s.RecordsInvalid = api.Ptr(int64(1)) }, "run 3: records_invalid is 1 instead of 0"},
		"a full sync":      {func(_ *figures, s *api.SyncRun) { s.FullSync = true }, "run 3 was a full sync, for no reason"},
		"a failed run": {func(_ *figures, s *api.SyncRun) { s.Status, s.ErrorCode = api.RunFailed, api.Ptr("UNREACHABLE") },
			"run 3 is failed: UNREACHABLE: "},
	} {
		t.Run(name, func(t *testing.T) {
			var d Demo
			r, s := good, run
			tc.change(&r, &s)
			d.compare(r, step, s)
			if tc.want == "" {
				require.Empty(t, d.problems)
				return
			}
			require.Equal(t, []string{tc.want}, d.problems)
		})
	}
}

// TestDemoAudit: findings are reported, and an audit that looked at nothing is none.
func TestDemoAudit(t *testing.T) {
	last := step{source: 995, stored: 995}
	for name, tc := range map[string]struct {
		answer string
		want   []string
	}{
		"clean": {`{"clean":true,"checked":{"source":995,"ledger":1000,"destination":995,"runs":1},"totals":{},"findings":[]}`, nil},
		"a lost record": {`{"clean":false,"checked":{"source":995,"ledger":1000,"destination":995,"runs":1},"totals":{"lost":1},
			"findings":[{"kind":"lost","identifier":"ada@example.com","message":"acknowledged in run 1, and not stored"}]}`,
			[]string{`audit: lost "ada@example.com": acknowledged in run 1, and not stored`}},
		"not clean, and no word why": {`{"clean":false,"checked":{"source":995,"ledger":1000,"destination":995,"runs":1}}`, []string{"the audit is not clean"}},
		"it looked at nothing":       {`{"clean":true,"checked":{}}`, []string{"the audit looked at 0 rows, 0 records and 0 runs instead of 995, 995 and 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := testkit.Answering(t, map[string][]string{"POST /_control/audit": {"200 " + tc.answer}})
			var out bytes.Buffer
			d := Demo{Out: &out, runs: make([]figures, 1)}
			w := &World{Sync: 1, API: &syncs.Client{Root: url, Token: "the-key-of-the-test", HTTP: http.DefaultClient},
				Destination: &syncs.Client{Root: "https://127.0.0.1:1"}}
			require.NoError(t, d.prove(t.Context(), w, last))
			require.Equal(t, tc.want, d.problems)
			require.Equal(t, []string{`POST /_control/audit {"readback":{"url":"https://127.0.0.1:1/_control/readback"},"sync_id":1}`}, s.Said())
			require.Contains(t, out.String(), "identifiers of the ledger compared")
		})
	}
}
