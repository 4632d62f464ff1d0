package report

import (
	"fmt"
	"slices"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// open lists undecided checks, by what would decide them.
func (t *terminal) open() {
	all := openGroup{Checks: lists.Where(t.r.Checks, isUndecided)}
	if len(all.Checks) == 0 {
		return
	}
	title := fmt.Sprintf("Undecided: %s, %d of them MUST", quantity.Count(len(all.Checks), "check"), all.Musts())
	if !t.opt.Verbose {
		title += " (--verbose lists them)"
	}
	t.section(title)
	for _, g := range openGroups(t.r) {
		t.para(2, fmt.Sprintf("%3d  ", len(g.Checks)), g.What+around(": ", g.How, ""))
		if t.opt.Verbose {
			for _, r := range g.Checks {
				t.para(7, idLabel(r), rank(r)+" · "+line(r.Title)+" — "+line(r.Reason))
			}
		}
	}
}

func ids(checks []c.CheckResult) []string {
	return lists.Of(checks, func(r c.CheckResult) string { return r.ID })
}

// notes holds what breaks no rule, and the settings; notes on checks that hold are for the long form.
func (t *terminal) notes() {
	t.section("Notes")
	for _, n := range t.r.Notes {
		t.para(2, "", line(n))
	}
	hidden := 0
	for _, r := range t.r.Checks {
		if !t.opt.Verbose && holds(r) {
			hidden += len(r.Notes)
			continue
		}
		for _, n := range r.Notes {
			t.para(2, idLabel(r), line(n))
		}
	}
	if hidden > 0 {
		t.para(2, "", quantity.Count(hidden, "note")+" on checks that hold, which --verbose lists")
	}
	parts := lists.Of(settings(t.r), func(s setting) string { return glue(s.Name + " " + s.Value) })
	t.para(2, "settings  ", strings.Join(parts, " · "))
}

// idLabel is the id of a check before its text.
func idLabel(r c.CheckResult) string { return foreign.Pad(line(r.ID), 9) + " " }

// listed writes checks under a title, which no check has none of.
func (t *terminal) listed(title string, checks []c.CheckResult, write func(c.CheckResult)) {
	if len(checks) == 0 {
		return
	}
	t.section(title)
	for _, r := range checks {
		write(r)
	}
}

// own lists the author's own checks, which are never scored.
func (t *terminal) own() {
	t.listed("Your own checks (not scored)", t.r.Own, func(r c.CheckResult) {
		if holds(r) {
			t.title(r, 2)
			return
		}
		// Neither replay nor explain know a check that is not in the catalogue.
		t.result(r, false)
	})
}

// waived lists failures that are accepted, with the reason that was given.
func (t *terminal) waived() {
	t.listed("Waived", lists.Where(t.r.Checks, hasStatus(c.Waived)), func(r c.CheckResult) {
		t.para(2, idLabel(r), line(r.Title))
		t.para(12, "", waiver(r.Waiver))
	})
}

// residue writes what became of the records that were written.
func (t *terminal) residue() {
	res := t.r.Residue
	open := len(res.Refused) + len(res.Unknown) + res.Unverified
	if res.Cleaned+open == 0 && (notJudged(t.r) != nil || !t.r.Settings.Write) {
		return
	}
	t.section("Residue: " + residueLine(res))
	if res.Unverified > 0 {
		t.para(2, "only acknowledged  ", line(res.UnverifiedReason))
	}
	t.leftovers("refused  ", res.Refused)
	t.leftovers("unknown  ", res.Unknown)
	t.para(2, "journal  ", line(res.Journal))
	if res.Journal != "" && open > 0 {
		t.para(2, "again    ", glue("destkit clean --journal "+foreign.ShellWord(line(res.Journal))+ownKeys(t.r.Settings)+t.opt.access()))
	}
}

// ownKeys are the flags by which clean recognises the author's own form of keys.
func ownKeys(s c.Settings) string {
	keys := valued([]setting{{"--key-template", s.KeyTemplate}, {"--key-range", s.KeyRange}})
	return strings.Join(lists.Of(keys, func(k setting) string { return " " + k.Name + " " + foreign.ShellWord(line(k.Value)) }), "")
}

// leftovers lists keys, so that a person can remove them by hand.
func (t *terminal) leftovers(label string, list []c.Leftover) {
	shown := list
	if !t.opt.Verbose {
		shown = list[:min(len(list), maxLeftovers)]
	}
	for _, s := range leftovers(shown) {
		t.para(2, label, s)
	}
	if more := len(list) - len(shown); more > 0 {
		t.para(2, label, fmt.Sprintf("and %d more, all in the JSON report", more))
	}
}

// passes lists every check that passed or does not apply, in the long form.
func (t *terminal) passes() {
	if !t.opt.Verbose {
		return
	}
	t.listed("Passed and not applicable", lists.Where(t.r.Checks, holds), func(r c.CheckResult) {
		t.title(r, 2)
		t.para(8, "", line(r.Evidence+" "+r.Reason))
	})
}

// warnings are shown whole, since a stricter profile would fail them.
func (t *terminal) warnings() {
	t.listed("Warnings (below the gate of profile "+line(string(t.r.Profile))+")", lists.Where(t.r.Checks, isWarning), t.known)
}

// known writes the result of a check of the catalogue.
func (t *terminal) known(r c.CheckResult) { t.result(r, true) }

// problems are reasons why the run itself cannot be trusted.
func (t *terminal) problems() {
	all := problems(t.r)
	if first := notJudged(t.r); first != nil {
		all = slices.DeleteFunc(all, func(p c.Problem) bool { return p == *first }) // it is on the first line
	}
	if len(all) == 0 {
		return
	}
	t.section("Problems of this run")
	for _, p := range all {
		label := foreign.Pad(line(p.Kind), 12) + " "
		for _, l := range foreign.Block(limit(p.Message, maxField)) {
			t.para(2, label, l)
			label = foreign.Pad("", 13)
		}
		t.para(15, "Fix: ", line(p.Fix))
	}
}

// failures come last and complete: a terminal shows the end of the output.
func (t *terminal) failures() {
	checks := failures(t.r.Checks)
	title := "Failures"
	if t.opt.ReportFile == "" && t.opt.Rerun == "" {
		title += " (REPORT is a file written with --report json=FILE)"
	}
	// An error of the judge itself comes first: the end belongs to the endpoint.
	own := max(slices.IndexFunc(checks, hasStatus(c.HarnessError)), 0)
	t.listed(title, slices.Concat(checks[own:], checks[:own]), t.known)
	t.printf("")
}
