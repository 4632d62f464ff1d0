package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// One defect is reported once: a failed check is folded under those that it builds on, unless
// it shows symptoms (words for what was observed) beyond theirs.

// failed are the checks on which c builds, also through others, that have failed and that count.
func (sched *scheduler) failed(c *conformance.Check, counts func(id string, r *Result) bool) []string {
	var out []string
	seen := map[string]bool{}
	var visit func(ids []string)
	visit = func(ids []string) {
		for _, id := range ids {
			r := sched.results[id]
			if r == nil || seen[id] {
				continue
			}
			seen[id] = true
			if r.is(conformance.Fail, conformance.Warn, conformance.Flaky, conformance.Waived) && counts(id, r) {
				out = append(out, id)
			}
			if on := sched.check(id); on != nil {
				visit(sched.suite.needs(on))
			}
		}
	}
	visit(sched.suite.needs(c))
	return out
}

// explained are the failed checks on which c builds that show all it has found; nil without them.
func (sched *scheduler) explained(c *conformance.Check, r *Result) []string {
	if !r.is(conformance.Fail, conformance.Flaky, conformance.Warn) || len(r.Findings) == 0 {
		return nil
	}
	if q := r.quoted(); q != nil && aboutSizes(q.Key, c.ID) {
		return nil
	}
	var by []string
	for _, symptom := range r.Symptoms {
		causes := sched.failed(c, func(id string, n *Result) bool {
			// A check that passed alone is no cause: its failure follows from others itself.
			return !n.unsteady && (slices.Contains(n.Symptoms, symptom) || (len(n.marks) == 0 || n.marks[0].rule == "") && follows(id, symptom))
		})
		if symptom == "" || len(causes) == 0 {
			return nil
		}
		if !slices.Contains(by, causes[0]) {
			by = append(by, causes[0])
		}
	}
	return by
}

// lostSymptom is that of records which were acknowledged and are not there.
const lostSymptom = "not there"

// following are other symptoms that follow from the failure of a check.
var following = map[string][]string{
	"RES-008": {"refused and there", lostSymptom}, "RES-010": {"refused and there", lostSymptom}, // statuses at other records
	"RES-020": {"refused in a full batch"},                             // a refusal for the company of a record
	"RES-009": {"refused and there"}, "SEM-005": {"refused and there"}, // a status that is wrong, or an update that creates
	"STA-004": {"old value", lostSymptom}, "STA-006": {"old value", lostSymptom}, // an earlier change is not carried out
	"SEM-002": {"skipped value"}, "SEM-003": {"skipped value"}, // an insert that changes an existing record
	"ERR-006": {lostSymptom}, "OPS-007": {"refused free identifier"}, "SEM-007": {"lost update"},
	"DUR-002": {"old value", "copies", "still there", "still there after its delete", "refused update of records that are there"}, // a write that comes late
	"DUR-007": {"refused and there", "still there"},                                                                               // what was refused is written with a later batch
}

// follows also knows that an object whose name changes is unknown to the next call, and that
// results of other records make replies grow until they are too large to be read.
func follows(id, symptom string) bool {
	return slices.Contains(following[id], symptom) || id == "OBJ-004" && strings.Contains(symptom, " error ") ||
		id == "RES-002" && (strings.HasSuffix(symptom, ": "+string(wire.KindTooLarge)) || strings.HasSuffix(symptom, ": "+string(wire.KindUnread)))
}

// leaves are symptoms that cause what the last read-back shows: for example, an insert that would
// have been skipped creates the record that is lost.
var leaves = map[string][]string{
	lostSymptom: {"under another identifier"}, "skipped value": {lostSymptom}, "still there": {"still there after its delete"},
	"old value": {"ignored conflict", "taken back with another record"},
}

// disturbed are the checks whose failure explains failures in parallel with other calls only.
var disturbed = []string{"PAR-001", "PAR-002", "PAR-003", "PAR-005", "STA-003", "SEM-010", "SEM-017"}

