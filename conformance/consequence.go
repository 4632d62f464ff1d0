package conformance

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/destkit/destkit/internal/quantity"
)

// Consequence is what a failed check means for users of the destination.
type Consequence string

// The consequences, the worst first.
const (
	RecordsWrong   Consequence = "records lost or wrong"
	EveryCallFails Consequence = "every call fails"
	SomeCallsFail  Consequence = "some calls fail"
	Recommendation Consequence = "recommendations not followed"
)

// aboutStored reports whether a kind of evidence is about stored records.
func aboutStored(kind Evidence) bool {
	return slices.Contains([]Evidence{SeenStored, SeenChanged, SeenKept, SeenDeleted, SeenAbsent}, kind)
}

// wrongRecords are further checks whose failure loses a record or changes it.
var wrongRecords = []string{"RES-009", "ERR-001", "PAR-005"}

// wrongSymptoms are those of such a record, whichever check has seen it.
var wrongSymptoms = regexp.MustCompile(`^(not there|still there|under another identifier|refused and there|update of a deleted|another record|gone elsewhere|kept id|ignored|copies|changed|statement|((old|skipped|deleted|no) )?value\b)`)

// eachCall are the checks about every call, eachRun those about a call that every run makes.
var (
	eachCall = []string{
		"HTTP-001", "HTTP-003", "HTTP-006", "AUTH-001", "TLS-001", "TLS-002", "TLS-003", "TLS-004", "TLS-005",
		"RPC-001", "RPC-002", "RPC-003", "RPC-004", "RPC-005", "RPC-006", "RPC-014",
	}
	eachRun = []string{"CON-001", "CON-004", "CON-005", "OBJ-001", "OBJ-002", "SPD-001", "SPD-002", "RES-001"}
)

// consequenceOf is "" for a check that has not failed. known is nil for one that no catalogue has.
func consequenceOf(r *CheckResult, known *Check) Consequence {
	unnamed := len(r.Symptoms) == 0 || slices.Contains(r.Symptoms, "")
	stored := known != nil && slices.ContainsFunc(known.Evidence, aboutStored)
	switch {
	case !r.failed():
		return ""
	case r.Level != Must:
		return Recommendation
	case slices.Contains(wrongRecords, r.ID), slices.ContainsFunc(r.Symptoms, wrongSymptoms.MatchString), unnamed && stored:
		return RecordsWrong
	case slices.Contains(eachRun, r.ID), slices.Contains(eachCall, r.ID) && stopsRuns(r):
		return EveryCallFails
	}
	return SomeCallsFail
}

func (r *CheckResult) failed() bool { return r.Status == Fail || r.Status == Flaky || r.Status == Warn }

// stopsRuns reports whether findings are about a call of every run, about several methods or about all.
func stopsRuns(r *CheckResult) bool {
	methods := map[string]bool{}
	for _, f := range r.Findings {
		if len(f.Exchanges) == 0 {
			return true
		}
		for _, x := range f.Exchanges {
			switch x.RPC {
			case "test_connection", "get_sync_speed", "list_objects":
				return true
			case "supported_operations", "list_fields", "sync_batch":
				methods[x.RPC] = true
			}
		}
	}
	return len(methods) > 1
}

func (r *Report) weigh(cat *Catalogue) {
	if r.Suite != SuiteDestination {
		return
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		known, _ := cat.Check(c.ID)
		c.Consequence = consequenceOf(c, known)
	}
}

func (r *Report) worst() Consequence {
	for _, consequence := range []Consequence{RecordsWrong, EveryCallFails, SomeCallsFail, Recommendation} {
		if slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Consequence == consequence }) {
			return consequence
		}
	}
	return ""
}

// fixFirst names the check to mend first, where there is a choice: of those with the worst
// consequence the one that most others wait for.
func (r *Report) fixFirst() string {
	waits := map[string]int{}
	for _, c := range r.Checks {
		for _, by := range c.BlockedBy {
			waits[by]++
		}
	}
	worst, id, most := r.worst(), "", -1
	for _, c := range r.Checks { // in the order of the catalogue, so that the same report has one text
		if c.failed() && c.Consequence == worst && waits[c.ID] > most {
			id, most = c.ID, waits[c.ID]
		}
	}
	switch {
	case most > 0:
		return fmt.Sprintf("fix %s first: %s %s on it", id, quantity.Count(most, "check"), quantity.Verb(most, "builds", "build"))
	case id != "" && len(r.Failed) > 1:
		return "fix " + id + " first"
	}
	return ""
}
