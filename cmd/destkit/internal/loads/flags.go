package loads

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/loadgen"
)

// resolve turns the flags that are words into options.
func (l *loading) resolve(cmd *cobra.Command, url string) error {
	target, err := l.Resolve(url, &l.dials)
	if err != nil {
		return err
	}
	o := &l.options
	if o.AskSpeed <= 0 {
		return exit.Usagef("--ask-speed must be longer than nothing, not %s", o.AskSpeed)
	}
	o.Target = loadgen.Target{
		URL: target.URL, Token: target.Token, Headers: target.Headers, Roots: l.dials.Roots, Development: string(l.dials.Development),
		Replicas: command.Replicas(cmd, l.replicas),
	}
	for _, replica := range o.Target.Replicas {
		if err := command.CheckScheme("replica", replica); err != nil {
			return err
		}
	}
	o.Transport.Timeout, o.Transport.PlanningTimeout, o.Version = l.dials.BatchTimeout, l.dials.PlanningTimeout, command.ReadBuild().Version
	o.Work.Fields = l.fields
	for _, step := range []func() error{l.resolveMix, l.resolveRates, l.resolveSearch, l.resolveShares, l.resolveClient, l.resolveWork, l.resolveVerify} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// resolveMix reads objects and operations with their weights.
func (l *loading) resolveMix() error {
	for _, part := range []struct {
		flag   string
		values []string
		into   *[]loadgen.Share
	}{{"object", l.objects, &l.options.Work.Objects}, {"operation", l.operations, &l.options.Work.Operations}} {
		*part.into = nil
		for _, text := range part.values {
			name, weight, given := strings.Cut(text, "=")
			share := loadgen.Share{Name: strings.TrimSpace(name), Weight: 1}
			if given {
				w, err := strconv.ParseFloat(weight, 64)
				if err != nil || !(w > 0) || math.IsInf(w, 0) {
					return exit.Usagef("--%s %s: the weight %q is no number above 0", part.flag, text, weight)
				}
				share.Weight = w
			}
			*part.into = append(*part.into, share)
		}
	}
	return nil
}

// resolveRates reads the ways of an open loop, of which there may be one.
func (l *loading) resolveRates() error {
	o := &l.options
	given := 0
	for _, text := range []string{l.rate, l.recordsRate, l.stages, l.steps} {
		if text != "" {
			given++
		}
	}
	if given > 1 {
		return exit.Usagef("--rate, --records-rate, --stages and --steps exclude each other")
	}
	duration := o.Duration
	if duration <= 0 {
		duration = 10 * time.Second
	}
	var err error
	switch {
	case l.rate != "":
		o.Stages, err = parseRate("--rate", l.rate, duration)
	case l.recordsRate != "":
		o.InRecords = true
		o.Stages, err = parseRate("--records-rate", l.recordsRate, duration)
	case l.stages != "":
		o.Stages, err = parseStages(l.stages)
	case l.steps != "":
		o.Stages, err = parseSteps(l.steps, duration)
		if o.Duration == 0 && o.Count == 0 {
			o.Duration = duration
		}
	}
	if err != nil || l.burst == "" {
		return err
	}
	size, every, _ := strings.Cut(l.burst, "/")
	o.Burst.Size, err = strconv.Atoi(size)
	d, errTime := time.ParseDuration(every)
	if err != nil || errTime != nil || o.Burst.Size < 1 || d <= 0 {
		return exit.Usagef("--burst %q is not SIZE/TIME, such as 500/10s", l.burst)
	}
	o.Burst.Every = d
	return nil
}

// parseRate reads N[/s|/m|/h] or FROM-TO.
func parseRate(flag, text string, duration time.Duration) ([]loadgen.Stage, error) {
	from, to, err := rateRange(text)
	if err != nil {
		return nil, exit.Usagef("%s %q: %w", flag, text, err)
	}
	return []loadgen.Stage{{Duration: duration, From: from, To: to}}, nil
}

func rateRange(text string) (from, to float64, err error) {
	unit := 1.0
	for suffix, seconds := range map[string]float64{"/s": 1, "/1s": 1, "/m": 60, "/1m": 60, "/h": 3600, "/1h": 3600} {
		if plain, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = plain, seconds
			break
		}
	}
	first, second, ramp := strings.Cut(text, "-")
	if from, err = rateNumber(first); err != nil {
		return 0, 0, err
	}
	if to = from; ramp {
		if to, err = rateNumber(second); err != nil {
			return 0, 0, err
		}
	}
	if from == 0 && to == 0 {
		return 0, 0, exit.Usagef("a rate of 0 sends nothing")
	}
	return from / unit, to / unit, nil
}

