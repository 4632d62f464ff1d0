package syncs

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/testkit"
)

func TestExplainRecord(t *testing.T) {
	var asked string
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		switch {
		case r.Header.Get("Authorization") == "Bearer another":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"status":"error","message":"wrong control token"}`))
		case r.URL.Query().Get("identifier") == "nobody":
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status":"error","message":"neither the source nor the ledger has it"}`))
		case r.URL.Query().Get("identifier") == "gone":
			_, _ = w.Write([]byte(`{"sync_id":1,"sync_run_id":2,"identifier":7,"source_error":"no such table","copies":2,"invalid":"the identifier is NULL","decision":"invalid","schema_changes":[{"change":"added","column":"city","type_before":null,"type_after":"TEXT","handling":"mapped to the field \"city\""}],"attempts":[],"next_retry":{"when":"none","at":null}}`))
		default:
			_, _ = w.Write([]byte(testkit.RecordWay))
		}
	}))
	defer served.Close()
	t.Setenv("WRONG_TOKEN", "another")
	for name, tc := range map[string]struct {
		args   []string
		status int
		asked  string
		said   string // the whole output, or a part of the complaint
	}{
		"a run": {[]string{"--sync-run", "2", "ada@example.com"}, exit.OK, "/_control/explain?identifier=ada%40example.com&sync_run_id=2",
			`"ada@example.com" in run 2 of sync 1
  source row    {"email":"ada@example.com","id":9007199254740993}
  record        {"email":"ada@example.com"}
  fingerprint   before 0c3d, after none, of the row as it is now 91be
  decision      sent; the record has changed
  attempt 1: upsert at 2026-12-01T08:00:00.000Z, 120ms
    sent        {"email":"ada@example.com"}
    call        call_000000000012 HTTP 503: busy now
    request     {"method":"sync_batch"}
    response    20,000 bytes
    verdict     failed
  attempt 2: upsert at 2026-12-01T08:00:04.000Z
    sent        not kept
    call        the journal has forgotten it
    verdict     rejected: no \x1b[2J such country
  verdict       rejected: no such country
  next retry    next run, 2026-12-02T08:00:00.000Z
`},
		"an invalid row": {[]string{"--sync", "1", "gone"}, exit.OK, "/_control/explain?identifier=gone&sync_id=1",
			`7 in run 2 of sync 1
  source row    cannot be read now: no such table (one of 2 with this identifier)
  invalid       the identifier is NULL
  fingerprint   before none, after none, of the row as it is now none
  decision      invalid
  column        "city" added: mapped to the field "city"
  verdict       none: it was not sent in this run
  next retry    none
`},
		"as JSON":       {[]string{"--sync", "1", `"42"`, "--json"}, exit.OK, "/_control/explain?identifier=%2242%22&sync_id=1", testkit.RecordWay + "\n"},
		"nobody":        {[]string{"--sync", "1", "nobody"}, exit.BadUsage, "/_control/explain?identifier=nobody&sync_id=1", "explain nobody: the service answered 404: neither the source nor the ledger has it"},
		"a wrong token": {[]string{"--sync", "1", "a", "--control-token-env", "WRONG_TOKEN"}, exit.NotTested, "/_control/explain?identifier=a&sync_id=1", "wrong control token; from elsewhere than loopback it needs --control-token-env"},
		"no run":        {[]string{"a"}, exit.BadUsage, "", "in which run? --sync-run N"},
		"both":          {[]string{"a", "--sync", "1", "--sync-run", "1"}, exit.BadUsage, "", "[sync sync-run]"},
		"a run below 1": {[]string{"a", "--sync-run", "0"}, exit.BadUsage, "", "--sync-run must be a whole number from 1, not 0"},
		"no record":     {[]string{"--sync", "1"}, exit.BadUsage, "", "missing the IDENTIFIER of the record"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = ""
			status, out, screen := runHere(t.Context(), append([]string{"explain-record", "--url", served.URL}, tc.args...)...)
			require.Equal(t, tc.status, status, screen)
			require.Equal(t, tc.asked, asked)
			if status == exit.OK {
				require.Equal(t, tc.said, out)
				return
			}
			require.Contains(t, screen, tc.said)
		})
	}
}
