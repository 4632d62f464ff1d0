package engine

import (
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// One defect is reported once. Findings carry a symptom, a word for what was
// observed; what a failed check shows beyond the symptoms of those that it builds
// on keeps it a failure of its own, the rest is folded under them.

// failed are the checks on which c builds, directly or through others, that have
// failed and that count.
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
			switch r.Status {
			case conformance.Fail, conformance.Warn, conformance.Flaky, conformance.Waived:
				if counts(id, r) {
					out = append(out, id)
				}
			}
			if i := slices.IndexFunc(sched.checks, func(o *conformance.Check) bool { return o.ID == id }); i >= 0 {
				visit(sched.suite.needs(sched.checks[i]))
			}
		}
	}
	visit(sched.suite.needs(c))
	return out
}

// explained are the failed checks that c builds on and whose findings show all
// that c has found: one defect is reported once, and what follows from it is folded
// under it. Whatever else c has found keeps it a failure of its own.
func (sched *scheduler) explained(c *conformance.Check, r *Result) []string {
	if r.Status != conformance.Fail && r.Status != conformance.Flaky && r.Status != conformance.Warn || len(r.Findings) == 0 {
		return nil
	}
	if q := r.quoted(); q != nil && slices.Contains(ofSizes[q.Key], c.ID) {
		return nil // the check that the message is about
	}
	var by []string
	for _, symptom := range r.Symptoms {
		if symptom == "" {
			return nil
		}
		causes := sched.failed(c, func(id string, n *Result) bool {
			// What passed alone is no cause: it follows from others itself.
			return !n.unsteady && (slices.Contains(n.Symptoms, symptom) || follows(id, symptom))
		})
		if len(causes) == 0 {
			return nil
		}
		if !slices.Contains(by, causes[0]) {
			by = append(by, causes[0])
		}
	}
	return by
}

// follows reports whether a symptom follows from the failure of a check, though it
// is not the same: an object whose name changes is unknown to the next call.
// Results of other records make replies grow until they are too large to be read.
func follows(id, symptom string) bool {
	switch id {
	case "RES-008", "RES-010": // statuses at other records
		return symptom == "refused and there" || symptom == lostSymptom
	case "RES-020": // a refusal for the company of a record
		return symptom == "refused in a full batch"
	case "RES-009", "SEM-005": // a status that is wrong, or an update that creates
		return symptom == "refused and there"
	case "STA-004", "STA-006": // what was sent before is not carried out
		return symptom == "old value" || symptom == lostSymptom
	case "SEM-002", "SEM-003": // an insert that changes what is there
		return symptom == "skipped value"
	case "ERR-006":
		return symptom == lostSymptom
	}
	return id == "OBJ-004" && strings.Contains(symptom, " error ") ||
		id == "RES-002" && (strings.HasSuffix(symptom, ": "+string(wire.KindTooLarge)) || strings.HasSuffix(symptom, ": "+string(wire.KindUnread)))
}

// leaves reports whether what the last read-back shows follows from what a check has found.
// A record under another identifier is not there under its own, and an insert that would
// have been skipped creates what is lost.
func leaves(found, symptom string) bool {
	switch symptom {
	case lostSymptom:
		return found == "under another identifier"
	case "skipped value":
		return found == lostSymptom
	case "still there":
		return found == "still there after its delete"
	}
	return false
}

// disturbed are the checks about calls that disturb each other. Where one of them
// has failed, what fails beside other calls and not alone follows from it.
var disturbed = []string{"PAR-001", "PAR-002", "PAR-003", "PAR-005", "STA-003", "SEM-010", "SEM-017"}

// foldLate folds what can be seen only when all results are there.
func (sched *scheduler) foldLate() {
	sched.foldMoved()
	sched.foldFields()
	sched.foldUnreadable()
	sched.foldQuotes()
	sched.foldLost()
	by := sched.disturbing()
	if len(by) == 0 {
		by = sched.mostUnsteady()
	}
	if len(by) == 0 {
		return
	}
	for _, c := range sched.checks {
		r := sched.results[c.ID]
		if r != nil && r.unsteady && !slices.Contains(by, c.ID) {
			sched.replace(c, r, by)
		}
	}
}

// disturbing are the checks that have found calls which disturb each other.
func (sched *scheduler) disturbing() (by []string) {
	for _, id := range disturbed {
		if r := sched.results[id]; r != nil && (r.Status == conformance.Fail || r.Status == conformance.Warn) {
			by = append(by, id)
		}
	}
	return by
}

