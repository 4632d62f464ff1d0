package destination

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/destsim/rpc"
)

func TestMistakesOfTheCaller(t *testing.T) {
	e := newSmall()
	handler := Target{Handler: e}
	at := func(url string) Target { return Target{URL: url, Handler: e} }
	cases := []struct {
		name   string
		target Target
		opts   conformance.Options
		want   string
	}{
		{"no target", Target{}, conformance.Options{}, "URL of the endpoint is missing"},
		{"no scheme", at("example.com/rpc"), conformance.Options{}, "must start with https://"},
		{"another scheme", at("ftp://example.com"), conformance.Options{}, "must start with https://"},
		{"no host", at("https:///rpc"), conformance.Options{}, "has no host"},
		{"port too large", at("https://example.com:70000"), conformance.Options{}, "use 1 to 65535"},
		{"port zero", at("https://example.com:0"), conformance.Options{}, "use 1 to 65535"},
		{"does not parse", at("https://example.com/%zz"), conformance.Options{}, "does not parse"},
		{"profile", handler, conformance.Options{Profile: "v2"}, `unknown profile "v2"`},
		{"development", handler, conformance.Options{Development: "maybe"}, `unknown development mode "maybe"`},
		{"skip convention", handler, conformance.Options{SkipConvention: "shrug"}, `unknown skip convention "shrug"`},
		{"write without object", handler, conformance.Options{Write: true}, "add --object NAME"},
		{"read-back without write", handler, conformance.Options{Objects: []string{"contact"}, ReadbackFunc: empty}, "needs --write"},
		{"negative budget", handler, conformance.Options{MaxRecords: -1}, "cannot be negative"},
		{"negative timeout", handler, conformance.Options{Timeout: -1}, "cannot be negative"},
		{"negative window", handler, conformance.Options{ReadbackWindow: -1}, "cannot be negative"},
		{"url secret of no kind", at("https://h/?key=1"), conformance.Options{URLSecret: "header:key"}, "use query:NAME or path:INDEX"},
		{"url secret that is absent", at("https://h/?key=1"), conformance.Options{URLSecret: "query:other"}, "no query parameter"},
		{"url secret that is there twice", at("https://h/?key=1&key=2"), conformance.Options{URLSecret: "query:key"}, "no query parameter"},
		{"path secret beyond the path", at("https://h/a/b"), conformance.Options{URLSecret: "path:2"}, "has no segment"},
		{"path secret that is no number", at("https://h/a/b"), conformance.Options{URLSecret: "path:a"}, "has no segment"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Run(context.Background(), c.target, c.opts)
			requireUsage(t, err, c.want)
		})
	}
	require.Empty(t, e.calls, "nothing is sent after a mistake of the caller")
}

func TestURLSecret(t *testing.T) {
	for spec, want := range map[string]string{"query:key": "a b/c", "path:1": "s p", "": ""} {
		s, err := newSession(Target{URL: "https://h/x/s%20p/z?key=a%20b%2Fc", Handler: newSmall()}, conformance.Options{URLSecret: spec})
		require.NoError(t, err)
		s.Close()
		require.Equal(t, want, s.Secret)
	}
}

