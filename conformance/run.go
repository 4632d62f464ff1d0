package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// errRunTimeout is the cause of a context whose run has used up Options.Timeout.
var errRunTimeout = errors.New("run timeout")

// Run judges a destination. A report comes back whenever the endpoint could be
// looked at, even when it is interrupted half-way; an error means that the judge
// could not judge: *UsageError for mistakes of the caller (exit status 2), any
// other error for a failure of the judge itself (exit status 3).
func Run(ctx context.Context, target Target, opts Options) (*Report, error) {
	s, err := newSession(target, opts)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r, err := s.run(ctx)
	if r != nil {
		hide(s.redactor, r)
	}
	return r, hideError(s.redactor, err)
}

func (s *session) run(ctx context.Context) (*Report, error) {
	sched, err := s.prepare()
	if err != nil {
		return nil, err
	}
	return s.runChecks(ctx, sched)
}

// runChecks judges the selected checks.
func (s *session) runChecks(ctx context.Context, sched *scheduler) (*Report, error) {
	started := time.Now()
	if err := s.openJournal(); err != nil {
		return nil, err
	}
	defer s.journal.Close()
	limited, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, errRunTimeout)
	defer cancel()
	r := s.newReport(started)
	s.preflight(limited, r, sched)
	if s.catalog != nil && len(r.Problems) == 0 {
		err := s.checkObjects(limited, r, sched)
		if err == nil && !sched.untrusted {
			err = s.checkLasting(sched.checks)
		}
		if err != nil {
			s.dropJournal()
			return nil, err
		}
		if !sched.untrusted { // nothing is written over a line that does not verify
			s.probeHooks(limited, r, sched)
		}
	}
	if s.catalog != nil && len(r.Problems) == 0 {
		s.tryValues(limited, sched.checks)
		if err := s.testReadback(limited, sched.checks); err != nil {
			sched.hookFault = asOutcome(err)
		}
		sched.run(limited)
		s.judgeAll(limited, sched)
		sched.foldLate()
	} else {
		s.dropJournal()
	}
	sched.collect(r)
	if sched.untrusted && !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Status == Fail || c.Status == Flaky }) {
		r.Problems = append(r.Problems, Problem{Kind: "untrusted", ExitStatus: 3,
			Message: "the certificate of the endpoint does not verify, and the checks that would say why are not selected",
			Fix:     "select TLS-*, or judge with --development on, or give its roots with --tls-roots"})
	}
	s.unsound = sched.hookFault != nil
	s.cleanUp(ctx, limited, r)
	if s.uncounted.Load() {
		r.Notes = append(r.Notes, uncountedNote)
	}
	s.opts.interrupted(ctx, limited, r)
	s.decide(r)
	r.DurationMS = float64(time.Since(started).Microseconds()) / 1000
	r.Summary = summary(r)
	return r, nil
}

// prepare loads and selects the checks.
func (s *session) prepare() (*scheduler, error) {
	cat, err := LoadCatalogue(SuiteDestination)
	if err != nil {
		return nil, err
	}
	s.cat = cat
	if err := s.opts.checkWaivers(); err != nil {
		return nil, err
	}
	selected, err := s.opts.selectChecks(cat)
	if err != nil {
		return nil, err
	}
	own, err := s.opts.ownChecks(definitions())
	if err != nil {
		return nil, err
	}
	return newScheduler(s, &s.opts, append(selected, own...)), nil
}

// ownChecks are those of the author's own feature files.
func (o *Options) ownChecks(known []Step) ([]*Check, error) {
	if o.Features == nil {
		return nil, nil
	}
	own, err := readCatalogue(o.Features, ".", true)
	if err != nil {
		return nil, usage("%v", err)
	}
	for _, c := range own.Checks {
		if odd := undefinedSteps(c, known); len(odd) > 0 {
			return nil, usage("%s:%d: scenario %q has a step that is not known (or matches twice): %s; 'destkit checks --steps' lists the steps",
				c.File, c.Line, c.Title, odd[0])
		}
	}
	if len(own.Checks) == 0 {
		return nil, usage("the features directory holds no scenario: it needs *.feature files")
	}
	return own.Checks, nil
}

// Steps lists the sentences that a feature file may use, as regular expressions.
func Steps() []string { return sentences(definitions()) }

func sentences(known []Step) []string {
	var out []string
	for _, d := range known {
		out = append(out, d.pattern.String())
	}
	return out
}

// checkObjects refuses unknown --object names, once the list of objects is known
// to be sound; otherwise the run goes on without writes.
func (s *session) checkObjects(ctx context.Context, r *Report, sched *scheduler) error {
	missing := s.unlisted()
	if len(missing) == 0 || sched.untrusted {
		return nil
	}
	for _, id := range []string{"OBJ-001", "OBJ-002", "OBJ-003", "OBJ-004"} {
		c, ok := s.cat.Check(id)
		if !ok {
			continue
		}
		if o := s.judgeOnce(ctx, c, nil); o.Status != Pass {
			s.withoutWrites(r, missing, id+" does not hold")
			return nil
		}
	}
	if !s.catalog.listed {
		// The list that those checks have seen came later: the first time
		// list_objects had no answer, which says nothing about its objects.
		if err := s.list(ctx, s.catalog); err != nil || !s.catalog.listed {
			s.withoutWrites(r, missing, "list_objects is not answered every time")
			return nil
		}
		if missing = s.unlisted(); len(missing) == 0 {
			return nil
		}
	}
	return usage("object %s does not exist; list_objects names %s", list(missing), list(s.catalog.names()))
}

// unlisted are the names of --object that discovery did not find.
func (s *session) unlisted() (missing []string) {
	for _, name := range s.opts.Objects {
		if s.catalog.object(name) == nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// withoutWrites takes the permission to write back, because of objects that are
// not listed.
func (s *session) withoutWrites(r *Report, missing []string, why string) {
	s.opts.Write, r.Settings.Write = false, false
	r.Notes = append(r.Notes, fmt.Sprintf("object %s is not listed, and %s: the run goes on without writes", list(missing), why))
}

// interrupted reports a run that did not reach its end.
func (o *Options) interrupted(ctx, limited context.Context, r *Report) {
	switch {
	case ctx.Err() != nil:
		r.Problems = append(r.Problems, Problem{Kind: "interrupted", ExitStatus: 3, Message: "the run was interrupted before its end"})
	case limited.Err() != nil:
		r.Notes = append(r.Notes, fmt.Sprintf("the run reached its --timeout of %s: what was not reached is NOT_RUN", o.Timeout))
	}
}
