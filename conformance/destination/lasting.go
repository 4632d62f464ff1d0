package destination

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/quantity"
)

// lasting are the named objects from which the run could not remove what it
// writes: they accept no deletes, and no clean-up hook is given.
func (s *session) lasting() []string {
	if !s.opts.Write || s.opts.Hooks.Cleanup.Set() {
		return nil
	}
	var out []string
	for _, name := range s.opts.Objects {
		if o := s.catalog.object(name); o != nil && !o.accepts("delete") {
			out = append(out, name)
		}
	}
	return out
}

// mostRecords is the most that the checks write into one object. A check that
// takes one object of several may take this one.
func (s *session) mostRecords(checks []*conformance.Check) int {
	records, writes := 0, false
	for _, c := range checks {
		if c.Write && s.permitted(c) == nil {
			records, writes = records+c.Records, true
		}
	}
	if !writes {
		return 0
	}
	records += trialRecords
	if s.hookTested(checks) {
		records += hookRecords
	}
	return min(records, s.opts.MaxRecords)
}

// whatLasts says what the run would leave behind, "" when it can remove all.
func (s *session) whatLasts(checks []*conformance.Check) string {
	names, records := s.lasting(), s.mostRecords(checks)
	switch {
	case len(names) == 0 || records == 0:
		return ""
	case len(names) == 1:
		return fmt.Sprintf("up to %s will stay in %s, which accepts no deletes (mirror)", quantity.Count(records, "record"), names[0])
	}
	return fmt.Sprintf("up to %s will stay in each of %s, which accept no deletes (mirror)", quantity.Count(records, "record"), strings.Join(names, ", "))
}

// checkLasting refuses fixtures that no record would have, and to write what cannot be
// removed, where that was asked for.
func (s *session) checkLasting(checks []*conformance.Check) error {
	if err := s.checkFixtures(); err != nil {
		return err
	}
	if !s.opts.RefuseLeftovers {
		return nil
	}
	if what := s.whatLasts(checks); what != "" {
		return usage("nothing was written: %s: give a clean-up hook with --hooks FILE, name another --object, or accept it with --allow-leftovers", what)
	}
	return nil
}
