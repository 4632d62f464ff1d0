package destination

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// What became of single records: good and bad ones in one batch, skips, and the
// same records sent again, alone or in parallel (spec 7.2.4).

func (sc *scenario) isBad(r *record) bool { return slices.Contains(sc.bad, r) }

// perRecord reports whether the batch with the bad record was answered record by
// record; a batch that fails as a whole is RES-018's.
func (sc *scenario) perRecord() (*batch, error) {
	b := sc.latest[0]
	if !b.answered() {
		return nil, inconclusive("", "the batch failed as a whole because of one bad record: %s", b.reply.Short())
	}
	return b, nil
}

func (sc *scenario) goodNotFailed() error {
	b, err := sc.perRecord()
	if err != nil {
		return err
	}
	for _, r := range b.records {
		if !sc.isBad(r) && b.failed(r) {
			from := len(sc.All())
			sc.brokenFor(b.operation, "success for the good record "+string(r.key), b.whyOf(r), b.reply)
			sc.because(from, b.misplaced(sc.bad))
		}
	}
	return sc.Held()
}

func (sc *scenario) badNotAcknowledged() error {
	refusedAlone := false
	for _, b := range sc.batches {
		refusedAlone = refusedAlone || len(b.records) == 1 && sc.isBad(b.records[0]) && b.refused(b.records[0])
	}
	for _, r := range sc.bad {
		b := sc.batchWith(r)
		if b == nil || !b.succeeded(r) {
			continue
		}
		if slices.ContainsFunc(b.records, func(o *record) bool { return !sc.isBad(o) && b.failed(o) }) {
			continue // statuses that were mixed up are RES-010's
		}
		if sc.badSure || refusedAlone {
			expected := "a failure for the bad record " + string(r.key)
			if refusedAlone && len(b.records) > 1 {
				expected += ", which is refused when it comes alone"
			}
			from := len(sc.All())
			sc.brokenAs(symptomMissing, b.operation, expected, b.whyOf(r), b.reply)
			if refusedAlone && len(b.records) > 1 {
				sc.because(from, cause{
					text: "a record that is refused alone is acknowledged among good ones: each record gets the status of the batch, or the error of one is passed over.",
					fix:  "let each record have the result of its own write.",
				})
			}
			continue
		}
		if sc.readback == nil {
			return inconclusive("readback", "a record with null in a required field was accepted: only a read-back shows whether it is stored")
		}
		seen, err := sc.observe([]*record{r})
		if err != nil {
			return err
		}
		if seen[exchange.KeyText(r.key)].count == 0 {
			sc.brokenAs(symptomMissing, b.operation, "a failure for "+string(r.key)+", which is not stored", b.whyOf(r), b.reply)
		}
	}
	return sc.Held()
}

// batchWith is the batch that carried this very record, nil when none did.
func (sc *scenario) batchWith(r *record) *batch {
	for _, b := range sc.batches {
		if slices.Contains(b.records, r) {
			return b
		}
	}
	return nil
}

// statusesInPlace: a success at the bad record and a failure at a good one are
// the mark of statuses that were mixed up.
func (sc *scenario) statusesInPlace() error {
	b, err := sc.perRecord()
	if err != nil {
		return err
	}
	for _, bad := range sc.bad {
		for _, r := range b.records {
			if b.succeeded(bad) && !sc.isBad(r) && b.failed(r) {
				from := len(sc.All())
				sc.brokenAs(symptomMissing, b.operation, "the failure at "+string(bad.key), fmt.Sprintf("it stands at %s, and %s is acknowledged", r.key, bad.key), b.reply)
				sc.because(from, b.misplaced(sc.bad))
			}
		}
	}
	if !slices.ContainsFunc(b.records, b.failed) {
		return inconclusive("fixtures", "no record of the batch failed: describe a bad record under fixtures")
	}
	return sc.Held()
}

// misplaced is the cause of failures that stand at other records than at those which have
// failed: where they are those of the sorted records, the results were matched by position.
func (b *batch) misplaced(bad []*record) cause {
	sorted := slices.SortedStableFunc(slices.Values(b.records), func(x, y *record) int {
		return cmp.Compare(exchange.KeyText(x.key), exchange.KeyText(y.key))
	})
	failures := 0
	for i, r := range sorted {
		if b.failed(b.records[i]) {
			failures++
		}
		if b.failed(b.records[i]) != slices.Contains(bad, r) {
			return cause{}
		}
	}
	if failures == 0 || failures == len(b.records) {
		return cause{}
	}
	return cause{
		text: "the failures stand where the bad records are when the batch is sorted by its identifiers: the records were put into another order, and the results are matched by position.",
		fix:  "keep the identifier next to each result, and match by it.",
	}
}

