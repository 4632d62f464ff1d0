package syncs

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

func TestSyncRun(t *testing.T) {
	working := testkit.OneRun("working", "reading", 100000, 30, 10, 0, "")
	const failure = `,"error_code":"UNREACHABLE","error_message":"the destination gives no answer","error_detail":"line\nbreak"`
	for name, tc := range map[string]struct {
		runs   []string
		args   []string
		status int
		out    []string
	}{
		"completed": {
			[]string{testkit.OneRun("queued", "Waiting to run", 0, 0, 0, 0, ""), working, testkit.OneRun("completed", "", 100000, 30, 30, 0, "")}, nil, exit.OK,
			[]string{"sync 1 (Contacts), run 4: queued", "run 4: reading, 100,000 read, 30 to send, 10 sent", "run 4: completed",
				"100,000 rows read, 30 updates, 0 deletes, 0 invalid; 30 records processed, 30 updated, 0 failed"}},
		"capitals and words of other versions": {
			[]string{testkit.OneRun("Preparing", "", 0, 0, 0, 0, ""), testkit.OneRun("Retrying", "Running Sync", 1, 1, 0, 0, ""), testkit.OneRun("Completed", "", 1, 1, 1, 0, "")}, nil, exit.OK,
			[]string{"Running Sync", "run 4: completed"}},
		"failed": {
			[]string{working, testkit.OneRun("failed", "reading", 100000, 30, 10, 2, failure)}, nil, exit.GateFailed,
			[]string{"run 4: failed", "8 updated, 2 failed", "  UNREACHABLE: the destination gives no answer\n  line break\n"}},
		"cancelled": {
			[]string{testkit.OneRun("failed", "reading", 1, 1, 1, 0, `,"canceled":true,"error_code":"CANCELED"`)}, nil, exit.GateFailed, []string{"run 4: cancelled", "  CANCELED\n"}},
		"skipped":                {[]string{testkit.OneRun("skipped", "", 0, 0, 0, 0, "")}, nil, exit.GateFailed, []string{"skipped: an earlier run of the sync is still active"}},
		"failed records":         {[]string{testkit.OneRun("completed", "", 9, 9, 9, 2, "")}, nil, exit.OK, []string{"7 updated, 2 failed"}},
		"too many":               {[]string{testkit.OneRun("completed", "", 9, 9, 9, 2, "")}, []string{"--max-failed", "1"}, exit.GateFailed, []string{"2 failed"}},
		"as many as may":         {[]string{testkit.OneRun("completed", "", 9, 9, 9, 2, "")}, []string{"--max-failed=2"}, exit.OK, []string{"2 failed"}},
		"the service comes back": {[]string{working, "000", "503 <html>", "429 {\"status\":429}", testkit.OneRun("completed", "", 9, 9, 9, 0, "")}, nil, exit.OK, []string{"run 4: completed"}},
		"quiet":                  {[]string{working, testkit.OneRun("failed", "", 9, 9, 9, 2, failure)}, []string{"-q"}, exit.GateFailed, nil},
		"full":                   {[]string{testkit.OneRun("completed", "", 9, 9, 9, 0, `,"full_sync":true`)}, []string{"--full"}, exit.OK, []string{"completed (full sync)"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := testkit.Answering(t, map[string][]string{"GET /api/v1/sync_runs/4": tc.runs})
			args := append([]string{"sync", "run", "1", "--url", url, "--interval", "1ms"}, tc.args...)
			status, out, screen := runHere(t.Context(), args...)
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
			require.Contains(t, s.Said(), full)
		})
	}
}

func TestSyncRunAsJSON(t *testing.T) {
	_, url := testkit.Answering(t, map[string][]string{"GET /api/v1/sync_runs/4": {
		testkit.OneRun("working", "reading", 5, 5, 1, 0, ""), testkit.OneRun("working", "reading", 5, 5, 1, 0, ""), testkit.OneRun("completed", "", 9, 9, 9, 0, ""),
	}})
	status, out, _ := runHere(t.Context(), "sync", "run", "1", "--url", url+"/api/v1/", "--interval", "1ms", "--json")
	require.Zero(t, status)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2, "nothing is said twice")
	var last Line
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &last))
	require.Equal(t, "completed", last.Run.Status)
	require.Equal(t, int64(9), *last.Run.RecordsUpdated)
	require.Equal(t, "Contacts", *last.Label)
	require.Zero(t, *last.SecondsLeft)
	require.Contains(t, lines[0], `"seconds_left":null`)
}

