package destination

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/discover"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/internal/quantity"
)

// Plan makes the planning calls, writes nothing, and reports what Run would do.
func Plan(ctx context.Context, target Target, opts conformance.Options) (*conformance.PlanReport, error) {
	return inSession(target, opts, func(s *session) (*conformance.PlanReport, error) { return s.makePlan(ctx) })
}

func (s *session) makePlan(ctx context.Context) (*conformance.PlanReport, error) {
	checks, err := s.suite().Select(&s.Opts)
	if err != nil {
		return nil, err
	}
	c, err := s.Discover(ctx)
	if err != nil {
		return nil, err
	}
	if p := s.NothingToJudge(ctx, c); p != nil {
		return nil, discover.AsError(p)
	}
	silent, err := s.Silent(ctx)
	if err != nil {
		return nil, err
	}
	if silent != "" {
		return nil, errors.New(silent)
	}
	s.Found(c)
	if err := s.CheckFixtures(); err != nil {
		return nil, err
	}
	missing := s.unlisted()
	if len(missing) > 0 && len(c.Objects) > 0 {
		return nil, s.noObjects(missing)
	}
	p := &conformance.PlanReport{Target: s.Redactor.String(s.Target.URL), Replicas: s.Replicas.Names[1:], Notes: []string{}, Undecidable: []string{}, Keys: []string{}}
	p.Speed = declaredSpeed(c)
	if len(missing) > 0 {
		p.Notes = append(p.Notes, "list_objects names no object that can be read: conform judges the list, and writes nothing")
	}
	s.planObjects(p)
	if what := s.WhatLasts(checks); what != "" {
		p.Notes = append(p.Notes, what+": conform wants a clean-up hook in --hooks FILE, or --allow-leftovers")
	}
	for _, check := range checks {
		s.planCheck(p, check)
	}
	if s.HookTested(checks) {
		p.Records += discover.HookRecords * len(s.Opts.Objects)
		p.Notes = append(p.Notes, fmt.Sprintf("the test of the read-back hook writes up to %s for each object", quantity.Count(discover.HookRecords, "record")))
	}
	if p.Records > s.Opts.MaxRecords {
		p.Notes = append(p.Notes, fmt.Sprintf("up to %s exceed --max-records %d: the checks that come last would be NOT_RUN", quantity.Count(p.Records, "record"), s.Opts.MaxRecords))
	}
	return p, nil
}

func (s *session) planObjects(p *conformance.PlanReport) {
	sc := s.NewScenario(context.Background(), &conformance.Check{ID: "RES-002"}, nil)
	for _, o := range s.Catalog.Objects {
		po := conformance.PlanObject{Name: o.APIName, Operations: o.Operations, Fields: len(o.Fields), Cleanup: "none",
			Chosen: slices.Contains(s.Opts.Objects, o.APIName)}
		switch {
		case o.Accepts("delete"):
			po.Cleanup = "delete batches"
		case s.Opts.Hooks.Cleanup.Set():
			po.Cleanup = "hook"
		}
		if f, err := o.Identifier(); err == nil {
			po.Identifier = f.APIName
			if key, err := sc.Key(o, f); err == nil && po.Chosen {
				p.Keys = append(p.Keys, fmt.Sprintf("%s.%s = %s", o.APIName, f.APIName, key))
			}
		}
		p.Objects = append(p.Objects, po)
	}
}

func (s *session) planCheck(p *conformance.PlanReport, c *conformance.Check) {
	pc := conformance.PlannedCheck{ID: c.ID, Title: c.Title, Level: c.Level, Runs: true}
	if err := s.Permitted(c); err != nil {
		pc.Runs = false
		_, pc.Reason, pc.Decider = engine.Decided(err)
	} else if c.Write {
		pc.Records = c.Records
		if c.EachObject {
			pc.Records *= len(s.Opts.Objects)
		}
		p.Records += pc.Records
	}
	if pc.Runs && c.ReadbackDecides && s.Readback == nil {
		pc.Reason, pc.Decider = "may stay INCONCLUSIVE without a read-back hook", "readback"
	}
	if pc.Reason != "" && c.Level == conformance.Must && c.Gates(s.Opts.Profile) {
		p.Undecidable = append(p.Undecidable, c.ID)
	}
	p.Checks = append(p.Checks, pc)
}
