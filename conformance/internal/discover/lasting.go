package discover

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/internal/quantity"
)

// lasting are the named objects from which the run could not remove what it
// writes: they accept no deletes, and no clean-up hook is given.
func (s *Discovery) lasting() []string {
	if !s.Opts.Write || s.Opts.Hooks.Cleanup.Set() {
		return nil
	}
	var out []string
	for _, name := range s.Opts.Objects {
		if o := s.Catalog.Object(name); o != nil && !o.Accepts("delete") {
			out = append(out, name)
		}
	}
	return out
}

// mostRecords is the most that the checks write into one object. A check that
// takes one object of several may take this one.
func (s *Discovery) mostRecords(checks []*conformance.Check) int {
	records, writes := 0, false
	for _, c := range checks {
		if c.Write && s.Permitted(c) == nil {
			records, writes = records+c.Records, true
		}
	}
	if !writes {
		return 0
	}
	records += TrialRecords
	if s.HookTested(checks) {
		records += HookRecords
	}
	return min(records, s.Opts.MaxRecords)
}

// WhatLasts says what the run would leave behind, "" when it can remove all.
func (s *Discovery) WhatLasts(checks []*conformance.Check) string {
	names, records := s.lasting(), s.mostRecords(checks)
	switch {
	case len(names) == 0 || records == 0:
		return ""
	case len(names) == 1:
		return fmt.Sprintf("up to %s will stay in %s, which accepts no deletes (mirror)", quantity.Count(records, "record"), names[0])
	}
	return fmt.Sprintf("up to %s will stay in each of %s, which accept no deletes (mirror)", quantity.Count(records, "record"), strings.Join(names, ", "))
}

// CheckLasting refuses fixtures that no record would have, and to write what cannot be
// removed, where that was asked for.
func (s *Discovery) CheckLasting(checks []*conformance.Check) error {
	if err := s.CheckFixtures(); err != nil {
		return err
	}
	if !s.Opts.RefuseLeftovers {
		return nil
	}
	if what := s.WhatLasts(checks); what != "" {
		return line.Usage("nothing was written: %s: give a clean-up hook with --hooks FILE, name another --object, or accept it with --allow-leftovers", what)
	}
	return nil
}

// HookRecords is the most that the test of the hook writes into an object: one
// record for each of two operations, and three updates as witnesses.
const HookRecords = 5

// HookTested reports whether some check asks the hook, so that it is tested first.
func (s *Discovery) HookTested(checks []*conformance.Check) bool {
	asks := func(c *conformance.Check) bool { return c.Write && (c.ReadbackRequired || c.ReadbackDecides) }
	return s.Readback != nil && s.Opts.Write && slices.ContainsFunc(checks, asks)
}
