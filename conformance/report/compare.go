package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/lists"
)

// Comparison is the difference between two runs, a before b.
type Comparison struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// NewlyFailing fail or gate in b and did not in a, or are not in a and gate; Fixed failed in a
	// and pass in b; Changed are all other changes of a status.
	NewlyFailing []Change        `json:"newly_failing"`
	Fixed        []Change        `json:"fixed"`
	Changed      []Change        `json:"changed"`
	Findings     []FindingChange `json:"findings"` // that changed while the check failed in both runs
	OnlyA        []string        `json:"only_a"`   // ids of checks that are in one report alone
	OnlyB        []string        `json:"only_b"`
	// Name distinguishes comparisons in one place: Compare sets it to the suite of b. See [Marker].
	Name   string       `json:"-"`
	Unfair []Difference `json:"unfair"` // settings that differ: a change of a status may come from them
}

// Side is what identifies one of the two runs.
type Side struct {
	RunID      string    `json:"run_id"`
	Target     string    `json:"target"`
	Summary    string    `json:"summary"`
	Verdict    c.Verdict `json:"verdict"`
	Tier       c.Tier    `json:"tier"`
	ExitStatus int       `json:"exit_status"`
}

// Change is a check whose status changed.
type Change struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Level  c.Level  `json:"level"`
	From   c.Status `json:"from"` // "" for a check that the older run did not have
	To     c.Status `json:"to"`
	Gating bool     `json:"gating"` // the newer result decides the verdict
	Reason string   `json:"reason"` // of the newer result
	// BlockedBy and WasBlockedBy are the failed checks that the newer and the older result wait for.
	BlockedBy    []string `json:"blocked_by,omitempty"`
	WasBlockedBy []string `json:"was_blocked_by,omitempty"`
}

// FindingChange is a finding that appeared or disappeared while its check failed in both runs.
type FindingChange struct {
	ID      string    `json:"id"`
	New     bool      `json:"new"` // it appeared; otherwise it is gone
	Finding c.Finding `json:"finding"`
}

// Difference is one setting that differs.
type Difference struct {
	Setting string `json:"setting"`
	A       string `json:"a"`
	B       string `json:"b"`
}

// Regressed reports whether a gate failed in the newer run and not in the older.
func (d Comparison) Regressed() bool {
	return slices.ContainsFunc(d.NewlyFailing, func(x Change) bool { return x.Gating })
}

// Same reports whether nothing but the URL differs.
func (d Comparison) Same() bool {
	return len(d.NewlyFailing)+len(d.Fixed)+len(d.Changed)+len(d.Findings)+
		len(d.OnlyA)+len(d.OnlyB)+len(d.Unfair) == 0
}

// Compare compares two runs check by check, in the order of b, then that of a.
func Compare(a, b *c.Report) Comparison {
	d := Comparison{
		A: newSide(a), B: newSide(b), Unfair: list(differences(a, b)), Name: b.Suite,
		NewlyFailing: []Change{}, Fixed: []Change{}, Changed: []Change{}, Findings: []FindingChange{}, OnlyB: []string{},
	}
	before := map[string]c.CheckResult{}
	for _, r := range a.Checks {
		before[r.ID] = r
	}
	after := map[string]bool{}
	for _, r := range b.Checks {
		after[r.ID] = true
		if old, ok := before[r.ID]; ok {
			d.add(old, r)
			continue
		}
		d.OnlyB = append(d.OnlyB, r.ID)
		if gates(r) { // a newer program brings new checks, and with them failures
			d.NewlyFailing = append(d.NewlyFailing, newChange(c.CheckResult{}, r))
		}
	}
	d.OnlyA = list(ids(lists.Where(a.Checks, func(r c.CheckResult) bool { return !after[r.ID] })))
	return d
}

// newSide keeps of a report what a comparison shows of it.
func newSide(r *c.Report) Side {
	return Side{r.RunID, r.Target, r.Summary, r.Verdict, r.Tier, r.ExitStatus}
}

