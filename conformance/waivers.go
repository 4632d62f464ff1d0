package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/lists"
)

// checkWaivers refuses waivers that say nothing; stale, expired and unknown ones
// are problems of the report (exit status 4), since the run itself is sound.
func (o *Options) checkWaivers() error {
	for i, w := range o.Waivers {
		if w.Check == "" || w.Reason == "" {
			return usage("%swaiver %d needs a check and a reason", w.place(), i+1)
		}
		if w.Until == "" {
			continue
		}
		if _, err := time.Parse(time.DateOnly, w.Until); err != nil {
			return usage("%swaiver of %s: until %q is no date: use YYYY-MM-DD", w.place(), w.Check, w.Until)
		}
	}
	return nil
}

// place begins a message about the waiver.
func (w Waiver) place() string {
	if w.Source == "" {
		return ""
	}
	return w.Source + ": "
}

func (w Waiver) expired(now time.Time) bool {
	if w.Until == "" {
		return false
	}
	last, err := time.Parse(time.DateOnly, w.Until)
	return err == nil && !now.Before(last.AddDate(0, 0, 1))
}

// covers reports whether the waiver speaks of the finding.
func (w Waiver) covers(f Finding) bool {
	return (w.Object == "" || w.Object == f.Object) && (w.Operation == "" || w.Operation == f.Operation)
}

// Waive turns a failure whose every finding is accepted into WAIVED.
func (o *Options) Waive(c *Check, r *CheckResult) {
	accepted := func(f Finding) bool { return o.waiverFor(c.ID, f) != nil }
	if !r.failed() || len(r.Findings) == 0 || len(lists.Where(r.Findings, accepted)) < len(r.Findings) {
		return
	}
	w := o.waiverFor(c.ID, r.Findings[0])
	r.Status, r.Waiver = Waived, w
	r.Reason = "waived: " + w.Reason
}

func (o *Options) waiverFor(id string, f Finding) *Waiver {
	for i := range o.Waivers {
		w := &o.Waivers[i]
		if w.Check == id && w.covers(f) && !w.expired(time.Now()) {
			return w
		}
	}
	return nil
}

// staleWaivers reports waivers that no longer waive anything.
func (o *Options) staleWaivers(r *Report, cat *Catalogue) {
	problem := func(format string, args ...any) {
		r.Problems = append(r.Problems, Problem{Kind: "waiver", ExitStatus: 4, Message: fmt.Sprintf(format, args...),
			Fix: "remove or correct the waiver"})
	}
	for _, w := range o.Waivers {
		if _, ok := cat.Check(w.Check); !ok {
			meant := ""
			if id := meantCheck(cat, w.Check); id != "" {
				meant = fmt.Sprintf("; did you mean %s?", id)
			}
			problem("%sthe waiver of %s names no check of the catalogue%s", w.place(), w.Check, meant)
			continue
		}
		if w.expired(time.Now()) {
			problem("%sthe waiver of %s expired on %s", w.place(), w.Check, w.Until)
			continue
		}
		for _, c := range r.Checks {
			if c.ID != w.Check {
				continue
			}
			if !slices.ContainsFunc(c.Findings, w.covers) && (c.Status == Pass || c.failed() || c.Status == Waived) {
				problem("%sthe waiver of %s is stale: nothing that it covers failed", w.place(), w.Check)
			}
		}
	}
}