func TestDevelopmentModes(t *testing.T) {
	cases := []struct {
		url  string
		mode conformance.Development
		dev  bool
	}{
		{"https://example.com", conformance.DevelopmentAuto, false},
		{"http://example.com", conformance.DevelopmentAuto, false},
		{"https://localhost:1", conformance.DevelopmentAuto, true},
		{"http://api.localhost", conformance.DevelopmentAuto, true},
		{"https://127.0.0.1", conformance.DevelopmentAuto, true},
		{"https://[::1]:8", conformance.DevelopmentAuto, true},
		{"https://10.1.2.3", conformance.DevelopmentAuto, true},
		{"https://192.168.1.1", conformance.DevelopmentAuto, true},
		{"https://169.254.1.1", conformance.DevelopmentAuto, true},
		{"https://8.8.8.8", conformance.DevelopmentAuto, false},
		{"https://localhost.example.com", conformance.DevelopmentAuto, false},
		{"https://localhost", conformance.DevelopmentOff, false},
		{"https://example.com", conformance.DevelopmentOn, true},
	}
	for _, c := range cases {
		s, err := newSession(Target{URL: c.url}, conformance.Options{Development: c.mode})
		require.NoError(t, err)
		require.Equal(t, c.dev, s.Dev, "%s %s", c.url, c.mode)
		s.Close()
	}
	s, err := newSession(Target{URL: "https://example.com", Handler: newSmall()}, conformance.Options{Development: conformance.DevelopmentOff})
	require.NoError(t, err)
	s.Close()
	require.True(t, s.Dev, "a handler has no TLS to judge")
}

func TestDefaults(t *testing.T) {
	o := line.WithDefaults(conformance.Options{})
	require.Equal(t, conformance.ProfileV1, o.Profile)
	require.Equal(t, 5000, o.MaxRecords)
	require.Equal(t, "zz-conf-{run}-{check}-{n}", o.KeyTemplate)
	require.Equal(t, 10*time.Second, o.PlanningTimeout)
	require.Equal(t, 30*time.Second, o.BatchTimeout)
	require.Len(t, o.RunID, 6)
	require.NotZero(t, o.Seed)
	require.LessOrEqual(t, o.Seed, uint64(1)<<53, "a JSON reader with doubles keeps it")
	require.False(t, o.Write)
}

// TestBudget: a batch that would exceed --max-records is not sent, and the reason has the number.
func TestBudget(t *testing.T) {
	e := newSmall()
	two := writeCheck + strings.ReplaceAll(writeCheck, "WRI-001", "WRI-002")
	opts := conformance.Options{Write: true, Objects: []string{"contact"}, MaxRecords: 5 + trialOfSmall, Serial: true, SkipConvention: conformance.SkipSuccess}
	r := judged(t, e, two, opts)
	got := resultOf(t, r, "WRI-002")
	require.Equal(t, conformance.NotRun, got.Status)
	require.Equal(t, "--max-records", got.Decider)
	require.Equal(t, "needs 3 more records, and 2 of --max-records 9 are left", got.Reason)
	require.Equal(t, 3+trialOfSmall, r.Records)
	require.Contains(t, r.Undecided, "WRI-002")
	_, records := e.sent()
	require.Equal(t, 2*(3+trialOfSmall), records, "three records, those of the trial, and their clean-up")
}

// TestDefaultRunWritesNothing: not one record reaches the endpoint, whatever
// else is configured.
func TestDefaultRunWritesNothing(t *testing.T) {
	e := newSmall()
	r, err := Run(context.Background(), Target{Handler: e, Token: "the-token-of-the-tests"}, conformance.Options{Seed: 7})
	require.NoError(t, err)
	_, records := e.sent()
	require.Zero(t, records)
	require.Zero(t, r.Records)
	require.Empty(t, e.keys("contact"))
	require.Equal(t, conformance.TierProtocol, r.Tier)
	require.Equal(t, conformance.NotRun, resultOf(t, r, "RES-002").Status)
	require.Equal(t, "--write", resultOf(t, r, "RES-002").Decider)

	named := newSmall()
	_, err = Run(context.Background(), Target{Handler: named}, conformance.Options{Objects: []string{"contact"}})
	require.NoError(t, err)
	_, records = named.sent()
	require.Zero(t, records, "a named object alone permits nothing")
}

// TestOnlyNamedObjectsAreWritten: records go into the objects that are named.
func TestOnlyNamedObjectsAreWritten(t *testing.T) {
	e := newSmall()
	e.objects = []string{"contact", "order"}
	e.operations = []string{"insert", "update", "upsert"} // no clean-up: what was written stays
	opts := writing(e)
	opts.MaxRecords = 100_000
	_, err := Run(context.Background(), Target{Handler: e}, opts)
	require.NoError(t, err)
	require.NotEmpty(t, e.keys("contact"))
	require.Empty(t, e.keys("order"))
}