// foldLate folds findings that depend on all results.
func (sched *scheduler) foldLate() {
	sched.foldMoved()
	sched.foldFields()
	sched.foldUnreadable()
	sched.foldQuotes()
	sched.foldLost()
	by := sched.disturbing(conformance.Fail, conformance.Warn)
	if len(by) == 0 {
		by = sched.mostUnsteady()
	}
	for _, c := range sched.checks {
		if r := sched.results[c.ID]; len(by) > 0 && r != nil && r.unsteady && !slices.Contains(by, c.ID) {
			sched.replace(c, by)
		}
	}
}

// disturbing are the checks that have found calls which disturb each other.
func (sched *scheduler) disturbing(statuses ...conformance.Status) []string {
	return lists.Where(disturbed, func(id string) bool { return sched.results[id].is(statuses...) })
}

// foldMoved gives findings whose cause is about the rule of another check to that check. One about
// how records are kept, on which this check builds, reports it itself.
func (sched *scheduler) foldMoved() {
	for _, c := range sched.checks {
		r := sched.results[c.ID]
		if c.Own || !r.is(conformance.Fail, conformance.Flaky) && (!r.is(conformance.Warn) || !slices.Contains(r.Symptoms, lostSymptom)) || len(r.marks) == 0 || r.marks[0].rule == c.ID ||
			slices.ContainsFunc(r.marks, func(m mark) bool { return m.rule != r.marks[0].rule }) {
			continue
		}
		to := sched.check(r.marks[0].rule)
		if to == nil || sched.buildsOnKept(to, c) {
			continue
		}
		for _, o := range sched.checks { // what to builds on has found the same
			if n := sched.results[o.ID]; n.is(conformance.Fail, conformance.Flaky) && len(n.marks) > 0 && n.marks[0].rule == to.ID && sched.buildsOnKept(to, o) {
				to = o
				break
			}
		}
		if !sched.results[to.ID].is(conformance.Fail, conformance.Flaky) {
			moved := *r
			status := map[bool]conformance.Status{true: conformance.Flaky, false: conformance.Fail}[r.unsteady] // of a warning as well
			moved.CheckResult = newResult(to, status, to.Reason).CheckResult
			moved.Gating, moved.Attempts, moved.Findings, moved.Symptoms = to.Gates(sched.opts.Profile), r.Attempts, slices.Clone(r.Findings), r.Symptoms
			for k := range moved.Findings {
				moved.Findings[k].Rule = to.Title
			}
			sched.opts.Waive(to, &moved.CheckResult)
			sched.results[to.ID] = &moved
		}
		sched.handOver(c, to.ID)
	}
}

// buildsOnKept reports whether a check builds on another one about how records are kept.
func (sched *scheduler) buildsOnKept(c, on *conformance.Check) bool {
	area, _, _ := strings.Cut(on.ID, "-")
	return slices.Contains([]string{"SEM", "DUR", "STA", "PAR"}, area) && slices.Contains(sched.suite.needs(c), on.ID)
}

// mostUnsteady is the check that speaks for many unsteady ones: one about independent calls, else the first.
func (sched *scheduler) mostUnsteady() []string {
	unsteady := func(c *conformance.Check) bool { r := sched.results[c.ID]; return r != nil && r.unsteady && r.Gating }
	found := lists.Of(lists.Where(sched.checks, unsteady), func(c *conformance.Check) string { return c.ID })
	if len(found) <= 3 { // more are one defect, whichever rules they are about
		return nil
	}
	for _, id := range []string{"STA-002", "STA-006", "DUR-002"} {
		if sched.results[id].is(conformance.Fail) || slices.Contains(found, id) {
			return []string{id}
		}
	}
	return found[:1]
}

// replace folds the result of a check under others.
func (sched *scheduler) replace(c *conformance.Check, by []string) {
	r, folded := sched.results[c.ID], blocked(c, by)
	folded.Gating, folded.Attempts, folded.DurationMS, folded.original = r.Gating, r.Attempts, r.DurationMS, r
	if len(r.Findings) > 0 {
		folded.Notes = []string{"seen here as well: " + r.Findings[0].Actual}
	}
	sched.results[c.ID] = folded
}

