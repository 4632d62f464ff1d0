package service

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// patientAtMost bounds one wait for real: a check that asks for more is not run, and what has not come stays undecided.
const patientAtMost = 15 * time.Minute

// timepiece is the time by which checks wait where nothing moves a clock: of the machine, or of a test.
type timepiece struct {
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
}

// patient reports whether time passes by itself: there is no clock to move, and the user waits.
func (r *run) patient() bool { return r.target.ControlURL == "" && r.opts.Patient }

// sleep waits in real time, or ends with the run.
func (sc *scenario) sleep(d time.Duration) {
	if sc.opts.time.sleep(sc.ctx, d) != nil {
		stop(engine.NotRun("--timeout", "the run ended while the check waited"))
	}
}

// advance lets time pass, such as "24h". A clock that is moved returns when everything that fell due has run.
func (sc *scenario) advance(by string) {
	d, err := time.ParseDuration(by)
	switch {
	case err != nil:
		stop(fmt.Errorf("read duration: %w", err))
	case !sc.patient():
		sc.control("POST", "/clock", map[string]any{"advance": by})
	case d > patientAtMost:
		stop(tooLong(d))
	default:
		sc.sleep(d)
	}
}

// clockOf is the time of the service, or that of this machine where it cannot be read.
func (sc *scenario) clockOf() time.Time {
	if sc.target.ControlURL == "" {
		return sc.opts.time.now().UTC()
	}
	now, err := time.Parse(time.RFC3339, sc.control("GET", "/clock", nil).text("now"))
	if err != nil {
		stop(fmt.Errorf("read clock of the service: %w", err))
	}
	return now.UTC()
}

// anotherRun waits for a run that nothing requested, for no specified time: for real it waits less, and decides less.
func (sc *scenario) anotherRun() error {
	const most, by = 12, "10m"
	s := sc.latest()
	last := sc.newest(s)
	until := sc.opts.time.now().Add(patientAtMost)
	for n := 0; ; n++ {
		now := sc.newest(s)
		switch {
		case now != last:
			sc.ends(s, now)
			return nil
		case sc.patient() && sc.opts.time.now().After(until):
			return engine.Inconclusive("--control-url", "the sync has not run again within %s", inWords(patientAtMost))
		case sc.patient():
			sc.sleep(pollPatiently)
		case n == most:
			sc.broken("the sync runs again by itself", "it has not, since run "+strconv.FormatInt(last, 10), s.runs[len(s.runs)-1])
			return sc.Held()
		default:
			sc.advance(by)
		}
	}
}

// newest is the id of the latest run of a sync.
func (sc *scenario) newest(s *syncing) int64 {
	a := sc.get(below("syncs", s.id, "/sync_runs?per_page=1&order=desc"))
	mustSee(len(jsonvalue.Items(a.at("data"))), "the sync has no runs")
	return a.id("data", "0", "id")
}

func tooLong(d time.Duration) error {
	return engine.NotRun("--control-url", "would have to wait %s for real; needs --control-url", inWords(d))
}

// inWords is a duration as a feature file writes it: 5m, 24h.
func inWords(d time.Duration) string {
	text := d.String()
	for _, empty := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, empty) {
			text = strings.TrimSuffix(text, empty[1:])
		}
	}
	return text
}

var passes = regexp.MustCompile(`^(\d+[a-z]) pass$`)

// passing is how much time the steps of a check let pass, without the backoffs that it waits for.
func passing(c *conformance.Check) (sum time.Duration) {
	for _, step := range c.Steps {
		if m := passes.FindStringSubmatch(sentence(step)); m != nil {
			d, _ := time.ParseDuration(m[1]) // the step itself reports what is wrong with it
			sum += d
		}
	}
	return sum
}

// sentence is a step without its keyword.
func sentence(step string) string {
	_, rest, _ := strings.Cut(step, " ")
	return rest
}

// waitReason is what a check of a patient run waits for; "" is nothing.
func (r *run) waitReason(c *conformance.Check) string {
	if c.Clock && r.patient() {
		if d := passing(c); d > 0 {
			return fmt.Sprintf("waits for real: %s", inWords(d))
		}
		return fmt.Sprintf("waits for real, for what the service does by itself: at most %s for each run", inWords(patientAtMost))
	}
	if r.opts.RequestTimeout == 0 && r.opts.Patient && isHeld(c) {
		return fmt.Sprintf("does not answer a request for %s, unless the service gives it up", inWords(longHold))
	}
	return ""
}

// standIn are the sentences that only a stand-in can fulfil, by its control API.
var standIn = []struct {
	sentence *regexp.Regexp
	what     string
}{
	{regexp.MustCompile(`e-mails? (?:has|have) come|^each e-mail `), "reads e-mails, which only the mailbox of a stand-in shows"},
	{regexp.MustCompile(`^(?:an organization of its own|another organization with a workspace)$`),
		"makes an organization, which only a stand-in lets it do"},
	{regexp.MustCompile(`^a member of the organization$|^the invited person claims `), "claims an invitation, which only a stand-in lets it do"},
	{regexp.MustCompile(`^a destination with a good certificate that the service accepts$|^a client connects a destination with a certificate that is good$`), "needs a service that can be made to trust an authority"},
}

// permitted returns what a check lacks.
func (r *run) permitted(c *conformance.Check) error {
	if r.target.ControlURL != "" {
		return nil
	}
	for _, step := range c.Steps {
		for _, only := range standIn {
			if only.sentence.MatchString(sentence(step)) {
				return engine.NotRun("--control-url", "%s; needs --control-url", only.what)
			}
		}
	}
	switch d := passing(c); {
	case c.Clock && !r.opts.Patient:
		return engine.NotRun("--control-url", "needs a clock that can be moved (--control-url), or --patient to wait for real")
	case c.Clock && d > patientAtMost:
		return tooLong(d)
	}
	return nil
}
