package write

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
)

// Misplaced is the cause where the failures are those of the sorted records: results were matched by position.
func (b *Batch) Misplaced(bad []*Record) Cause {
	sorted := slices.SortedStableFunc(slices.Values(b.Records), func(x, y *Record) int {
		return cmp.Compare(exchange.KeyText(x.Key), exchange.KeyText(y.Key))
	})
	failures, inOrder := 0, true
	for i, r := range sorted {
		inOrder = inOrder && b.Failed(b.Records[i]) == slices.Contains(bad, r)
		if b.Failed(b.Records[i]) {
			failures++
		}
	}
	some := slices.ContainsFunc(bad, b.Succeeded) && slices.ContainsFunc(bad, b.Failed)
	switch {
	case failures == 0 || failures == len(b.Records) || !inOrder && (failures != len(bad) || !some):
		return Cause{}
	case !inOrder:
		return Cause{
			Text: "there are as many failures as records that must fail, and not all are at these: results are put together with another list than that of the records, or in another order.",
			Fix:  "build the result where the record is written.",
		}
	}
	return Cause{
		Text: "the failures are where the bad records would be when the batch is sorted by its identifiers: the records were put into another order, and the results are matched by position.",
		Fix:  "keep the identifier next to each result, and match by it.",
	}
}

// SkipClass is how one result reports a record that does not qualify.
func SkipClass(r exchange.Result) string {
	switch {
	case r.Success == nil:
		return "no status"
	case !*r.Success:
		return conformance.SkipFailure
	case r.Text() != "":
		return conformance.SkipSuccessWithMessage
	}
	return conformance.SkipSuccess
}

// Skipped reports whether a record is reported as skipped, by the declared convention or as a failure.
func (sc *Scenario) Skipped(b *Batch, r *Record) bool {
	all := b.ResultsOf(r)
	if len(all) > 0 && sc.Opts.SkipConvention == conformance.SkipSuccessWithMessage {
		return SkipClass(all[0]) == conformance.SkipSuccessWithMessage
	}
	return b.Failed(r)
}

// Unclear is the outcome of a record without a result, or with two that disagree.
const Unclear = "no clear result"

// OutcomeOf is success, failure or what else became of a record.
func (b *Batch) OutcomeOf(r *Record) string {
	switch {
	case b.Succeeded(r):
		return "success"
	case b.Failed(r):
		return "failure"
	case !b.Answered():
		return "an error for the batch"
	}
	return Unclear
}

// Outcomes are those of all records, each once.
func (b *Batch) Outcomes() string {
	var out []string
	for _, r := range b.Records {
		out = append(out, b.OutcomeOf(r))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " and ")
}

// SymptomPosition is that of records that are taken alone, and not in their batch.
const SymptomPosition = "another outcome alone"

// ExplainPosition gives the cause of refusals in a batch of records that are taken alone.
func (sc *Scenario) ExplainPosition(which string) {
	if sc.Explained() {
		return
	}
	sc.Explain(func(s string) bool { return s == SymptomPosition },
		"records are refused for their position in the batch, or for the records next to them, and not for their values alone: "+which+". The list is changed while it is gone through, or one failure is passed on to others.",
		"go through all records of the batch, and let each have the result of its own write.", false)
}

// Explained reports whether the endpoint itself names the cause of a finding.
func (sc *Scenario) Explained() bool {
	return slices.ContainsFunc(sc.All(), func(f engine.Finding) bool { return f.Quote != nil && f.Quote.Cause })
}

var digits = regexp.MustCompile(`[0-9]+`)

// SkipWords is the message of a skip without the parts of one record alone.
func SkipWords(b *Batch, r *Record) string {
	var words []string
	for _, res := range b.ResultsOf(r) {
		text := res.Text()
		if key := exchange.KeyText(r.Key); len(key) >= 4 { // a shorter one may be part of a word
			text = strings.ReplaceAll(text, key, "")
		}
		words = append(words, digits.ReplaceAllString(text, "#"))
	}
	return strings.Join(words, " ")
}

// Difference is one deviation of the store from what was acknowledged.
type Difference struct {
	Record                    *Record
	Field                     string
	Expected, Actual, Symptom string
	Class                     values.Class
	Pair                      values.Pair
	Cause, Fix                string // where the read-back hook may be wrong
}

// Cause is the result of a diagnosis; the zero value adds nothing to the text of the check.
type Cause struct {
	Text     string
	Fix      string // "": that of the check
	Observed bool
	Rule     string // the check that it is about, where that is another one
}

// Of is the cause as one about the rule of another check.
func (c Cause) Of(rule string) Cause {
	c.Rule = rule
	return c
}