// handOver folds the result of a check under another one, with what it alone has blocked.
func (sched *scheduler) handOver(c *conformance.Check, to string) {
	sched.replace(c, []string{to})
	for _, other := range sched.results {
		if slices.Equal(other.BlockedBy, []string{c.ID}) {
			other.BlockedBy, other.Reason = []string{to}, "blocked by "+to
		}
	}
}

// foldFields keeps FLD-011, that a field is broken, where it has no value or fails in two checks
// about values; otherwise the check about the type of the value explains it better.
func (sched *scheduler) foldFields() {
	field := sched.results["FLD-011"]
	if field != nil && field.original != nil {
		field = field.original
	}
	if sched.check("FLD-011") == nil || !field.is(conformance.Fail, conformance.Warn) || !field.onlyShows(valueOfField) {
		return
	}
	var same []*conformance.Check
	whole := false
	for _, c := range sched.checks {
		r := sched.results[c.ID]
		if c.ID == "FLD-011" || !r.is(conformance.Fail, conformance.Warn, conformance.Flaky) || !r.onlyShows(valueOfField) ||
			!r.onlyShows(func(s string) bool { return slices.Contains(field.Symptoms, s) }) {
			continue
		}
		if !slices.Contains(ofTheRun, c.ID) { // they see what others have written
			same = append(same, c)
		}
		whole = whole || slices.ContainsFunc(r.Symptoms, func(s string) bool { return strings.HasPrefix(s, "no value of ") })
	}
	if !whole && len(same) < 2 {
		return
	}
	sched.results["FLD-011"] = field
	for _, c := range same {
		sched.replace(c, []string{"FLD-011"})
	}
}

// valueOfField reports whether a symptom is that of the value of a field.
func valueOfField(symptom string) bool {
	return strings.HasPrefix(strings.TrimPrefix(symptom, "no "), "value of ")
}

// foldUnreadable folds under RPC-001 what shows nothing but bodies that are no JSON: warnings, and failures where it has more.
func (sched *scheduler) foldUnreadable() {
	for _, c := range sched.checks {
		first, r := sched.results["RPC-001"], sched.results[c.ID]
		other := func(s string) bool { return !slices.Contains(r.Symptoms, s) }
		if first.is(conformance.Fail) && (r.is(conformance.Warn) || r.is(conformance.Fail) && slices.ContainsFunc(first.Symptoms, other)) && !c.Own &&
			r.onlyShows(func(s string) bool { return strings.HasSuffix(s, " without JSON") }) &&
			r.everyExchange(func(x conformance.Exchange) bool {
				return x.Response != nil && (x.Response.Body.Text != "" || x.Response.Body.Base64 != "")
			}) {
			sched.handOver(c, "RPC-001")
		}
	}
}

// ofTheRun are the checks that look at what all others have left.
var ofTheRun = []string{"DUR-006", "DUR-007", "DUR-008"}

// foldLost keeps one finding for a lost record: that of a check that gates, and for records that no
// other check covers, that of a check about the run as a whole.
func (sched *scheduler) foldLost() {
	for _, id := range ofTheRun {
		run, r := sched.check(id), sched.results[id]
		if run == nil || !r.is(conformance.Fail) {
			continue
		}
		by := sched.sameLoss(id, r)
		if len(by) == 0 { // a warning explains no loss
			by = sched.disturbing(conformance.Fail)
		}
		to := append(by, id)[0]
		if len(by) > 0 {
			sched.replace(run, by)
		}
		for _, c := range sched.checks {
			o := sched.results[c.ID]
			if to == id && o.is(conformance.Warn, conformance.Flaky) && o.onlyShows(func(s string) bool { return follows(id, s) }) {
				sched.handOver(c, id)
			}
			if !o.is(conformance.Warn) || !o.onlyShows(func(s string) bool { return s == lostSymptom }) || !slices.Contains(r.Symptoms, lostSymptom) ||
				to != id && o.Findings[0].Cause != sched.results[to].Findings[0].Cause {
				continue
			}
			for i := range min(len(r.Findings), len(r.marks)) { // the check about such records knows more
				if f := &r.Findings[i]; r.marks[i].symptom == lostSymptom && !f.Observed {
					f.Cause, f.Fix, f.Observed = o.Findings[0].Cause, o.Findings[0].Fix, o.Findings[0].Observed
				}
			}
			sched.replace(c, []string{to})
		}
	}
}