func TestUnknownObject(t *testing.T) {
	e := newSmall()
	opts := conformance.Options{Write: true, Objects: []string{"contact", "kontakt"}, Select: []string{"OBJ-001"}}
	_, err := Run(context.Background(), Target{Handler: e}, opts)
	requireUsage(t, err, `object "kontakt" does not exist; list_objects names "contact`)
	batches, _ := e.sent()
	require.Zero(t, batches)

	// A list that breaks a rule proves nothing: the run goes on without writes.
	twice := newSmall()
	twice.objects = []string{"contact", "contact"}
	r, err := Run(context.Background(), Target{Handler: twice}, opts)
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Notes, "\n"), "OBJ-003 does not hold: the run goes on without writes")
	_, records := twice.sent()
	require.Zero(t, records)
	require.Equal(t, conformance.TierProtocol, r.Tier)
	require.False(t, r.Settings.Write, "the report says what was permitted in the end")
}

// TestListThatCannotBeRead: the report does not suggest flags that are set, and names the check
// that failed.
func TestListThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct{ before, by string }{
		"debug text":     {"DEBUG: done\n", "RPC-001"},
		"no envelope":    {"", "RPC-005"},
		"a missing name": {"", "OBJ-001"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newSmall()
			e.answer = func(method string, _ int, _ []byte) string {
				switch {
				case method != rpc.MethodListObjects:
					return ""
				case c.by == "RPC-005":
					return `{"objects":[{"object_api_name":"contact","label":"Contact"}]}`
				case c.by == "OBJ-001":
					return `{"jsonrpc":"2.0","id":$ID,"result":{"objects":[{"label":"Contact"}]}}`
				}
				return c.before + `{"jsonrpc":"2.0","id":$ID,"result":{"objects":[{"object_api_name":"contact","label":"Contact"}]}}`
			}
			r, err := Run(context.Background(), Target{Handler: e}, writing(e))
			require.NoError(t, err)
			require.Contains(t, r.Failed, c.by)
			notes := strings.Join(r.Notes, "\n")
			if c.by == "OBJ-001" {
				require.Contains(t, notes, "object contact is not listed, and OBJ-001 does not hold")
			} else {
				require.Contains(t, notes, "list_objects could not be read ("+c.by+"): the run goes on without writes")
			}
			require.NotContains(t, r.Summary, "--write")
			blocked := 0
			for _, check := range r.Checks {
				require.NotEqual(t, "--write", check.Decider, check.ID)
				require.NotContains(t, strings.Join(check.Notes, "\n"), "--write", check.ID)
				if check.ID == "SEM-001" {
					blocked++
					require.Equal(t, []string{c.by}, check.BlockedBy)
					require.Equal(t, "blocked by "+c.by, check.Reason)
				}
			}
			require.Equal(t, 1, blocked)
		})
	}
}

