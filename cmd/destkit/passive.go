package main

import (
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/proxy"
)

// The sides that a passive judgement can look at.
const (
	judgeBoth     = "both"
	judgeEndpoint = "endpoint"
	judgeCaller   = "caller"
)

// passiveJudging holds the flags of a judgement by the calls of others.
type passiveJudging struct {
	options conformance.Options

	roots, development, profile, waivers string
	side                                 string
	callerReports                        []string
	verbose                              bool
}

func (j *passiveJudging) register(cmd *cobra.Command, url string) {
	o, f := &j.options, cmd.Flags()
	f.StringVar(&j.side, "judge", judgeBoth, "`both|endpoint|caller`: side that decides the status")
	f.StringVar(&o.URLSecret, "url-secret", "", "`query:NAME|path:INDEX`: secret part of the "+url+" (path: from 0)")
	f.StringVar(&j.roots, "tls-roots", "", "PEM `FILE` of roots that replace the public ones")
	f.StringVar(&j.development, "development", string(conformance.DevelopmentAuto), "`auto|on|off`: allow http, any TLS (default auto: if private)")
	f.DurationVar(&o.PlanningTimeout, "planning-timeout", 10*time.Second, "deadline of a planning call")
	f.DurationVar(&o.BatchTimeout, "batch-timeout", 30*time.Second, "deadline of a batch")
	f.StringVar(&j.profile, "profile", string(conformance.ProfileV1), "`spec|v1|strict`: rules that decide the verdict")
	f.StringSliceVarP(&o.Select, "select", "s", nil, "judge only the checks that match `GLOB` (repeatable)")
	f.StringSliceVar(&o.Skip, "skip", nil, "leave out the checks that match `GLOB` (repeatable)")
	f.StringVar(&j.waivers, "waivers", "", "YAML `FILE` of accepted failures")
	f.StringArrayVar(&j.callerReports, "caller-report", nil, "`[FORMAT=]FILE`: a report on the caller (repeatable)")
	f.BoolVarP(&j.verbose, "verbose", "v", false, "list what would else be summed up, with its evidence")
}

// bothSides are the judges of the two sides.
type bothSides struct {
	side          string
	passive       *destination.Passive
	caller        *service.Caller
	callerOutputs outputs.List
}

// prepare makes the judges. Every error of it is exit 2.
func (j *passiveJudging) prepare(url string) (*bothSides, error) {
	b := &bothSides{side: j.side}
	if !slices.Contains([]string{judgeBoth, judgeEndpoint, judgeCaller}, j.side) {
		return nil, exit.Usagef("--judge %q: use both, endpoint or caller", j.side)
	}
	o := j.options
	for flag, value := range map[string]time.Duration{"planning-timeout": o.PlanningTimeout, "batch-timeout": o.BatchTimeout} {
		if value <= 0 {
			return nil, exit.Usagef("--%s must be longer than nothing, not %s", flag, value)
		}
	}
	o.Profile, o.Development, o.Version = conformance.Profile(j.profile), conformance.Development(j.development), command.ReadBuild().Version
	var err error
	if o.Roots, err = command.Roots(j.roots); err != nil {
		return nil, err
	}
	if j.waivers != "" {
		if o.Waivers, err = configfile.ReadWaivers(j.waivers); err != nil {
			return nil, err
		}
	}
	if b.callerOutputs, err = outputs.Parse(j.callerReports); err != nil {
		return nil, err
	}
	if b.passive, err = destination.NewPassive(destination.Target{URL: url}, o); err != nil {
		return nil, command.Failure(err)
	}
	if j.side != judgeEndpoint {
		if b.caller, err = service.NewCaller(url, b.passive.Secrets(), conformance.Options{Profile: o.Profile, Version: o.Version}); err != nil {
			return nil, command.Failure(err)
		}
	} else if len(j.callerReports) > 0 {
		return nil, exit.Usagef("--caller-report needs --judge both or caller")
	}
	return b, nil
}

// callerJudge is the judge of the caller, nil without one.
func (b *bothSides) callerJudge() proxy.CallerJudge {
	if b.caller == nil {
		return nil
	}
	return b.caller
}

// deliver writes and shows both reports and gives the exit status.
func (b *bothSides) deliver(cmd *cobra.Command, v *verdicts, endpoint *conformance.Report, out outputs.List, verbose bool) int {
	status := exit.OK
	v.shown.private = true // the calls of others, with their records
	if b.caller != nil {
		caller := b.caller.Report()
		s := shownStatus(v.deliver(cmd, caller, b.callerOutputs, verbose))
		// A caller of which too little was seen keeps no author of an endpoint away.
		if s != exit.NotTested || b.side == judgeCaller {
			status = exit.Worst(status, s)
		}
		foreign.Println(screenOf(cmd, b.callerOutputs), "")
	}
	s := shownStatus(v.deliver(cmd, endpoint, out, verbose))
	if b.side != judgeCaller {
		status = exit.Worst(status, s)
	}
	return status
}

func sortedNames(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
