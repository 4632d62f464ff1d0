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

// open lists what is undecided, by what would decide it.
func (t *terminal) open() {
	groups := openGroups(t.r)
	if len(groups) == 0 {
		return
	}
	n, musts := 0, 0
	for _, g := range groups {
		n += len(g.Checks)
		musts += g.Musts()
	}
	title := fmt.Sprintf("Undecided: %s, %d of them MUST", quantity.Count(n, "check"), musts)
	if !t.opt.Verbose {
		title += " (--verbose lists them)"
	}
	t.section(title)
	for _, g := range groups {
		head := g.What
		if g.How != "" {
			head += ": " + g.How
		}
		t.para(2, fmt.Sprintf("%3d  ", len(g.Checks)), head)
		if t.opt.Verbose {
			for _, r := range g.Checks {
				t.para(7, foreign.Pad(line(r.ID), 9)+" ", rank(r)+" · "+line(r.Title)+" — "+line(r.Reason))
			}
		}
	}
}

// ids lists the ids of results.
func ids(checks []c.CheckResult) []string {
	return lists.Of(checks, func(r c.CheckResult) string { return r.ID })
}

// notes holds what was seen and breaks no rule, and the settings. What is noted of a
// check that holds is for those who want to know all.
func (t *terminal) notes() {
	t.section("Notes")
	for _, n := range t.r.Notes {
		t.para(2, "", line(n))
	}
	hidden := 0
	for _, r := range t.r.Checks {
		if !t.opt.Verbose && (r.Status == c.Pass || r.Status == c.NotApplicable) {
			hidden += len(r.Notes)
			continue
		}
		for _, n := range r.Notes {
			t.para(2, foreign.Pad(line(r.ID), 9)+" ", line(n))
		}
	}
	if hidden > 0 {
		t.para(2, "", quantity.Count(hidden, "note")+" on checks that hold, which --verbose lists")
	}
	parts := lists.Of(settings(t.r), func(s setting) string { return glue(s.Name + " " + s.Value) })
	t.para(2, "settings  ", strings.Join(parts, " · "))
}

// own lists the author's own checks, which are never scored.
func (t *terminal) own() {
	if len(t.r.Own) == 0 {
		return
	}
	t.section("Your own checks (not scored)")
	for _, r := range t.r.Own {
		if r.Status == c.Pass || r.Status == c.NotApplicable {
			t.title(r, 2)
			continue
		}
		// Neither replay nor explain know a check that is not in the catalogue.
		t.result(r, false)
	}
}

// waived lists failures that are accepted, with the reason that was given.
func (t *terminal) waived() {
	checks := lists.Where(t.r.Checks, hasStatus(c.Waived))
	if len(checks) == 0 {
		return
	}
	t.section("Waived")
	for _, r := range checks {
		t.para(2, foreign.Pad(line(r.ID), 9)+" ", line(r.Title))
		t.para(12, "", waiver(r.Waiver))
	}
}

// residue says what became of the records that were written.
func (t *terminal) residue() {
	res := t.r.Residue
	if notJudged(t.r) != nil && none(res) || none(res) && !t.r.Settings.Write {
		return
	}
	t.section("Residue: " + residueLine(res))
	if res.Unverified > 0 {
		t.para(2, "only acknowledged  ", line(res.UnverifiedReason))
	}
	t.leftovers("refused  ", res.Refused)
	t.leftovers("unknown  ", res.Unknown)
	if res.Journal == "" {
		return
	}
	t.para(2, "journal  ", line(res.Journal))
	if len(res.Refused)+len(res.Unknown)+res.Unverified > 0 {
		t.para(2, "again    ", glue("destkit clean --journal "+foreign.ShellWord(line(res.Journal))+ownKeys(t.r.Settings)+t.access()))
	}
}

// access is what a command that calls the endpoint ends with.
func (t *terminal) access() string {
	if words := line(t.opt.Access); words != "" {
		return " " + words
	}
	return ""
}

// ownKeys are the flags by which clean recognises the author's own form of keys.
func ownKeys(s c.Settings) string {
	out := ""
	if s.KeyTemplate != "" {
		out += " --key-template " + foreign.ShellWord(line(s.KeyTemplate))
	}
	if s.KeyRange != "" {
		out += " --key-range " + foreign.ShellWord(line(s.KeyRange))
	}
	return out
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
	checks := lists.Where(t.r.Checks, func(r c.CheckResult) bool {
		return r.Status == c.Pass || r.Status == c.NotApplicable
	})
	if len(checks) == 0 {
		return
	}
	t.section("Passed and not applicable")
	for _, r := range checks {
		t.title(r, 2)
		if why := line(r.Evidence + " " + r.Reason); why != "" {
			t.para(8, "", why)
		}
	}
}

// warnings are findings below the gate: they are shown whole, since a stricter
// profile would fail them.
func (t *terminal) warnings() {
	checks := lists.Where(t.r.Checks, isWarning)
	if len(checks) == 0 {
		return
	}
	t.section("Warnings (below the gate of profile " + line(string(t.r.Profile)) + ")")
	for _, r := range checks {
		t.result(r, true)
	}
}

// problems are reasons why the run itself cannot be trusted.
func (t *terminal) problems() {
	all := problems(t.r)
	if first := notJudged(t.r); first != nil {
		all = slices.DeleteFunc(all, func(p c.Problem) bool { return p == *first }) // stands on the first line
	}
	if len(all) == 0 {
		return
	}
	t.section("Problems of this run")
	for _, p := range all {
		lines := block(limit(p.Message, maxField))
		for i, l := range lines {
			label := foreign.Pad("", 13)
			if i == 0 {
				label = foreign.Pad(line(p.Kind), 12) + " "
			}
			t.para(2, label, l)
		}
		if p.Fix != "" {
			t.para(15, "Fix: ", line(p.Fix))
		}
	}
}

// failures come last and complete: the end of the output is what a terminal
// shows when the run is over.
func (t *terminal) failures() {
	checks := failures(t.r.Checks)
	if len(checks) == 0 {
		t.printf("")
		return
	}
	title := "Failures"
	if t.opt.ReportFile == "" && t.opt.Rerun == "" {
		title += " (REPORT is a file written with --report json=FILE)"
	}
	t.section(title)
	// What the judge itself got wrong stands first: the end of the output
	// belongs to what the endpoint did.
	harness := hasStatus(c.HarnessError)
	for _, r := range lists.Where(checks, harness) {
		t.result(r, true)
	}
	for _, r := range lists.Where(checks, func(r c.CheckResult) bool { return !harness(r) }) {
		t.result(r, true)
	}
	t.printf("")
}