// TestLostListOfObjects: a lost response is no evidence about the objects; a list that came later
// counts.
func TestLostListOfObjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lost  func(nth int) bool
		write bool
		note  string
	}{
		// A call on a kept connection is sent once more on a fresh one, a lost one is repeated
		// three times, and the checks of the list send it seven times.
		{"the first time", func(nth int) bool { return nth <= 5 }, true, ""},
		{"now and again", func(nth int) bool { return nth <= 5 || nth > 12 }, false, "object contact is not listed, and list_objects is not answered every time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newSmall()
			e.answer = func(method string, nth int, _ []byte) string {
				if method == rpc.MethodListObjects && c.lost(nth) {
					panic(http.ErrAbortHandler)
				}
				return ""
			}
			opts := writing(e)
			opts.Select = []string{"OBJ-001"}
			r, err := Run(context.Background(), Target{Handler: e}, opts)
			require.NoError(t, err)
			require.Equal(t, c.write, r.Settings.Write)
			require.Contains(t, strings.Join(r.Notes, "\n"), c.note)

			opts.Objects = []string{"kontakt"}
			lost := newSmall()
			lost.answer = e.answer
			_, err = Run(context.Background(), Target{Handler: lost}, opts)
			if c.write {
				requireUsage(t, err, `object "kontakt" does not exist; list_objects names "contact`)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// TestLostListLeavesNothingToAsk: checks that need objects stay undecided where none was listed;
// they do not break.
func TestLostListLeavesNothingToAsk(t *testing.T) {
	e := newSmall()
	e.answer = func(method string, nth int, _ []byte) string {
		if method == rpc.MethodListObjects && nth <= 5 {
			panic(http.ErrAbortHandler)
		}
		return ""
	}
	r, err := Run(context.Background(), Target{Handler: e}, conformance.Options{Select: []string{"STA-005", "PAR-001"}})
	require.NoError(t, err)
	for _, c := range r.Checks { // with those that the two build on
		switch c.ID {
		case "STA-005", "PAR-001":
			require.Equal(t, conformance.Inconclusive, c.Status, c.ID)
			require.Equal(t, "no object is listed that could be asked about", c.Reason)
		case "FLD-001", "FLD-010":
			require.Equal(t, conformance.Inconclusive, c.Status)
			require.Equal(t, "no response with a result was seen", c.Reason)
		default:
			require.Equal(t, conformance.Pass, c.Status, c.ID)
		}
	}
}

func TestUnknownObjectLeavesNoJournalBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.ndjson")
	opts := conformance.Options{Write: true, Objects: []string{"kontakt"}, Select: []string{"OBJ-001"}, Journal: path, RunID: "aaaaaa"}
	_, err := Run(context.Background(), Target{Handler: newSmall()}, opts)
	requireUsage(t, err, `object "kontakt" does not exist`)
	opts.Objects, opts.RunID = []string{"contact"}, "bbbbbb"
	_, err = Run(context.Background(), Target{Handler: newSmall()}, opts)
	require.NoError(t, err, "the corrected command runs with the same journal")
}

// TestInterruptedRun: the journal is closed, the residue reported, exit 3.
func TestInterruptedRun(t *testing.T) {
	e := newSmall()
	e.operations = []string{"upsert"} // nothing can be cleaned
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var batches atomic.Int64
	e.before = func(method string) {
		if method != rpc.MethodSyncBatch {
			return
		}
		if batches.Add(1) > trialOfSmall {
			cancel()
		}
	}
	path := filepath.Join(t.TempDir(), "run.ndjson")
	s := prepared(t, e, writeCheck+healthCheck, conformance.Options{Write: true, Objects: []string{"contact"}, Journal: path, Serial: true})
	r, err := s.run(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"interrupted"}, problemKinds(r))
	require.Equal(t, 3, r.ExitStatus)
	require.Equal(t, conformance.Unknown, r.Verdict)
	require.Equal(t, conformance.NotRun, resultOf(t, r, "WRI-001").Status)
	require.Equal(t, conformance.NotRun, resultOf(t, r, "AAA-001").Status)
	require.Len(t, r.Residue.Unknown, 3, "three keys were announced, and no answer was awaited")
	require.Len(t, r.Residue.Refused, trialOfSmall)
	require.Equal(t, path, r.Residue.Journal)

	_, err = s.Journal.Begin("contact", "email", "upsert", []json.RawMessage{json.RawMessage(`"x"`)})
	require.ErrorIs(t, err, os.ErrClosed)
	read, err := journal.Read(path)
	require.NoError(t, err)
	require.Len(t, read.Pending(), 3+trialOfSmall)
}

// TestInterruptedRunCleansUp: where delete batches are taken, an interrupted
// run still removes what it wrote.
func TestInterruptedRunCleansUp(t *testing.T) {
	e := newSmall()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opts := writing(e)
	opts.Serial = true
	opts.Progress = func(p conformance.Progress) { cancel() } // after the first check
	s := prepared(t, e, writeCheck+healthCheck, opts)
	r, err := s.run(ctx)
	require.NoError(t, err)
	require.Equal(t, conformance.Pass, resultOf(t, r, "WRI-001").Status)
	require.Equal(t, conformance.NotRun, resultOf(t, r, "AAA-001").Status)
	require.Equal(t, 3, r.ExitStatus)
	require.Positive(t, r.Residue.Cleaned)
	require.Empty(t, e.keys("contact"))
}

// TestInterruptedBeforeItBegan: the report is complete, and nothing was judged.
func TestInterruptedBeforeItBegan(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e := newSmall()
	s := prepared(t, e, healthCheck, conformance.Options{})
	r, err := s.run(ctx)
	require.NoError(t, err)
	require.Equal(t, conformance.NotRun, resultOf(t, r, "AAA-001").Status)
	require.Equal(t, 3, r.ExitStatus)
	require.Empty(t, e.calls)
}

// TestRunTimeout: checks that the time of the run does not reach are NOT_RUN.
func TestRunTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newSmall()
		var batches atomic.Int64 // the clean-up begins while a late handler still runs
		e.before = func(method string) {
			if method != rpc.MethodSyncBatch {
				return
			}
			if batches.Add(1) > trialOfSmall {
				time.Sleep(20 * time.Second) // of the bubble
			}
		}
		r := judged(t, e, healthCheck+writeCheck, conformance.Options{Write: true, Objects: []string{"contact"}, Timeout: 10 * time.Second, Serial: true})
		require.Equal(t, conformance.Pass, resultOf(t, r, "AAA-001").Status)
		got := resultOf(t, r, "WRI-001")
		require.Equal(t, conformance.NotRun, got.Status)
		require.Equal(t, "--timeout", got.Decider)
		require.Empty(t, r.Problems)
		require.Contains(t, strings.Join(r.Notes, "\n"), "the run reached its --timeout of 10s")
		require.Equal(t, conformance.ConformantInPart, r.Verdict)
		require.Zero(t, r.ExitStatus)
		require.Equal(t, 3+trialOfSmall, r.Residue.Unverified, "the clean-up has time of its own, and sends no updates to verify it")
		require.Empty(t, e.keys("contact"))
		time.Sleep(time.Minute) // the late handler ends
	})
}