func rateNumber(text string) (float64, error) {
	n, err := strconv.ParseFloat(strings.NewReplacer("_", "", ",", "").Replace(strings.TrimSpace(text)), 64)
	if err != nil || !(n >= 0) || n > 1e9 {
		return 0, exit.Usagef("it is not a number per second, such as 500, 500/s or 100-1000")
	}
	return n, nil
}

// parseStages reads TIME@RATE,TIME@FROM-TO.
func parseStages(text string) ([]loadgen.Stage, error) {
	var stages []loadgen.Stage
	for part := range strings.SplitSeq(text, ",") {
		length, rate, ok := strings.Cut(strings.TrimSpace(part), "@")
		d, err := time.ParseDuration(length)
		if length, rate, ok := strings.Cut(part, ":"); ok {
			return nil, exit.Usagef("--stages %q: write %s@%s for %q", text, strings.TrimSpace(length), rate, part)
		}
		if !ok || err != nil || d <= 0 {
			return nil, exit.Usagef("--stages %q: %q is not TIME@RATE, such as 30s@100 or 1m@100-1000", text, part)
		}
		stage, err := parseRate("--stages", rate, d)
		if err != nil {
			return nil, err
		}
		stages = append(stages, stage...)
	}
	return stages, nil
}

// parseSteps reads rates that share the duration.
func parseSteps(text string, duration time.Duration) ([]loadgen.Stage, error) {
	parts := strings.Split(text, ",")
	var stages []loadgen.Stage
	for _, part := range parts {
		stage, err := parseRate("--steps", strings.TrimSpace(part), duration/time.Duration(len(parts)))
		if err != nil {
			return nil, err
		}
		stages = append(stages, stage...)
	}
	return stages, nil
}

func (l *loading) resolveSearch() error {
	if !l.search {
		if l.slo != "" {
			return exit.Usagef("--slo is the goal of a search: add --search, or use --fail-if")
		}
		return nil
	}
	o := &l.options
	if o.Duration > 0 || o.Count > 0 {
		return exit.Usagef("--search ends by itself: leave --duration and --count out")
	}
	o.Search = &loadgen.Search{Confirm: l.confirm, FixedBatch: o.Work.BatchSize > 0, FixedConnections: o.Connections > 0}
	if l.slo == "" {
		// Without a time every rate below saturation holds, and that one is never found
		// twice: a minute of load would end with nothing confirmed.
		return exit.Usagef("--search looks for the highest rate that holds a goal: add --slo, such as --slo p99=200ms,errors=0.1%%")
	}
	goals, err := loadgen.ParseGoals(l.slo)
	if err != nil {
		return exit.Usagef("--slo %w", err)
	}
	o.Search.Goals = goals
	return nil
}