// foldMoved gives findings whose cause is about the rule of another check to that check.
// One about how records are kept, on which this check builds, says it itself.
func (sched *scheduler) foldMoved() {
	for _, c := range sched.checks {
		r := sched.results[c.ID]
		if r == nil || c.Own || r.Status != conformance.Fail && r.Status != conformance.Flaky || len(r.marks) == 0 || r.marks[0].rule == "" || r.marks[0].rule == c.ID ||
			slices.ContainsFunc(r.marks, func(m mark) bool { return m.rule != r.marks[0].rule }) {
			continue
		}
		i := slices.IndexFunc(sched.checks, func(o *conformance.Check) bool { return o.ID == r.marks[0].rule })
		if i < 0 || sched.buildsOnKept(sched.checks[i], c) {
			continue
		}
		to := sched.checks[i]
		for _, o := range sched.checks { // what to builds on has found the same
			if n := sched.results[o.ID]; n != nil && (n.Status == conformance.Fail || n.Status == conformance.Flaky) && len(n.marks) > 0 && n.marks[0].rule == to.ID && sched.buildsOnKept(to, o) {
				to = o
				break
			}
		}
		if was := sched.results[to.ID]; was == nil || was.Status != conformance.Fail && was.Status != conformance.Flaky {
			moved := *r
			moved.CheckResult = newResult(to, r.Status, to.Reason).CheckResult
			moved.Gating, moved.Attempts, moved.Findings, moved.Symptoms = to.Gates(sched.opts.Profile), r.Attempts, slices.Clone(r.Findings), r.Symptoms
			for k := range moved.Findings {
				moved.Findings[k].Rule = to.Title
			}
			sched.opts.Waive(to, &moved.CheckResult)
			sched.results[to.ID] = &moved
		}
		sched.replace(c, r, []string{to.ID})
		for _, other := range sched.results {
			if slices.Equal(other.BlockedBy, []string{c.ID}) {
				other.BlockedBy, other.Reason = []string{to.ID}, "blocked by "+to.ID
			}
		}
	}
}

// buildsOnKept reports whether a check builds on another one about how records are kept.
func (sched *scheduler) buildsOnKept(c, on *conformance.Check) bool {
	area, _, _ := strings.Cut(on.ID, "-")
	return slices.Contains([]string{"SEM", "DUR", "STA", "PAR"}, area) && slices.Contains(sched.suite.needs(c), on.ID)
}

// fewUnsteady is how many checks may fail beside other calls and pass alone before
// that is one defect, whichever rules they are about.
const fewUnsteady = 3

// mostUnsteady is the check that speaks for many unsteady ones: one about calls and
// sync runs that are independent of each other, else the first.
func (sched *scheduler) mostUnsteady() []string {
	var found []string
	for _, c := range sched.checks {
		if r := sched.results[c.ID]; r != nil && r.unsteady && r.Gating {
			found = append(found, c.ID)
		}
	}
	if len(found) <= fewUnsteady {
		return nil
	}
	for _, id := range []string{"STA-002", "STA-006", "DUR-002"} {
		if r := sched.results[id]; r != nil && (r.Status == conformance.Fail || slices.Contains(found, id)) {
			return []string{id}
		}
	}
	return found[:1]
}

// replace folds a result under others.
func (sched *scheduler) replace(c *conformance.Check, r *Result, by []string) {
	folded := blocked(c, by)
	folded.Gating, folded.Attempts, folded.DurationMS, folded.original = r.Gating, r.Attempts, r.DurationMS, r
	if len(r.Findings) > 0 {
		folded.Notes = []string{"seen here as well: " + r.Findings[0].Actual}
	}
	sched.results[c.ID] = folded
}

// foldFields decides between "this type is stored wrongly" and "this field is": a
// field that has no value, or fails in two checks about different types of values,
// is broken whatever is written into it (FLD-011); otherwise the check about the
// type says it better.
func (sched *scheduler) foldFields() {
	i := slices.IndexFunc(sched.checks, func(c *conformance.Check) bool { return c.ID == "FLD-011" })
	if i < 0 || sched.results["FLD-011"] == nil {
		return
	}
	field := sched.results["FLD-011"]
	if field.original != nil {
		field = field.original
	}
	if field.Status != conformance.Fail && field.Status != conformance.Warn || !aboutValues(field) {
		return
	}
	var same []*conformance.Check
	whole := false
	for _, c := range sched.checks {
		r := sched.results[c.ID]
		if r == nil || c.ID == "FLD-011" || !aboutValues(r) || r.Status != conformance.Fail && r.Status != conformance.Warn && r.Status != conformance.Flaky {
			continue
		}
		if !slices.ContainsFunc(r.Symptoms, func(s string) bool { return !slices.Contains(field.Symptoms, s) }) {
			if !slices.Contains(ofTheRun, c.ID) { // what they see is what others have written
				same = append(same, c)
			}
			whole = whole || slices.ContainsFunc(r.Symptoms, func(s string) bool { return strings.HasPrefix(s, "no value of ") })
		}
	}
	if !whole && len(same) < 2 {
		return
	}
	sched.results["FLD-011"] = field
	for _, c := range same {
		sched.replace(c, sched.results[c.ID], []string{"FLD-011"})
	}
}