// sameLoss are the failed checks that show all symptoms of r, or what they follow from.
func (sched *scheduler) sameLoss(id string, r *Result) (by []string) {
	for _, symptom := range r.Symptoms {
		i := slices.IndexFunc(sched.checks, func(c *conformance.Check) bool {
			o := sched.results[c.ID]
			return o.is(conformance.Fail, conformance.Flaky, conformance.Waived) && !slices.Contains(ofTheRun, c.ID) &&
				(id != "DUR-007" || !o.unsteady) && // what it finds is steady
				(slices.Contains(o.Symptoms, symptom) || follows(c.ID, symptom) ||
					slices.ContainsFunc(leaves[symptom], func(s string) bool { return slices.Contains(o.Symptoms, s) }))
		})
		if i < 0 {
			return nil
		}
		if !slices.Contains(by, sched.checks[i].ID) {
			by = append(by, sched.checks[i].ID)
		}
	}
	return by
}

// foldQuotes makes one finding of those that quote messages of one cause. A text without a cause
// counts where calls that pass alone were refused with it: else it can have several reasons.
func (sched *scheduler) foldQuotes() {
	groups := map[string][]*conformance.Check{}
	for _, c := range sched.checks {
		if q := sched.results[c.ID].quoted(); q != nil && !c.Own {
			groups[q.Key] = append(groups[q.Key], c)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		sched.foldQuoted(groups[key])
	}
}

func (sched *scheduler) foldQuoted(checks []*conformance.Check) {
	moment := slices.ContainsFunc(checks, func(c *conformance.Check) bool { return sched.results[c.ID].unsteady })
	if len(checks) == 1 || !sched.results[checks[0].ID].Findings[0].Quote.Cause && !moment {
		return
	}
	bearer := slices.MaxFunc(checks, func(a, b *conformance.Check) int { return sched.bearing(a, checks) - sched.bearing(b, checks) })
	for _, c := range checks {
		if c != bearer {
			sched.handOver(c, bearer.ID)
		}
	}
	if r := sched.results[bearer.ID]; moment {
		f := &r.Findings[0]
		when := cmp.Or(f.Quote.When, "calls that pass alone are refused after or at the same time as others")
		f.Expected = "calls that are answered the same way whatever runs at the same time, and whatever went before"
		f.Actual = fmt.Sprintf("%s: %s (in %s)", when, f.Quote.Text, quantity.Count(len(checks), "check"))
		r.Findings = r.Findings[:1]
		r.blameOthers(bearer)
	}
}

// aboutSizes reports whether a check is about the sizes that a message names.
func aboutSizes(key, id string) bool {
	return id == "SPD-006" && (key == "body limit" || key == "parameters of a statement")
}

// bearing is how much a failed check explains of a defect that several have met: the later a reason
// is named here, the more it counts.
func (sched *scheduler) bearing(c *conformance.Check, among []*conformance.Check) (n int) {
	r, needs := sched.results[c.ID], sched.suite.needs(c)
	for i, says := range []bool{
		!slices.ContainsFunc(among, func(o *conformance.Check) bool { return slices.Contains(needs, o.ID) }),
		aboutSizes(r.Findings[0].Quote.Key, c.ID), slices.Contains(disturbed, c.ID), r.is(conformance.Fail), r.Gating,
	} {
		if says {
			n += 1 << i
		}
	}
	return n
}
