package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// fakeService plays back what a service answers, call by call.
type fakeService struct {
	t       *testing.T
	mu      sync.Mutex
	calls   []string
	answers map[string][]string // by "METHOD /path": "STATUS BODY"; the last one stays
	each    func(call string)
}

func (s *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	call := r.Method + " " + r.URL.Path
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, strings.TrimSpace(call+" "+string(body)))
	if s.each != nil {
		s.each(call)
	}
	if r.Header.Get("Authorization") != "Bearer the-key-of-the-test" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"status":401}`)
		return
	}
	list := s.answers[call]
	if len(list) == 0 {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"status":404}`)
		return
	}
	if len(list) > 1 {
		s.answers[call] = list[1:]
	}
	var code int
	_, err := fmt.Sscanf(list[0], "%d", &code)
	require.NoError(s.t, err)
	if code == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, strings.TrimSpace(list[0][3:]))
}

// said are the calls so far.
func (s *fakeService) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// answering starts a fake service with one sync.
func answering(t *testing.T, answers map[string][]string) (*fakeService, string) {
	t.Setenv(envWorkspaceKey, "the-key-of-the-test")
	s := &fakeService{t: t, answers: map[string][]string{
		"GET /api/v1/syncs/1":             {`200 {"status":"success","data":{"id":1,"label":"Contacts","status":"Up to Date"}}`},
		"GET /api/v1/syncs/1/sync_runs":   {`200 {"status":"success","data":[]}`},
		"POST /api/v1/syncs/1/trigger":    {`200 {"status":"success","data":{"sync_run_id":4}}`},
		"POST /api/v1/sync_runs/4/cancel": {`200 {"status":"cancelled","data":{}}`},
	}}
	for call, list := range answers {
		s.answers[call] = list
	}
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	return s, served.URL
}

// oneRun is the answer that shows run 4 of sync 1.
func oneRun(status, step string, rows, updates, processed, failed int64, more string) string {
	return fmt.Sprintf(`200 {"status":"success","data":%s}`, runText(status, step, rows, updates, processed, failed, more))
}

func runText(status, step string, rows, updates, processed, failed int64, more string) string {
	return fmt.Sprintf(`{"id":4,"sync_id":1,"created_at":"2026-12-01T08:00:00.000Z","updated_at":"2026-12-01T08:00:00.000Z",`+
		`"status":%q,"current_step":%q,"source_record_count":%d,"source_record_updates":%d,"source_record_deletes":0,`+
		`"records_processed":%d,"records_updated":%d,"records_failed":%d,"records_invalid":0%s}`,
		status, step, rows, updates, processed, processed-failed, failed, more)
}

// command runs the program in this process.
func command(ctx context.Context, args ...string) (status int, out, screen string) {
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	status = execute(ctx, root, args)
	return status, stdout.String(), stderr.String()
}