// TestSyncRunInterrupted: a run outlives the command that started it, by
// default.
func TestSyncRunInterrupted(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		status int
		said   string
		cancel bool
	}{
		"left alone": {nil, exit.NotTested, "interrupted; run 4 goes on: 'destkit sync watch 1' follows it, 'destkit sync cancel 4' cancels it", false},
		"cancelled":  {[]string{"--cancel-on-interrupt"}, exit.GateFailed, "interrupted; cancelling run 4", true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			s, url := testkit.Answering(t, map[string][]string{"GET /api/v1/sync_runs/4": {testkit.OneRun("working", "reading", 5, 5, 1, 0, "")}})
			s.Each = func(call string) {
				switch call {
				case "GET /api/v1/sync_runs/4":
					interrupt()
				case "POST /api/v1/sync_runs/4/cancel":
					s.Answers["GET /api/v1/sync_runs/4"] = []string{testkit.OneRun("failed", "reading", 5, 5, 1, 0, `,"canceled":true`)}
				}
			}
			status, out, screen := runHere(ctx, append([]string{"sync", "run", "1", "--url", url}, tc.args...)...)
			require.Equal(t, tc.status, status)
			require.Contains(t, screen, tc.said)
			require.Equal(t, tc.cancel, strings.Contains(strings.Join(s.Said(), "\n"), "POST /api/v1/sync_runs/4/cancel"))
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
		"no such sync":            {nil, "", []string{"run", "2"}, exit.BadUsage, "read sync 2: the service answered 404 Not Found"},
		"no id":                   {nil, "", []string{"run", "Contacts"}, exit.BadUsage, `"Contacts" is no id of a sync`},
		"no key":                  {nil, "-", []string{"run", "1"}, exit.BadUsage, "destkit: DESTKIT_WORKSPACE_API_KEY: the environment variable is not set; run 'export DESTKIT_WORKSPACE_API_KEY=…' first\n"},
		"a wrong key":             {nil, "another", []string{"run", "1"}, exit.NotTested, "the service answered 401 Unauthorized; the token is sent as"},
		"a refused trigger":       {map[string][]string{"POST /api/v1/syncs/1/trigger": {`400 {"status":"error","message":"append syncs have no full sync"}`}}, "", []string{"run", "1"}, exit.BadUsage, "trigger sync 1: the service answered 400: append syncs have no full sync"},
		"never comes back":        {map[string][]string{"GET /api/v1/sync_runs/4": {"000"}}, "", []string{"run", "1", "--patience", "0s"}, exit.NotTested, "follow run 4: reach the service"},
		"another program":         {map[string][]string{"GET /api/v1/syncs/1": {"200 <html>"}}, "", []string{"run", "1"}, exit.NotTested, "does --url name the service?"},
		"a key in the URL":        {nil, "", []string{"run", "1", "--url", "http://bearer:the-secret@127.0.0.1:1"}, exit.BadUsage, "--url holds a user or a token"},
		"nonsense as URL":         {nil, "", []string{"run", "1", "--url", "localhost"}, exit.BadUsage, "the URL must begin with http:// or https://"},
		"a query":                 {nil, "", []string{"run", "1", "--url", "http://127.0.0.1:1/?a=b"}, exit.BadUsage, "give the address only"},
		"no interval":             {nil, "", []string{"run", "1", "--interval", "0s"}, exit.BadUsage, "--interval must be longer than nothing"},
		"two ways to speak":       {nil, "", []string{"run", "1", "--json", "--quiet"}, exit.BadUsage, "json quiet"},
		"cancel what is over":     {map[string][]string{"POST /api/v1/sync_runs/4/cancel": {`409 {"status":"error","message":"the run is over"}`}}, "", []string{"cancel", "4"}, exit.BadUsage, "cancel run 4: the service answered 409: the run is over"},
		"a subcommand that isn't": {nil, "", []string{"runn"}, exit.BadUsage, `unknown command "runn", did you mean "run"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := testkit.Answering(t, tc.answers)
			switch tc.key {
			case "":
			case "-":
				unset(t, command.WorkspaceKeyVariable)
			default:
				t.Setenv(command.WorkspaceKeyVariable, tc.key)
			}
			args := append([]string{"sync"}, tc.args...)
			if !strings.Contains(strings.Join(args, " "), "--url") && len(args) > 2 {
				args = append(args, "--url", url)
			}
			status, _, screen := runHere(t.Context(), args...)
			require.Equal(t, tc.status, status, screen)
			require.Contains(t, screen, tc.said)
			require.NotContains(t, screen, "the-secret")
		})
	}
}

// newProgram is the program with these commands alone.
func newProgram() *cobra.Command {
	root := &cobra.Command{Use: "destkit", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(New(), NewExplainRecord())
	return root
}

// runHere runs the program in this process.
func runHere(ctx context.Context, args ...string) (status int, out, screen string) {
	var stdout, stderr bytes.Buffer
	root := newProgram()
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	status = command.Execute(ctx, root, args)
	return status, stdout.String(), stderr.String()
}

// unset takes a variable away for one test.
func unset(t *testing.T, name string) {
	t.Setenv(name, "") // puts the old value back at the end
	require.NoError(t, os.Unsetenv(name))
}

// TestBar draws what a terminal gets.
func TestBar(t *testing.T) {
	var out, screen bytes.Buffer
	d := &bar{out: &out, screen: &screen}
	v := View{Sync{1, api.Ptr("Contacts")}, at("reading", 400, 400, 200), Figures{RecordsPerSecond: 50, Left: 16 * time.Second, Share: 0.3}}
	unknown := v
	unknown.Share, unknown.Left = -1, -1
	d.Moment([]View{unknown})
	require.Contains(t, screen.String(), "sync 1 (Contacts), run 3: reading, 400 read, 400 to send, 200 sent, 50/s")
	require.NotContains(t, screen.String(), "%")
	d.Moment([]View{v})
	require.Contains(t, screen.String(), "30%")
	require.Contains(t, screen.String(), "about 16s left")
	d.Moment([]View{v, v})
	require.Contains(t, screen.String(), "2 runs: 400 sent, 100/s")
	require.Empty(t, out.String())
	v.Run.Status = api.RunCompleted
	d.Ended(v)
	require.Contains(t, out.String(), "run 3: completed")
}

func TestWords(t *testing.T) {
	v := View{Sync{1, nil}, at("Reading", 22784, 22784, 19000), Figures{RecordsPerSecond: 5709, Left: 49 * time.Second}}
	require.Equal(t, "run 3 reading: 19,000 of 22,784 sent, 5,709/s, 49s left", shortText(v))
	v.Run.SourceRecordUpdates, v.RecordsPerSecond, v.Left = nil, 0, -1
	require.Equal(t, "run 3 reading: 22,784 read", shortText(v))
}
