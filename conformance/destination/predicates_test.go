package destination

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// exchange is hand-written evidence for one check, of what no violation of the
// simulator and no refusing endpoint shows: conversations that must pass although they
// are odd, that decide nothing, or that must fail. The requests are those of the judge;
// every reply is written here, and no server and no network is there.
type exchange struct {
	object  string         // the object that is judged, "contact" when empty
	prepare func(*session) // what the run is configured with, beside the usual
	good    []talk         // nil: the common replies
	bad     []talk
}

// talk is one conversation.
type talk struct {
	says      says              // replies beside the common ones
	holds     []stored          // what the read-back shows, by record; the last stands for the rest, nil is asSent
	elsewhere stored            // what it shows of the same keys in other objects
	blind     bool              // there is no read-back hook
	hook      map[string]string // answers of the author's hooks beside {"ok":true}
	prepare   func(*session)    // what came before it in the run

	status conformance.Status // another one than PASS or FAIL
	finds  string             // part of the finding that a bad talk must lead to
	notes  string             // part of the note that a good talk must leave
}

// predicates are all exchanges, by check.
func predicates(t *testing.T) map[string]exchange {
	t.Helper()
	all := map[string]exchange{}
	for _, part := range []map[string]exchange{
		envelopeExchanges, formExchanges, httpExchanges, authExchanges, planningExchanges, fieldExchanges, speedExchanges,
		operationExchanges, resultExchanges, badRecordExchanges, semanticExchanges, deleteExchanges, durabilityExchanges,
		repeatExchanges, parallelExchanges, errorExchanges, dataExchanges, acceptanceExchanges,
	} {
		for id := range part {
			require.NotContains(t, all, id, "%s has two entries", id)
		}
		maps.Copy(all, part)
	}
	return all
}

// TestPredicates puts every exchange to the scenario of its check.
func TestPredicates(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	all := predicates(t)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		c, ok := cat.Check(id)
		require.True(t, ok, id)
		e := all[id]
		if len(e.good) == 0 {
			e.good = []talk{{}}
		}
		for _, k := range e.good {
			t.Run(id+"/good", func(t *testing.T) { e.passes(t, c, k) })
		}
		for _, k := range e.bad {
			t.Run(id+"/bad", func(t *testing.T) { e.fails(t, c, k) })
		}
	}
}

func (e exchange) passes(t *testing.T, c *conformance.Check, k talk) {
	t.Parallel()
	r := e.judge(t, c, k)
	require.Equal(t, statusOr(k.status, conformance.Pass), r.Status, "%s%s", r.Reason, findings(r))
	require.Empty(t, r.Findings)
	require.Contains(t, strings.Join(r.Notes, "\n"), k.notes)
}

func (e exchange) fails(t *testing.T, c *conformance.Check, k talk) {
	t.Parallel()
	r := e.judge(t, c, k)
	require.Equal(t, statusOr(k.status, conformance.Fail), r.Status, "%s%s", r.Reason, findings(r))
	require.Contains(t, r.Reason+findings(r), k.finds)
}

func statusOr(s, d conformance.Status) conformance.Status {
	if s != "" {
		return s
	}
	return d
}

func findings(r *conformance.CheckResult) string {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString("\n   expected " + f.Expected + "\n   actual " + f.Actual)
	}
	return b.String()
}

// The settings of every judgement; token, secret and run stand in replies.
const (
	scriptToken  = "the-token-A1"
	freshToken   = "the-token-B2"
	scriptSecret = "url-secret-1"
	scriptURL    = "http://destination.example/rpc?key=" + scriptSecret
	scriptRun    = "00ab12"
)

// judge runs the scenario of a check over one talk. Time is that of a synctest
// bubble: it passes only where the judge waits, so that rates are exact.
func (e exchange) judge(t *testing.T, c *conformance.Check, k talk) (r *conformance.CheckResult) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, script := e.session(t, k)
		common := newScript(t, talk{})
		s.line = common
		catalog, err := s.discover(t.Context())
		require.NoError(t, err)
		s.catalog = catalog
		s.line, s.hooks = script, &http.Client{Transport: script}
		if e.prepare != nil {
			e.prepare(s)
		}
		if k.prepare != nil {
			k.prepare(s)
		}
		r = s.suite().Judge(t.Context(), c)
	})
	return r
}

// session is a run with every permission and every hook.
func (e exchange) session(t *testing.T, k talk) (*session, *script) {
	t.Helper()
	script := newScript(t, k)
	hooked := conformance.HookSpec{URL: "http://hooks.example/"}
	opts := conformance.Options{
		Write: true, Objects: []string{cmp.Or(e.object, "contact")}, Load: true, ProbePlainHTTP: 8080, Development: conformance.DevelopmentOff,
		Seed: 7, RunID: scriptRun, URLSecret: "query:key", LoadDuration: 40 * time.Millisecond,
		Hooks: conformance.Hooks{Restart: hooked, AlterSchema: hooked, BreakDownstream: hooked, RotateToken: hooked},
	}
	if !k.blind {
		opts.ReadbackFunc = script.readback
	}
	target := Target{URL: scriptURL, Token: scriptToken}
	s, err := newSession(target, opts)
	require.NoError(t, err)
	require.NoError(t, s.openJournal())
	return s, script
}