// gates reports whether a result is a breach that decides the verdict.
func gates(r c.CheckResult) bool { return r.Gating && (r.Status == c.Fail || r.Status == c.Flaky) }

func newChange(old, now c.CheckResult) Change {
	return Change{ID: now.ID, Title: now.Title, Level: now.Level, From: old.Status, To: now.Status,
		Gating: gates(now), Reason: now.Reason, BlockedBy: now.BlockedBy, WasBlockedBy: old.BlockedBy}
}

// add files one check that is in both reports.
func (d *Comparison) add(old, now c.CheckResult) {
	change := newChange(old, now)
	switch {
	case failed(now) && !failed(old), gates(now) && !gates(old):
		d.NewlyFailing = append(d.NewlyFailing, change)
	case failed(old) && now.Status == c.Pass:
		// A check that is undecided now is not repaired, only out of sight.
		d.Fixed = append(d.Fixed, change)
	case old.Status != now.Status:
		d.Changed = append(d.Changed, change)
	}
	if failed(old) && failed(now) {
		d.Findings = append(d.Findings, findingChanges(now.ID, old.Findings, now.Findings, d.A.RunID, d.B.RunID)...)
	}
}

// findingChanges pairs findings by their fingerprints and returns those without a partner, new ones first.
func findingChanges(id string, a, b []c.Finding, runA, runB string) []FindingChange {
	count := map[string]int{}
	for _, f := range a {
		count[fingerprint(f, runA)]++
	}
	var out []FindingChange
	for _, f := range b {
		if k := fingerprint(f, runB); count[k] > 0 {
			count[k]--
		} else {
			out = append(out, FindingChange{id, true, f})
		}
	}
	for _, f := range a {
		if k := fingerprint(f, runA); count[k] > 0 {
			count[k]--
			out = append(out, FindingChange{id, false, f})
		}
	}
	return out
}

// durations differ in every run and show nothing about a rule.
var durations = regexp.MustCompile(`\b\d+(\.\d+)? ?(ns|µs|us|ms|s|min)\b`)

// fingerprint is what two runs report alike for one breach: without ids of runs and calls, and times.
func fingerprint(f c.Finding, run string) string {
	s := strings.Join([]string{f.Object, f.Operation, f.Rule, f.Expected, f.Actual}, "\x00")
	// Shorter ids would tear words apart.
	for _, x := range f.Exchanges {
		if len(x.RPCID) >= 8 {
			s = strings.ReplaceAll(s, x.RPCID, "ID")
		}
	}
	if len(run) >= 4 {
		s = strings.ReplaceAll(s, run, "RUN")
	}
	return durations.ReplaceAllString(callID.ReplaceAllString(s, "ID"), "TIME")
}

// differences lists all that may change a status without a change of the endpoint: neither seed nor URL.
func differences(a, b *c.Report) []Difference {
	var out []Difference
	diff := func(name, x, y string) {
		if x != y {
			out = append(out, Difference{name, x, y})
		}
	}
	diff("suite", a.Suite, b.Suite)
	diff("replicas", strings.Join(a.Replicas, ", "), strings.Join(b.Replicas, ", "))
	diff("tool", a.Tool.Name+" "+a.Tool.Version, b.Tool.Name+" "+b.Tool.Version)
	diff("profile", string(a.Profile), string(b.Profile))
	x, y := members(a.Settings), members(b.Settings)
	names := maps.Clone(x)
	maps.Copy(names, y)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		diff(name, string(x[name]), string(y[name]))
	}
	return out
}

// members maps the settings to their JSON, so that one that is added needs no change here.
func members(s c.Settings) map[string]json.RawMessage {
	s.Objects, s.Hooks = list(s.Objects), list(s.Hooks)
	out := map[string]json.RawMessage{}
	if b, err := json.Marshal(s); err != nil || json.Unmarshal(b, &out) != nil {
		return map[string]json.RawMessage{"settings": fmt.Appendf(nil, "%+v", s)}
	}
	return out
}