// resolveShares reads the flags that are shares, and how to catch up.
func (l *loading) resolveShares() error {
	o := &l.options
	for _, s := range []struct {
		flag, text string
		into       *float64
	}{{"repeat-keys", l.repeats, &o.Work.Repeats}, {"abort-errors", l.abort, &o.AbortShare}} {
		if s.text == "" {
			continue
		}
		v, err := parseShare(s.flag, s.text)
		if err != nil {
			return err
		}
		*s.into = v
	}
	if l.catchUp == "burst" {
		o.CatchUp = math.Inf(1)
	} else if v, err := strconv.ParseFloat(l.catchUp, 64); err != nil || !(v > 1) {
		return exit.Usagef("--catch-up %q is neither a number above 1 nor burst", l.catchUp)
	} else {
		o.CatchUp = v
	}
	if l.startAt == "" {
		return nil
	}
	var err error
	if o.StartAt, err = time.Parse(time.RFC3339, l.startAt); err != nil {
		return exit.Usagef("--start-at %q is no time such as 2027-01-31T10:15:00Z", l.startAt)
	}
	return nil
}

// resolveVerify reads the options of the read-back.
func (l *loading) resolveVerify() error {
	if err := l.reading.Resolve(&l.dials); err != nil {
		return err
	}
	if !l.dials.Readback.Set() {
		if l.verify != "" || l.dials.ReadbackWindow != 0 {
			return exit.Usagef("--verify and --readback-window need a read-back hook: add --readback-url URL or --readback-command COMMAND")
		}
		return nil
	}
	v := &loadgen.Verify{Hook: l.dials.Readback, Window: l.dials.ReadbackWindow}
	switch l.verify {
	case "":
	case "all":
		v.Share = 1
	default:
		share, err := parseShare("verify", l.verify)
		if err != nil {
			return err
		}
		v.Share = share
	}
	l.options.Verify = v
	return nil
}

// measurable refuses limits of unmeasured values: of those that need a verification
// where there is none, and of runs where none are started.
func (l *loading) measurable(thresholds []loadgen.Threshold) error {
	service := l.options.Service
	for _, t := range thresholds {
		switch {
		case t.NeedsRuns() && (service == nil || service.Scenario != loadgen.ScenarioTrigger):
			return exit.Usagef("--fail-if '%s' is about runs that a load starts: a load on a service with --scenario trigger", t.Text)
		case t.NeedsVerification() && service != nil:
			return exit.Usagef("--fail-if '%s' is about records that are read back: a load on a service writes none", t.Text)
		}
		if t.NeedsVerification() && l.options.Verify == nil {
			return exit.Usagef("--fail-if '%s' needs a read-back hook: add --readback-url URL or --readback-command COMMAND", t.Text)
		}
	}
	return nil
}

// parseShare reads a share such as 20% or 0.2.
func parseShare(flag, text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0) || v > 1 {
		return 0, exit.Usagef("--%s %q is no share, such as 20%% or 0.2", flag, text)
	}
	return v, nil
}

// resolveClient reads which client sends.
func (l *loading) resolveClient() error {
	switch l.client {
	case "own":
	case "standard":
		l.options.Transport.Standard = true
	default:
		return exit.Usagef("--http-client %q is neither own nor standard", l.client)
	}
	return nil
}

// resolveWork reads where the records come from and their keys.
func (l *loading) resolveWork() error {
	o := &l.options
	var err error
	if o.Work.Template, err = readTemplate(l.template); err != nil {
		return err
	}
	switch l.dataKeys {
	case "run":
	case "file":
		l.data.OwnKeys = true
	default:
		return exit.Usagef("--data-keys %q is neither run nor file", l.dataKeys)
	}
	if l.data.Path != "" {
		if _, err := os.Stat(l.data.Path); errors.Is(err, fs.ErrNotExist) {
			return exit.Usagef("--data %s: there is no such file", l.data.Path)
		}
		o.Work.Data = &l.data
	} else if l.data.OwnKeys {
		return exit.Usagef("--data-keys goes with --data FILE")
	}
	if err := command.ResolveKeyRange(l.keyRange, &l.dials); err != nil {
		return err
	}
	o.KeyFrom, o.KeyTo = l.dials.KeyFrom, l.dials.KeyTo
	return nil
}
