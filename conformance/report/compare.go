package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	c "github.com/destkit/destkit/conformance"
)

// Comparison is the difference between two runs, a before b.
type Comparison struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// NewlyFailing fail or gate in b and did not in a, among them those that gate
	// in b and do not stand in a; Fixed failed in a and pass in b; Changed are all
	// other changes of a status.
	NewlyFailing []Change `json:"newly_failing"`
	Fixed        []Change `json:"fixed"`
	Changed      []Change `json:"changed"`
	// Findings changed while the check failed in both runs.
	Findings []FindingChange `json:"findings"`
	// OnlyA and OnlyB are ids of checks that stand in one report alone.
	OnlyA []string `json:"only_a"`
	OnlyB []string `json:"only_b"`
	// Name tells comparisons apart that are shown in the same place, such as the
	// comments of two endpoints: Compare sets it to the suite of b. See [Marker].
	Name string `json:"-"`
	// Unfair are the settings that differ: a change of a status may come from
	// them and not from the endpoint.
	Unfair []Difference `json:"unfair"`
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
	ID    string   `json:"id"`
	Title string   `json:"title"`
	Level c.Level  `json:"level"`
	From  c.Status `json:"from"` // "" for a check that the older run did not have
	To    c.Status `json:"to"`
	// Gating reports whether the newer result decides the verdict.
	Gating bool `json:"gating"`
	// Reason is the one of the newer result.
	Reason string `json:"reason"`
	// BlockedBy and WasBlockedBy are the failed checks that the newer and the older
	// result wait for.
	BlockedBy    []string `json:"blocked_by,omitempty"`
	WasBlockedBy []string `json:"was_blocked_by,omitempty"`
}

// FindingChange is a finding that appeared or disappeared while its check
// failed in both runs.
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

// Compare compares two runs check by check. The order of the results is that
// of b, then that of a.
func Compare(a, b *c.Report) Comparison {
	d := Comparison{
		A: newSide(a), B: newSide(b), Unfair: list(differences(a, b)), Name: b.Suite,
		NewlyFailing: []Change{}, Fixed: []Change{}, Changed: []Change{}, Findings: []FindingChange{}, OnlyA: []string{}, OnlyB: []string{},
	}
	before := map[string]c.CheckResult{}
	for _, r := range a.Checks {
		before[r.ID] = r
	}
	after := map[string]bool{}
	for _, r := range b.Checks {
		after[r.ID] = true
		old, ok := before[r.ID]
		if !ok {
			d.OnlyB = append(d.OnlyB, r.ID)
			// A newer program brings new checks, and one that gates is a
			// failure that was not there before.
			if gates(r) {
				d.NewlyFailing = append(d.NewlyFailing, newChange("", r))
			}
			continue
		}
		d.add(old, r, a.RunID, b.RunID)
	}
	for _, r := range a.Checks {
		if !after[r.ID] {
			d.OnlyA = append(d.OnlyA, r.ID)
		}
	}
	return d
}

// newSide keeps of a report what a comparison shows of it.
func newSide(r *c.Report) Side {
	return Side{r.RunID, r.Target, r.Summary, r.Verdict, r.Tier, r.ExitStatus}
}

// failed tells every status behind which stands a breach that was seen.
func failed(r c.CheckResult) bool {
	switch r.Status {
	case c.Fail, c.Flaky, c.Warn, c.Waived:
		return true
	}
	return false
}

// gates tells a breach that decides the verdict.
func gates(r c.CheckResult) bool {
	return r.Gating && (r.Status == c.Fail || r.Status == c.Flaky)
}

// newChange is a check that has another status than before.
func newChange(from c.Status, now c.CheckResult) Change {
	return Change{ID: now.ID, Title: now.Title, Level: now.Level, From: from, To: now.Status,
		Gating: gates(now), Reason: now.Reason, BlockedBy: now.BlockedBy}
}

// add files one check that stands in both reports. The ids of the runs are
// needed to recognise keys that were made for one run.
func (d *Comparison) add(old, now c.CheckResult, runA, runB string) {
	change := newChange(old.Status, now)
	change.WasBlockedBy = old.BlockedBy
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
		d.Findings = append(d.Findings, findingChanges(now.ID, old.Findings, now.Findings, runA, runB)...)
	}
}

// findingChanges pairs the findings of two runs by their fingerprints, each at
// most once, and returns those without a partner: new ones first.
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

// Durations and request ids differ in every run and say nothing about a rule.
var (
	durations  = regexp.MustCompile(`\b\d+(\.\d+)? ?(ns|µs|us|ms|s|min)\b`)
	requestIDs = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
)

// fingerprint is what two runs say alike when they saw the same breach: keys
// carry the id of their run, replies that of their request, and times are
// never the same.
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
	s = requestIDs.ReplaceAllString(s, "ID")
	return durations.ReplaceAllString(s, "TIME")
}

// differences lists all that may change a status without a change of the
// endpoint. The seed is left out, since every run draws its own, and so is the URL,
// which is where the endpoint is and not how it was judged.
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
		diff(name, x[name], y[name])
	}
	return out
}

// members maps the members of the settings to their JSON, so that a setting
// that is added is compared without a change here.
func members(s c.Settings) map[string]string {
	s.Objects, s.Hooks = list(s.Objects), list(s.Hooks)
	out := map[string]string{}
	b, err := json.Marshal(s)
	if err != nil {
		return map[string]string{"settings": fmt.Sprintf("%+v", s)}
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(b, &raw) == nil {
		for k, v := range raw {
			out[k] = string(v)
		}
	}
	return out
}