// TestJournalComesFirst: no batch leaves before its keys are in the journal.
func TestJournalComesFirst(t *testing.T) {
	e := newSmall()
	path := filepath.Join(t.TempDir(), "run.ndjson")
	e.answer = func(method string, _ int, body []byte) string {
		if method != rpc.MethodSyncBatch {
			return ""
		}
		var req struct{ Params rpc.BatchParams }
		require.NoError(t, json.Unmarshal(body, &req))
		read, err := journal.Read(path)
		require.NoError(t, err)
		known := map[string]bool{}
		for _, k := range read.Pending() {
			known[string(k.Identifier)] = true
		}
		for _, r := range req.Params.Records {
			require.True(t, known[string(r["email"])], "%s is not in the journal", r["email"])
		}
		return ""
	}
	opts := writing(e)
	opts.Journal = path
	r := judged(t, e, writeCheck, opts)
	require.Equal(t, conformance.Pass, resultOf(t, r, "WRI-001").Status)
	read, err := journal.Read(path)
	require.NoError(t, err)
	require.Empty(t, read.Pending())
}

// TestJournalThatCannotBeMade is a mistake of the caller.
func TestJournalThatCannotBeMade(t *testing.T) {
	opts := conformance.Options{Write: true, Objects: []string{"contact"}, Journal: filepath.Join(t.TempDir(), "no", "run.ndjson")}
	_, err := Run(context.Background(), Target{Handler: newSmall()}, opts)
	requireUsage(t, err, "create journal")
}
