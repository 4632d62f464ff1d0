package report

import (
	"fmt"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/quantity"
)

// setting is one choice that decides what a verdict means.
type setting struct{ Name, Value string }

// settings lists every choice of a run in words: a verdict without them means
// nothing, so that they stand in every format that a person reads.
func settings(r *c.Report) []setting {
	s := r.Settings
	list := destinationSettings(r)
	if r.Suite == c.SuiteService {
		list = serviceSettings(r)
	}
	if len(s.Selected) > 0 {
		list = append(list, setting{"selected", orNone(s.Selected)})
	}
	if len(s.Skipped) > 0 {
		list = append(list, setting{"skipped", orNone(s.Skipped)})
	}
	return append(list, setting{"seed", fmt.Sprint(r.Seed)}, setting{"run", line(r.RunID)})
}

// serviceSettings are those of a judged service. A caller is judged by what it sends, and
// nothing is asked of it or set.
func serviceSettings(r *c.Report) []setting {
	s := r.Settings
	list := []setting{{"profile", line(string(r.Profile))}}
	if !s.Passive {
		list = append(list,
			setting{"dialect", line(s.Dialect)},
			setting{"clock", line(s.Clock)},
			setting{"simulators", line(s.Simulators)},
			setting{"source", line(s.Source)},
			setting{"deadline", "run " + duration(s.TimeoutMS)},
		)
	}
	return append(list, setting{"waivers", fmt.Sprint(s.WaiverCount)})
}

// destinationSettings are those of a judged destination.
func destinationSettings(r *c.Report) []setting {
	s := r.Settings
	list := []setting{
		{"profile", line(string(r.Profile))},
		{"write", writeScope(s)},
		{"read-back", readbackScope(s)},
		{"hooks", orNone(s.Hooks)},
		{"load", onOff(s.Load)},
		{"development", onOff(s.Development)},
		{"TLS roots", orWord(s.Roots, "none")},
		{"deadlines", fmt.Sprintf("planning %s, batch %s, run %s",
			duration(s.PlanningTimeoutMS), duration(s.BatchTimeoutMS), duration(s.TimeoutMS))},
		{"waivers", fmt.Sprint(s.WaiverCount)},
		{"skip convention", orWord(s.SkipConvention, "not declared")},
	}
	if s.DeclaredSpeed != "" {
		list = append(list, setting{"declared speed", line(s.DeclaredSpeed)})
	}
	if s.DeclaredRateLimit != 0 {
		list = append(list, setting{"declared limit", fmt.Sprintf("%d requests/s", s.DeclaredRateLimit)})
	}
	return list
}

// writeScope says what the run was allowed to write.
func writeScope(s c.Settings) string {
	if !s.Write {
		return "no"
	}
	return fmt.Sprintf("%s, at most %s", orNone(s.Objects), quantity.Count(s.MaxRecords, "record"))
}

// readbackScope reports whether values were looked up, and how late they might
// appear: a window weakens what DUR-001 proves.
func readbackScope(s c.Settings) string {
	switch {
	case !s.Readback:
		return "no"
	case s.ReadbackWindowMS > 0:
		return "yes, may lag " + duration(s.ReadbackWindowMS)
	}
	return "yes, at once"
}

// orNone writes a list in one line.
func orNone(list []string) string { return orWord(strings.Join(list, ", "), "none") }

// orWord is s in one line, or a word for its absence.
func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return line(s)
}

// onOff is a switch in a word.
func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