func TestSyncRun(t *testing.T) {
	working := oneRun("working", "reading", 100000, 30, 10, 0, "")
	const failure = `,"error_code":"UNREACHABLE","error_message":"the destination gives no answer","error_detail":"line\nbreak"`
	for name, tc := range map[string]struct {
		runs   []string
		args   []string
		status int
		out    []string
	}{
		"completed": {
			[]string{oneRun("queued", "Waiting to run", 0, 0, 0, 0, ""), working, oneRun("completed", "", 100000, 30, 30, 0, "")}, nil, statusOK,
			[]string{"sync 1 (Contacts), run 4: queued", "run 4: reading, 100,000 read, 30 to send, 10 sent", "run 4: completed",
				"100,000 rows read, 30 updates, 0 deletes, 0 invalid; 30 records processed, 30 updated, 0 failed"}},
		"capitals and words of other versions": {
			[]string{oneRun("Preparing", "", 0, 0, 0, 0, ""), oneRun("Retrying", "Running Sync", 1, 1, 0, 0, ""), oneRun("Completed", "", 1, 1, 1, 0, "")}, nil, statusOK,
			[]string{"Running Sync", "run 4: completed"}},
		"failed": {
			[]string{working, oneRun("failed", "reading", 100000, 30, 10, 2, failure)}, nil, statusGate,
			[]string{"run 4: failed", "8 updated, 2 failed", "  UNREACHABLE: the destination gives no answer\n  line break\n"}},
		"cancelled": {
			[]string{oneRun("failed", "reading", 1, 1, 1, 0, `,"canceled":true,"error_code":"CANCELED"`)}, nil, statusGate, []string{"run 4: cancelled", "  CANCELED\n"}},
		"skipped":                {[]string{oneRun("skipped", "", 0, 0, 0, 0, "")}, nil, statusGate, []string{"skipped: an earlier run of the sync is still active"}},
		"failed records":         {[]string{oneRun("completed", "", 9, 9, 9, 2, "")}, nil, statusOK, []string{"7 updated, 2 failed"}},
		"too many":               {[]string{oneRun("completed", "", 9, 9, 9, 2, "")}, []string{"--max-failed", "1"}, statusGate, []string{"2 failed"}},
		"as many as may":         {[]string{oneRun("completed", "", 9, 9, 9, 2, "")}, []string{"--max-failed=2"}, statusOK, []string{"2 failed"}},
		"the service comes back": {[]string{working, "000", "503 <html>", "429 {\"status\":429}", oneRun("completed", "", 9, 9, 9, 0, "")}, nil, statusOK, []string{"run 4: completed"}},
		"quiet":                  {[]string{working, oneRun("failed", "", 9, 9, 9, 2, failure)}, []string{"-q"}, statusGate, nil},
		"full":                   {[]string{oneRun("completed", "", 9, 9, 9, 0, `,"full_sync":true`)}, []string{"--full"}, statusOK, []string{"completed (full sync)"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := answering(t, map[string][]string{"GET /api/v1/sync_runs/4": tc.runs})
			args := append([]string{"sync", "run", "1", "--url", url, "--interval", "1ms"}, tc.args...)
			status, out, screen := command(t.Context(), args...)
			require.Equal(t, tc.status, status, out+screen)
			for _, text := range tc.out {
				require.Contains(t, out, text)
			}
			if tc.out == nil {
				require.Empty(t, out)
			}
			require.NotContains(t, out+screen, "the-key-of-the-test")
			full := "POST /api/v1/syncs/1/trigger"
			if name == "full" {
				full += ` {"force_full_sync":true}`
			}
			require.Contains(t, s.said(), full)
		})
	}
}

func TestSyncRunAsJSON(t *testing.T) {
	_, url := answering(t, map[string][]string{"GET /api/v1/sync_runs/4": {
		oneRun("working", "reading", 5, 5, 1, 0, ""), oneRun("working", "reading", 5, 5, 1, 0, ""), oneRun("completed", "", 9, 9, 9, 0, ""),
	}})
	status, out, _ := command(t.Context(), "sync", "run", "1", "--url", url+"/api/v1/", "--interval", "1ms", "--json")
	require.Zero(t, status)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2, "nothing is said twice")
	var last runLine
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &last))
	require.Equal(t, "completed", last.Run.Status)
	require.Equal(t, int64(9), *last.Run.RecordsUpdated)
	require.Equal(t, "Contacts", *last.Label)
	require.Zero(t, *last.SecondsLeft)
	require.Contains(t, lines[0], `"seconds_left":null`)
}

// TestSyncRunInterrupted: a run outlives the command that started it, unless
// told otherwise.
func TestSyncRunInterrupted(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		status int
		said   string
		cancel bool
	}{
		"left alone": {nil, statusUntested, "interrupted; run 4 goes on: 'destkit sync watch 1' follows it, 'destkit sync cancel 4' cancels it", false},
		"cancelled":  {[]string{"--cancel-on-interrupt"}, statusGate, "interrupted; cancelling run 4", true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			s, url := answering(t, map[string][]string{"GET /api/v1/sync_runs/4": {oneRun("working", "reading", 5, 5, 1, 0, "")}})
			s.each = func(call string) {
				switch call {
				case "GET /api/v1/sync_runs/4":
					interrupt()
				case "POST /api/v1/sync_runs/4/cancel":
					s.answers["GET /api/v1/sync_runs/4"] = []string{oneRun("failed", "reading", 5, 5, 1, 0, `,"canceled":true`)}
				}
			}
			status, out, screen := command(ctx, append([]string{"sync", "run", "1", "--url", url}, tc.args...)...)
			require.Equal(t, tc.status, status)
			require.Contains(t, screen, tc.said)
			require.Equal(t, tc.cancel, strings.Contains(strings.Join(s.said(), "\n"), "POST /api/v1/sync_runs/4/cancel"))
			require.Equal(t, tc.cancel, strings.Contains(out, "run 4: cancelled"))
		})
	}
}

func TestSyncRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		answers map[string][]string
		key     string
		args    []string
		status  int
		said    string
	}{
		"no such sync":            {nil, "", []string{"run", "2"}, statusUsage, "read sync 2: the service answered 404 Not Found"},
		"no id":                   {nil, "", []string{"run", "Contacts"}, statusUsage, `"Contacts" is no id of a sync`},
		"no key":                  {nil, "-", []string{"run", "1"}, statusUsage, "DESTKIT_WORKSPACE_API_KEY: the environment variable is not set"},
		"a wrong key":             {nil, "another", []string{"run", "1"}, statusUntested, "the service answered 401 Unauthorized; the token is sent as"},
		"a refused trigger":       {map[string][]string{"POST /api/v1/syncs/1/trigger": {`400 {"status":"error","message":"append syncs have no full sync"}`}}, "", []string{"run", "1"}, statusUsage, "trigger sync 1: the service answered 400: append syncs have no full sync"},
		"never comes back":        {map[string][]string{"GET /api/v1/sync_runs/4": {"000"}}, "", []string{"run", "1", "--patience", "0s"}, statusUntested, "follow run 4: reach the service"},
		"another program":         {map[string][]string{"GET /api/v1/syncs/1": {"200 <html>"}}, "", []string{"run", "1"}, statusUntested, "does --url name the service?"},
		"a key in the URL":        {nil, "", []string{"run", "1", "--url", "http://bearer:the-secret@127.0.0.1:1"}, statusUsage, "--url holds a user or a token"},
		"nonsense as URL":         {nil, "", []string{"run", "1", "--url", "localhost"}, statusUsage, "the URL must begin with http:// or https://"},
		"a query":                 {nil, "", []string{"run", "1", "--url", "http://127.0.0.1:1/?a=b"}, statusUsage, "give the address only"},
		"no interval":             {nil, "", []string{"run", "1", "--interval", "0s"}, statusUsage, "--interval must be longer than nothing"},
		"two ways to speak":       {nil, "", []string{"run", "1", "--json", "--quiet"}, statusUsage, "json quiet"},
		"cancel what is over":     {map[string][]string{"POST /api/v1/sync_runs/4/cancel": {`409 {"status":"error","message":"the run is over"}`}}, "", []string{"cancel", "4"}, statusUsage, "cancel run 4: the service answered 409: the run is over"},
		"a subcommand that isn't": {nil, "", []string{"runn"}, statusUsage, `unknown command "runn", did you mean "run"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := answering(t, tc.answers)
			switch tc.key {
			case "":
			case "-":
				unset(t, envWorkspaceKey)
			default:
				t.Setenv(envWorkspaceKey, tc.key)
			}
			args := append([]string{"sync"}, tc.args...)
			if !strings.Contains(strings.Join(args, " "), "--url") && len(args) > 2 {
				args = append(args, "--url", url)
			}
			status, _, screen := command(t.Context(), args...)
			require.Equal(t, tc.status, status, screen)
			require.Contains(t, screen, tc.said)
			require.NotContains(t, screen, "the-secret")
		})
	}
}

func TestSyncWatch(t *testing.T) {
	two := `200 {"status":"success","pagination":{"page":1,"next_page":null},"data":[{"id":1,"label":"Contacts"},{"id":2,"label":null}]}`
	list := func(runs ...string) string {
		return `200 {"status":"success","data":[` + strings.Join(runs, ",") + `]}`
	}
	other := strings.Replace(runText("completed", "", 7, 7, 7, 0, ""), `"id":4,"sync_id":1`, `"id":3,"sync_id":2`, 1)
	t.Run("once", func(t *testing.T) {
		_, url := answering(t, map[string][]string{
			"GET /api/v1/syncs":             {two},
			"GET /api/v1/syncs/1/sync_runs": {list(runText("working", "reading", 5, 5, 1, 0, ""))},
			"GET /api/v1/syncs/2/sync_runs": {list(other)},
			"GET /api/v1/sync_runs/4":       {oneRun("working", "reading", 5, 5, 1, 0, ""), oneRun("failed", "reading", 5, 5, 1, 1, "")},
		})
		status, out, screen := command(t.Context(), "sync", "watch", "--once", "--url", url, "--interval", "1ms")
		require.Equal(t, statusGate, status, screen)
		require.Contains(t, out, "sync 2, run 3: completed")
		require.Contains(t, out, "sync 1 (Contacts), run 4: reading")
		require.Contains(t, out, "sync 1 (Contacts), run 4: failed")
	})
	t.Run("until interrupted", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		s, url := answering(t, map[string][]string{
			"GET /api/v1/syncs": {two},
			// A run comes, is over before anybody has looked, and another is followed.
			"GET /api/v1/syncs/1/sync_runs": {list(), list(runText("working", "reading", 5, 5, 1, 0, ""))},
			"GET /api/v1/syncs/2/sync_runs": {list(), list(other)},
			"GET /api/v1/sync_runs/4":       {oneRun("working", "reading", 5, 5, 1, 0, ""), oneRun("completed", "", 5, 5, 5, 0, "")},
		})
		looked := 0
		s.each = func(call string) {
			if call == "GET /api/v1/sync_runs/4" {
				looked++
			}
			if looked == 2 && call == "GET /api/v1/syncs" {
				interrupt() // both ends have been shown by now
			}
		}
		status, out, screen := command(ctx, "sync", "watch", "--url", url, "--interval", "1ms")
		require.Equal(t, statusOK, status, screen)
		require.Contains(t, screen, "watching 2 syncs")
		require.Equal(t, 1, strings.Count(out, "sync 2, run 3: completed"))
		require.Equal(t, 1, strings.Count(out, "sync 1 (Contacts), run 4: completed"))
	})
	t.Run("a sync that is gone", func(t *testing.T) {
		_, url := answering(t, nil)
		status, _, screen := command(t.Context(), "sync", "watch", "9", "--url", url)
		require.Equal(t, statusUsage, status)
		require.Contains(t, screen, "404")
	})
}

// TestWatchIsPolite: of many syncs only some are looked at between two pauses.
func TestWatchIsPolite(t *testing.T) {
	var data []string
	answers := map[string][]string{}
	for id := 1; id <= 35; id++ {
		data = append(data, fmt.Sprintf(`{"id":%d}`, id))
		answers[fmt.Sprintf("GET /api/v1/syncs/%d/sync_runs", id)] = []string{`200 {"data":[]}`}
	}
	answers["GET /api/v1/syncs"] = []string{`200 {"pagination":{"page":1},"data":[` + strings.Join(data, ",") + `]}`}
	s, url := answering(t, answers)
	client := &restClient{root: url, token: "the-key-of-the-test", http: http.DefaultClient}
	var counts []int
	enough := errors.New("enough")
	w := &watch{syncs: map[int64]*watched{}, follower: &follower{client: client, show: quietDisplay{}, now: time.Now,
		wait: func(context.Context, time.Duration) error {
			counts = append(counts, len(s.said()))
			if len(counts) == 6 {
				return enough
			}
			return nil
		}}}
	require.ErrorIs(t, w.run(t.Context()), enough)
	require.Equal(t, []int{36, 46, 56, 66, 71, 82}, counts)
}

// TestBar draws what a terminal gets.
func TestBar(t *testing.T) {
	var out, screen bytes.Buffer
	d := &barDisplay{out: &out, screen: &screen}
	v := view{restSync{1, api.Ptr("Contacts")}, at("reading", 400, 400, 200), figures{recordsPerSecond: 50, left: 16 * time.Second, share: 0.3}}
	unknown := v
	unknown.share, unknown.left = -1, -1
	d.moment([]view{unknown})
	require.Contains(t, screen.String(), "sync 1 (Contacts), run 3: reading, 400 read, 400 to send, 200 sent, 50/s")
	require.NotContains(t, screen.String(), "%")
	d.moment([]view{v})
	require.Contains(t, screen.String(), "30%")
	require.Contains(t, screen.String(), "about 16s left")
	d.moment([]view{v, v})
	require.Contains(t, screen.String(), "2 runs: 400 sent, 100/s")
	require.Empty(t, out.String())
	v.run.Status = api.RunCompleted
	d.ended(v)
	require.Contains(t, out.String(), "run 3: completed")
}

func TestWords(t *testing.T) {
	v := view{restSync{1, nil}, at("Reading", 22784, 22784, 19000), figures{recordsPerSecond: 5709, left: 49 * time.Second}}
	require.Equal(t, "run 3 reading: 19,000 of 22,784 sent, 5,709/s, 49s left", shortText(v))
	v.run.SourceRecordUpdates, v.recordsPerSecond, v.left = nil, 0, -1
	require.Equal(t, "run 3 reading: 22,784 read", shortText(v))
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", 1234567: "1,234,567", -12: "-12"} {
		require.Equal(t, want, grouped(n))
	}
	require.Equal(t, "a b [2J c", oneLine("a\nb\x1b[2J\u2028c\r\n"))
	require.Equal(t, "1.5s", roughly(1520*time.Millisecond))
	require.Equal(t, "12ms", roughly(12340*time.Microsecond))
}

// unset takes a variable away for one test.
func unset(t *testing.T, name string) {
	t.Setenv(name, "") // puts the old value back at the end
	require.NoError(t, os.Unsetenv(name))
}
