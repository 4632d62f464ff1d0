// Package destination judges a custom destination: it sends what the service would send (spec 4.2),
// looks at the responses, and reports which rules hold, which are broken and which cannot be
// decided without more evidence. [Run] gives a report, [Test] makes each check a Go subtest,
// [Passive] judges the calls that others make.
//
// It owns the calls, the safety of what it writes, and the evidence; package conformance owns the
// verdict.
package destination

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/discover"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// session is one run, as the engine judges it.
type session struct{ judge.Judge }

// Run judges a destination. A report comes back whenever the endpoint could be looked at, even
// when the run is interrupted; an error is a *UsageError (exit status 2) or a failure of the
// judge itself (exit status 3).
func Run(ctx context.Context, target Target, opts conformance.Options) (*conformance.Report, error) {
	return inSession(target, opts, func(s *session) (*conformance.Report, error) { return s.run(ctx) })
}

// inSession gives what comes of a session that it opens, without secrets.
func inSession[T any](target Target, opts conformance.Options, do func(*session) (*T, error)) (*T, error) {
	s, err := newSession(target, opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out, err := do(s)
	if out != nil {
		s.Redactor.Value(out)
	}
	return out, s.suite().HideError(err)
}

// newSession checks the options and prepares a run; nothing is sent yet.
func newSession(target Target, opts conformance.Options) (s *session, err error) {
	s = &session{}
	if s.Cat, err = conformance.LoadCatalogue(conformance.SuiteDestination); err != nil {
		return nil, err
	}
	if err := s.Begin(target, opts); err != nil {
		return nil, err
	}
	return s, s.BeginWrites()
}

func (s *session) run(ctx context.Context) (*conformance.Report, error) {
	defer s.CloseJournal()
	return s.suite().Run(ctx, s.Opts)
}

// suite is the run as the engine judges it.
func (s *session) suite() *engine.Suite {
	return &engine.Suite{
		Name: conformance.SuiteDestination, Target: s.Redactor.String(s.Target.URL), Catalogue: s.Cat, Steps: judge.Definitions(), Secrets: s.Redactor,
		Symptoms: true, Permitted: s.Permitted, Needs: s.needs, Objects: s.Chosen,
		Stages: engine.Stages{Open: s.open, NewActor: s.newActor, Settled: s.Settled.Settle, CleanUp: s.CleanUp, Overall: s.brokenOverall, Finish: s.conclude},
	}
}

// open looks at endpoint and hooks before anything is judged, and learns which values are taken.
func (s *session) open(ctx context.Context, r *conformance.Report, checks []*conformance.Check) (ready bool, err error) {
	if err := s.OpenJournal(); err != nil {
		return false, err
	}
	defer func() {
		if !ready {
			s.DropJournal()
		}
	}()
	s.noteSettings(r)
	if err := s.beginOverall(checks); err != nil {
		return false, err
	}
	s.Preflight(ctx, r)
	if s.Catalog == nil || len(r.Problems) > 0 {
		return false, nil
	}
	if err := s.checkObjects(ctx); err != nil {
		return false, err
	}
	if !s.Untrusted { // nothing is written over a line that does not verify
		if err := s.CheckLasting(checks); err != nil {
			return false, err
		}
		s.probeHooks(ctx, r, checks)
	}
	if len(r.Problems) > 0 {
		return false, nil
	}
	s.TryValues(ctx, checks)
	s.HookFault = s.TestReadback(ctx, checks)
	s.NoteFolding(r)
	return true, nil
}

func (s *session) conclude(_ context.Context, r *conformance.Report, _ bool) {
	if s.Untrusted && !slices.ContainsFunc(r.Checks, func(c conformance.CheckResult) bool {
		return c.Status == conformance.Fail || c.Status == conformance.Flaky
	}) {
		r.Problems = append(r.Problems, conformance.Problem{Kind: "untrusted", ExitStatus: 3,
			Message: "the certificate of the endpoint does not verify, and the checks that would say why are not selected",
			Fix:     "select TLS-*, or judge with --development on, or give its roots with --tls-roots"})
	}
	r.Residue.Journal = s.Opts.Journal
	s.explainUnwritten(r)
	if s.Uncounted.Load() {
		r.Notes = append(r.Notes, uncountedNote)
	}
	refusedKeys(r)
	unaccepted(r)
	s.sumUp(r)
}

// Steps lists the sentences that a feature file may use, as regular expressions.
func Steps() []string { return (&engine.Suite{Steps: judge.Definitions()}).Sentences() }

// checkObjects refuses unknown --object names; without a sound list the run goes on without writes.
func (s *session) checkObjects(ctx context.Context) error {
	missing := s.unlisted()
	if len(missing) == 0 || s.Untrusted {
		return nil
	}
	for _, id := range []string{"OBJ-001", "OBJ-002", "OBJ-003", "OBJ-004"} {
		c, ok := s.Cat.Check(id)
		if !ok {
			continue
		}
		if res := s.suite().Judge(ctx, c); res.Status != conformance.Pass {
			s.Opts.Write, s.Unwritten = false, &discover.Unwritten{Missing: missing, Check: id}
			return nil
		}
	}
	if !s.Catalog.Listed {
		// The list came later: a first list_objects without an answer shows nothing about objects.
		if err := s.List(ctx, s.Catalog); err != nil || !s.Catalog.Listed {
			s.Opts.Write, s.Unwritten = false, &discover.Unwritten{Missing: missing, Why: "list_objects is not answered every time"}
			return nil
		}
		if missing = s.unlisted(); len(missing) == 0 {
			return nil
		}
	}
	return s.noObjects(missing)
}

// noObjects refuses names that list_objects does not have; in quotes, since they can be empty.
func (s *session) noObjects(missing []string) error {
	quoted := func(names []string) string { return quantity.List(lists.Of(names, strconv.Quote)) }
	return conformance.Usage("%s %s %s not exist; list_objects names %s", quantity.Noun(len(missing), "object"), quoted(missing),
		quantity.Verb(len(missing), "does", "do"), quoted(s.Catalog.Names()))
}

// unlisted are the names of --object that discovery did not find.
func (s *session) unlisted() (missing []string) {
	return lists.Where(s.Opts.Objects, func(name string) bool { return s.Catalog.Object(name) == nil })
}

// explainUnwritten adds to the report why nothing was written, and for which failed check.
func (s *session) explainUnwritten(r *conformance.Report) {
	u := s.Unwritten
	if u == nil {
		return
	}
	r.Settings.Write = false
	why := u.Why
	var by []string
	if u.Check != "" {
		by, why = s.behind(r, u.Check), u.Check+" does not hold"
	}
	for i := range r.Checks {
		if c := &r.Checks[i]; len(by) > 0 && c.Status == conformance.NotRun && c.Reason == u.Reason() && len(c.BlockedBy) == 0 {
			c.Reason, c.BlockedBy = "blocked by "+strings.Join(by, ", "), by
		}
	}
	if len(by) > 0 && !slices.Contains(by, u.Check) {
		r.Notes = append(r.Notes, fmt.Sprintf("list_objects could not be read (%s): the run goes on without writes", quantity.List(by)))
		return
	}
	r.Notes = append(r.Notes, fmt.Sprintf("object %s is not listed, and %s: the run goes on without writes", quantity.List(u.Missing), why))
}

// behind are the failed checks that a check follows from: itself, those that it is blocked by, or
// those that broke every reply which it looked for; nil where the report has none.
func (s *session) behind(r *conformance.Report, id string) (by []string) {
	i := slices.IndexFunc(r.Checks, func(c conformance.CheckResult) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	switch c := r.Checks[i]; {
	case len(c.BlockedBy) > 0:
		return c.BlockedBy
	case c.Status == conformance.Inconclusive || c.Status == conformance.NotRun:
		listed := func(x conformance.Exchange) bool { return x.RPC == rpc.MethodListObjects }
		for _, c := range r.Checks {
			if c.Status == conformance.Fail && strings.HasPrefix(c.ID, "RPC-") &&
				slices.ContainsFunc(c.Findings, func(f conformance.Finding) bool { return slices.ContainsFunc(f.Exchanges, listed) }) {
				by = append(by, c.ID)
			}
		}
		return by
	}
	return []string{id}
}

// Target is the endpoint under judgement.
type Target = conformance.Target

// needs are the checks that c builds on; over a line that does not verify only TLS checks run.
func (s *session) needs(c *conformance.Check) []string {
	if s.Untrusted && !strings.HasPrefix(c.ID, "TLS-") {
		return append(slices.Clone(c.Needs), "TLS-002", "TLS-003", "TLS-004", "TLS-005")
	}
	return c.Needs
}

// newActor is the scenario of a check as the engine runs it.
func (s *session) newActor(ctx context.Context, found *engine.Findings) (actor any, end func() error) {
	s.JudgesAlone.Store(found.Confirming())
	sc := s.ScenarioOf(ctx, found)
	return sc, sc.End
}

// Clean resumes the clean-up of an earlier run: it deletes only journalled keys that carry the run
// of the journal, and reports every leftover.
func Clean(ctx context.Context, target Target, opts conformance.Options) (*conformance.Residue, error) {
	path := opts.Journal
	if path == "" {
		return nil, conformance.Usage("the journal is missing: destkit clean --journal FILE URL")
	}
	opts.Journal = ""
	return inSession(target, opts, func(s *session) (*conformance.Residue, error) { return s.CleanJournal(ctx, path) })
}
