package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// What became of single records: good and bad ones in one batch, skips, and the
// same records sent again, alone or in parallel (spec 7.2.4).

func (w *world) isBad(r *record) bool { return slices.Contains(w.bad, r) }

// perRecord tells that the batch with the bad record was answered record by
// record; a batch that fails as a whole is RES-018's.
func (w *world) perRecord() (*batch, error) {
	b := w.latest[0]
	if !b.answered() {
		return nil, inconclusive("", "the batch failed as a whole because of one bad record: %s", b.reply.short())
	}
	return b, nil
}

func (w *world) goodNotFailed() error {
	b, err := w.perRecord()
	if err != nil {
		return err
	}
	for _, r := range b.records {
		if !w.isBad(r) && b.failed(r) {
			w.brokenFor(b.operation, "success for the good record "+string(r.key), b.why(r), b.reply)
		}
	}
	return w.held()
}

func (w *world) badNotAcknowledged() error {
	refusedAlone := false
	for _, b := range w.batches {
		refusedAlone = refusedAlone || len(b.records) == 1 && w.isBad(b.records[0]) && b.refusalOf(b.records[0]) != ""
	}
	for _, r := range w.bad {
		b := w.batchWith(r)
		if b == nil || !b.succeeded(r) {
			continue
		}
		if slices.ContainsFunc(b.records, func(o *record) bool { return !w.isBad(o) && b.failed(o) }) {
			continue // statuses that were mixed up are RES-010's
		}
		if w.badSure || refusedAlone {
			expected := "a failure for the bad record " + string(r.key)
			if refusedAlone && len(b.records) > 1 {
				expected += ", which is refused when it comes alone"
			}
			w.brokenAs(symptomMissing, b.operation, expected, b.why(r), b.reply)
			continue
		}
		if w.readback == nil {
			return inconclusive("readback", "a record with null in a required field was accepted: only a read-back shows whether it is stored")
		}
		seen, err := w.observe([]*record{r})
		if err != nil {
			return err
		}
		if seen[keyText(r.key)].count == 0 {
			w.brokenAs(symptomMissing, b.operation, "a failure for "+string(r.key)+", which is not stored", b.why(r), b.reply)
		}
	}
	return w.held()
}

// batchWith is the batch that carried this very record, nil when none did.
func (w *world) batchWith(r *record) *batch {
	for _, b := range w.batches {
		if slices.Contains(b.records, r) {
			return b
		}
	}
	return nil
}

// statusesInPlace: a success at the bad record and a failure at a good one are
// the mark of statuses that were mixed up.
func (w *world) statusesInPlace() error {
	b, err := w.perRecord()
	if err != nil {
		return err
	}
	for _, bad := range w.bad {
		for _, r := range b.records {
			if b.succeeded(bad) && !w.isBad(r) && b.failed(r) {
				w.brokenAs(symptomMissing, b.operation, "the failure at "+string(bad.key), fmt.Sprintf("it stands at %s, and %s is acknowledged", r.key, bad.key), b.reply)
			}
		}
	}
	if !slices.ContainsFunc(b.records, b.failed) {
		return inconclusive("fixtures", "no record of the batch failed: describe a bad record under fixtures")
	}
	return w.held()
}

// skipClass is how one result reports a record that does not qualify.
func skipClass(r result) string {
	switch {
	case r.success == nil:
		return "no status"
	case !*r.success:
		return SkipFailure
	case r.text() != "":
		return SkipSuccessWithMessage
	}
	return SkipSuccess
}

// oneSkipConvention looks at updates of absent records and at repeated inserts.
func (w *world) oneSkipConvention() error {
	first := map[string]string{}
	inserted, skips := map[place]bool{}, 0
	for _, b := range w.batches {
		for _, r := range b.records {
			skip := b.operation == rpc.OperationUpdate || b.operation == rpc.OperationInsert && inserted[r.place()]
			inserted[r.place()] = inserted[r.place()] || b.operation == rpc.OperationInsert && b.succeeded(r)
			if !skip || len(b.of(r)) == 0 {
				continue
			}
			skips++
			class := skipClass(b.of(r)[0])
			want := orDefault(w.opts.SkipConvention, first[b.operation])
			if want == "" {
				first[b.operation] = class
				w.note("%s reports a skip as %s", b.operation, class)
				continue
			}
			if class != want {
				w.brokenFor(b.operation, fmt.Sprintf("every skip of %s as %s", b.operation, want), fmt.Sprintf("%s is reported as %s: %s", r.key, class, b.why(r)), b.reply)
			}
		}
	}
	if skips == 0 {
		return inconclusive("", "no record was skipped")
	}
	if !slices.ContainsFunc(w.batches, func(b *batch) bool { return slices.ContainsFunc(b.records, b.succeeded) }) {
		return w.noneAccepted() // nothing tells a skip from a refusal
	}
	return w.held()
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

func (w *world) sameOutcomes(of string) error {
	if of == "record" {
		return w.sameOutcome()
	}
	return w.sameInParallel()
}

// sameOutcome compares the latest sending with the one before.
func (w *world) sameOutcome() error {
	if len(w.waves) < 2 {
		return harness("the records were sent only once")
	}
	before := map[place]string{}
	for _, b := range w.waves[len(w.waves)-2] {
		for _, r := range b.records {
			before[r.place()] = b.outcomeOf(r)
		}
	}
	for _, b := range w.latest {
		for _, r := range b.records {
			was, is := before[r.place()], b.outcomeOf(r)
			if was == unclear || is == unclear {
				continue // RES-002 judges that
			}
			if was != is {
				w.brokenFor(b.operation, was+" for "+string(r.key)+", as in its batch", is+" when it is sent alone: "+b.why(r), b.reply)
			}
		}
	}
	return w.held()
}

// sameInParallel compares the batches of each operation alone and in parallel.
func (w *world) sameInParallel() error {
	alone := map[string]string{}
	for _, b := range w.waves[0] {
		alone[b.operation] = b.outcomes()
	}
	for _, b := range w.latest {
		if was, is := alone[b.operation], b.outcomes(); was != is {
			symptom := ""
			if strings.Contains(is, unclear) {
				symptom = symptomNoResult
			}
			w.brokenAs(symptom, b.operation, was+", as when it runs alone", is+": "+b.reply.short(), b.reply)
		}
	}
	return w.held()
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