// skipClass is how one result reports a record that does not qualify.
func skipClass(r result) string {
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

// oneSkipConvention looks at updates of absent records and at repeated inserts.
func (sc *scenario) oneSkipConvention() error {
	first := map[string]string{}
	inserted, skips := map[place]bool{}, 0
	for _, b := range sc.batches {
		for _, r := range b.records {
			skip := b.operation == rpc.OperationUpdate || b.operation == rpc.OperationInsert && inserted[r.place()]
			inserted[r.place()] = inserted[r.place()] || b.operation == rpc.OperationInsert && b.succeeded(r)
			if !skip || len(b.resultsOf(r)) == 0 {
				continue
			}
			skips++
			class := skipClass(b.resultsOf(r)[0])
			want := cmp.Or(sc.opts.SkipConvention, first[b.operation])
			if want == "" {
				first[b.operation] = class
				sc.Note("%s reports a skip as %s", b.operation, class)
				continue
			}
			if class != want {
				sc.brokenFor(b.operation, fmt.Sprintf("every skip of %s as %s", b.operation, want), fmt.Sprintf("%s is reported as %s: %s", r.key, class, b.whyOf(r)), b.reply)
			}
		}
	}
	if skips == 0 {
		return inconclusive("", "no record was skipped")
	}
	if !slices.ContainsFunc(sc.batches, func(b *batch) bool { return slices.ContainsFunc(b.records, b.succeeded) }) {
		return sc.noneAccepted() // nothing tells a skip from a refusal
	}
	return sc.Held()
}

// outcomeOf is success, failure or what else became of a record.
func (b *batch) outcomeOf(r *record) string {
	switch {
	case b.succeeded(r):
		return "success"
	case b.failed(r):
		return "failure"
	case !b.answered():
		return "an error for the batch"
	}
	return unclear
}

// unclear is the outcome of a record without a result, or with two that disagree.
const unclear = "no clear result"

func (sc *scenario) sameOutcomes(of string) error {
	switch of {
	case "record":
		return sc.sameOutcome()
	case "repeated change":
		return sc.noRepeatRefused()
	}
	return sc.sameInParallel()
}

// sameOutcome compares the latest sending with the one before.
func (sc *scenario) sameOutcome() error {
	if len(sc.waves) < 2 {
		return harness("the records were sent only once")
	}
	before, places := map[place]string{}, map[place]string{}
	for _, b := range sc.waves[len(sc.waves)-2] {
		for i, r := range b.records {
			before[r.place()], places[r.place()] = b.outcomeOf(r), fmt.Sprintf("%d of %d", i+1, len(b.records))
		}
	}
	var refused []string
	for _, b := range sc.latest {
		for _, r := range b.records {
			was, is := before[r.place()], b.outcomeOf(r)
			if was == unclear || is == unclear {
				continue // RES-002 judges that
			}
			if was == is {
				continue
			}
			if sc.brokenAs(cmp.Or(b.reply.Symptom(), symptomPosition), b.operation, was+" for "+string(r.key)+", as in its batch", is+" when it is sent alone: "+b.whyOf(r), b.reply); is == "success" {
				refused = append(refused, places[r.place()])
			}
		}
	}
	if len(refused) > 0 {
		sc.explainPosition("number " + quantity.List(refused))
	}
	return sc.Held()
}

const symptomPosition = "another outcome alone"

// explainPosition gives the cause of refusals in a batch of records that are taken alone.
func (sc *scenario) explainPosition(which string) {
	if slices.ContainsFunc(sc.All(), func(f engine.Finding) bool { return f.Quote != nil && f.Quote.Cause }) {
		return // the endpoint says it
	}
	sc.ExplainAs(func(s string) bool { return s == symptomPosition },
		"records are refused for their position in the batch, or for the records next to them, and not for their values alone: "+which+". The list is changed while it is gone through, or one failure is passed on to others.",
		"go through all records of the batch, and let each have the result of its own write.", false)
}

// sameInParallel compares the batches of each operation alone and in parallel.
func (sc *scenario) sameInParallel() error {
	alone := map[string]string{}
	for _, b := range sc.waves[0] {
		alone[b.operation] = b.outcomes()
	}
	for _, b := range sc.latest {
		if was, is := alone[b.operation], b.outcomes(); was != is {
			symptom := ""
			if strings.Contains(is, unclear) {
				symptom = rules.SymptomNoResult
			}
			sc.brokenAs(symptom, b.operation, was+", as when it runs alone", is+": "+b.reply.Short(), b.reply)
		}
	}
	return sc.Held()
}

func (b *batch) outcomes() string {
	var out []string
	for _, r := range b.records {
		if o := b.outcomeOf(r); !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " and ")
}