// aboutValues reports whether all that was found are values of fields.
func aboutValues(r *Result) bool {
	return len(r.Symptoms) > 0 && !slices.ContainsFunc(r.Symptoms, func(s string) bool {
		return !strings.HasPrefix(s, "value of ") && !strings.HasPrefix(s, "no value of ")
	})
}

// foldUnreadable folds warnings under RPC-001 where each reply that they show has a body
// that is no JSON, which is all that is known of it.
func (sched *scheduler) foldUnreadable() {
	if r := sched.results["RPC-001"]; r == nil || r.Status != conformance.Fail {
		return
	}
	by := []string{"RPC-001"}
	for _, c := range sched.checks {
		r := sched.results[c.ID]
		if r == nil || r.Status != conformance.Warn || c.Own || c.ID == "RPC-001" || !unreadable(r) {
			continue
		}
		sched.replace(c, r, by)
		for _, other := range sched.results {
			if slices.Equal(other.BlockedBy, []string{c.ID}) {
				other.BlockedBy, other.Reason = by, sched.results[c.ID].Reason
			}
		}
	}
}

// ofTheRun are the checks that look at what all others have left.
var ofTheRun = []string{"DUR-006", "DUR-007", "DUR-008"}

// foldLost keeps one finding for a record that is lost: a check that gates says it, and one
// about the run as a whole says it of records that no other check is about.
func (sched *scheduler) foldLost() {
	for _, id := range ofTheRun {
		i := slices.IndexFunc(sched.checks, func(c *conformance.Check) bool { return c.ID == id })
		r := sched.results[id]
		if i < 0 || r == nil || r.Status != conformance.Fail {
			continue
		}
		by := sched.sameLoss(id, r)
		if len(by) == 0 { // a warning explains no loss
			by = slices.DeleteFunc(sched.disturbing(), func(id string) bool { return sched.results[id].Status != conformance.Fail })
		}
		if len(by) > 0 {
			sched.replace(sched.checks[i], r, by)
			continue
		}
		for _, c := range sched.checks {
			if o := sched.results[c.ID]; o != nil && o.Status == conformance.Warn && onlyLost(o) && slices.Contains(r.Symptoms, lostSymptom) {
				for i := range r.Findings { // the check about such records knows more
					if f := &r.Findings[i]; i < len(r.marks) && r.marks[i].symptom == lostSymptom && !f.Observed {
						f.Cause, f.Fix, f.Observed = o.Findings[0].Cause, o.Findings[0].Fix, o.Findings[0].Observed
					}
				}
				sched.replace(c, o, []string{id})
			}
		}
	}
}

// lostSymptom is that of records which were acknowledged and are not there.
const lostSymptom = "not there"

// onlyLost reports whether all that was found are records that are not there.
func onlyLost(r *Result) bool {
	return len(r.Symptoms) > 0 && !slices.ContainsFunc(r.Symptoms, func(s string) bool { return s != lostSymptom })
}

// sameLoss are the failed checks that show all symptoms of r. An endpoint that went away
// may have lost what it held.
func (sched *scheduler) sameLoss(id string, r *Result) (by []string) {
	for _, symptom := range r.Symptoms {
		i := slices.IndexFunc(sched.checks, func(c *conformance.Check) bool {
			o := sched.results[c.ID]
			return o != nil && c.ID != id && (o.Status == conformance.Fail || o.Status == conformance.Flaky || o.Status == conformance.Waived) && !slices.Contains(ofTheRun, c.ID) &&
				(slices.Contains(o.Symptoms, symptom) || follows(c.ID, symptom) || slices.ContainsFunc(o.Symptoms, func(s string) bool { return leaves(s, symptom) }))
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

// unreadable reports whether all that was found are bodies without JSON.
func unreadable(r *Result) bool {
	return len(r.Symptoms) > 0 && !slices.ContainsFunc(r.Symptoms, func(s string) bool { return !strings.HasSuffix(s, " without JSON") }) &&
		!slices.ContainsFunc(r.Findings, func(f conformance.Finding) bool {
			return len(f.Exchanges) == 0 || slices.ContainsFunc(f.Exchanges, func(x conformance.Exchange) bool {
				return x.Response == nil || x.Response.Body.Text == "" && x.Response.Body.Base64 == ""
			})
		})
}
