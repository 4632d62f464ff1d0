package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// The last read-back checks the ledger of the run before the clean-up: only this shows a record of
// one check that another check's batch has changed.
var keptSentences = sentences{
	`^every acknowledged record of the run is as it was acknowledged$`: func(sc *Scenario) error {
		return sc.heldByRun(conformance.SeenKept, func(s model.State) bool { return s.Exists }, sc.noneAccepted())
	},
	`^no refused record of the run is there$`: func(sc *Scenario) error {
		return sc.heldByRun(conformance.SeenAbsent, func(s model.State) bool { return !s.Exists && !s.Created },
			line.NotApplicable("no record was refused, so that none can appear"))
	},
	`^no deleted record of the run is there$`: func(sc *Scenario) error {
		if err := sc.updatesSkipped(); err != nil {
			return err
		}
		return sc.heldByRun(conformance.SeenDeleted, func(s model.State) bool { return !s.Exists && s.Created }, sc.noneAccepted())
	},
	`^no deleted value is there again, where a read-back shows it$`: (*Scenario).noDeletedValues,
}

// updatesSkipped: where updates of absent records are reported as skipped, those of deleted ones are, too.
func (sc *Scenario) updatesSkipped() error {
	if !sc.Ledger.ShowsSkips(sc.Object.APIName) {
		return nil
	}
	for b, r := range write.Each(sc.Latest) {
		skipped := func(o *write.Record) bool { return sc.Skipped(b, o) } // one beside it: this is about statuses
		if b.Operation != rpc.OperationUpdate || !b.Succeeded(r) || slices.ContainsFunc(b.Records, skipped) {
			continue
		}
		seen, err := sc.Observe([]*write.Record{r})
		if err != nil {
			return err
		}
		if len(seen) == 0 {
			sc.BrokenAs(symptomRevived, b.Operation, "the update of the deleted record "+string(r.Key)+" skipped, as that of any other that is absent", b.WhyOf(r), b.Reply)
		}
	}
	sc.Explain(func(symptom string) bool { return symptom == symptomRevived }, wire.EitherCause(
		"the delete marks the row (a soft delete) and update does not leave deleted rows out", "a cache of known keys still has the record", "a look into the destination"), "", false)
	return nil
}

const symptomRevived = "update of a deleted record"

// noDeletedValues: a record that is created again with fewer fields has none of its old values.
func (sc *Scenario) noDeletedValues() error {
	due := write.RecordsOf(sc.expectations(written))
	if sc.Readback == nil || len(due) == 0 {
		return nil
	}
	keys := lists.Where(sc.Ledger.Settled(sc.Object.APIName), func(k model.Key) bool {
		return slices.ContainsFunc(due, func(r *write.Record) bool { return r.Place() == k.Place })
	})
	broken, err := sc.contradictions(keys, keys, map[model.Place]model.Sight{})
	if err != nil {
		return err
	}
	sc.reportBroken(lists.Where(broken, func(c model.Contradiction) bool { return c.Kind == model.Returned }), len(due))
	return sc.Held()
}

// heldByRun reads back the keys of the object that have such a state; none is the outcome without any.
func (sc *Scenario) heldByRun(kind conformance.Evidence, which func(model.State) bool, none error) error {
	if err := sc.NeedReadback(); err != nil {
		return err
	}
	keys := lists.Where(sc.Ledger.Settled(sc.Object.APIName), func(k model.Key) bool { return which(k.State) })
	if len(keys) == 0 {
		return none
	}
	if err := line.Elapse(sc.Ctx, sc.Late); err != nil {
		return err
	}
	seen := map[model.Place]model.Sight{}
	broken, err := sc.contradictions(keys, keys, seen)
	deadline := time.Now().Add(sc.Opts.ReadbackWindow)
	for pause := 100 * time.Millisecond; err == nil && len(broken) > 0 && time.Now().Before(deadline); pause *= 2 {
		if err = line.Elapse(sc.Ctx, min(pause, time.Until(deadline))); err == nil {
			// A record that is right already is not read back again.
			again := lists.Where(keys, func(k model.Key) bool {
				return slices.ContainsFunc(broken, func(c model.Contradiction) bool { return c.Place == k.Place })
			})
			broken, err = sc.contradictions(keys, again, seen)
		}
	}
	if err != nil {
		return err
	}
	sc.reportBroken(broken, len(keys))
	sc.Saw(kind, len(keys)-len(broken))
	return sc.Held()
}

// contradictions are the differences of a read-back from the ledger, except for records of checks
// that have failed. ask are the keys to look at now, the others are as they were seen.
func (sc *Scenario) contradictions(keys, ask []model.Key, seen map[model.Place]model.Sight) ([]model.Contradiction, error) {
	ids := map[string][]json.RawMessage{}
	for _, k := range ask {
		ids[k.Field] = append(ids[k.Field], k.Raw)
		delete(seen, k.Place)
	}
	for field, raws := range ids {
		found, err := sc.LookUp(sc.Object.APIName, field, raws)
		if err != nil {
			return nil, err
		}
		for text, sight := range found {
			seen[model.Place{Object: sc.Object.APIName, Field: field, Key: text}] = sight
		}
	}
	broken := sc.Ledger.Judge(keys, func(p model.Place) model.Sight { return seen[p] },
		func(object, name string) (rpc.Field, bool) {
			f, declared := sc.Object.Field(name)
			return f, declared && !sc.Hides(object, name)
		})
	return slices.DeleteFunc(broken, func(c model.Contradiction) bool {
		return slices.ContainsFunc(c.Batches, func(b model.Named) bool {
			status := sc.j.Settled.of(b.Check)
			return b.Check != sc.Check().ID && (status == conformance.Fail || status == conformance.Flaky || status == conformance.Waived ||
				status == conformance.Warn && c.Kind != model.Lost && c.Kind != model.Changed && c.Kind != model.OldValue && c.Kind != model.Reverted)
		})
	}), nil
}

// reportBroken adds a finding for the first few contradictions of each kind.
func (sc *Scenario) reportBroken(broken []model.Contradiction, of int) {
	times := map[model.Kind]int{}
	for _, c := range broken {
		if times[c.Kind]++; times[c.Kind] > 2 {
			continue
		}
		last := c.Batches[len(c.Batches)-1]
		w := inWords(c, last)
		ofKind := lists.Where(broken, func(o model.Contradiction) bool { return o.Kind == c.Kind })
		records := slices.CompactFunc(ofKind, func(a, b model.Contradiction) bool { return a.Place == b.Place })
		if n := len(records); times[c.Kind] == 1 && n > 1 {
			w.actual += fmt.Sprintf("; so it is with %d of %s", n, quantity.Count(of, "record"))
		}
		shows, _ := last.Exhibit.(*exchange.Reply)
		sc.BrokenAs(w.symptom, last.Operation, w.expected, w.actual, shows)
		switch restarted := last.Restarts < sc.Ledger.Restarts(); {
		case restarted && c.Before == nil && w.why != "":
			w.why = strings.TrimSuffix(w.why, ".") + ", or the restart of the endpoint after that batch has lost it."
		case restarted && c.Before != nil && (c.Before.Count > 0) == (c.Kind != model.Returned):
			w.why = wire.EitherCause("the endpoint was restarted after that batch, and does not read all back that it had acknowledged (a file or log that is read in part, or memory)", "a later batch that does not name the record", "the batch below again, with a restart behind it,")
		}
		if w.why != "" {
			sc.Explain(func(s string) bool { return s == w.symptom }, w.why, "", false)
		}
	}
}

// wording describes a contradiction: {key}, {field}, {want} and {got} are its parts, {other} is the
// owner of the value, {by} the last batch.
type wording struct{ expected, actual, symptom, why string }

// ofRecords are those about the record itself, ofFields those about a value. why is "" where the
// check has its own candidates.
var (
	ofRecords = map[model.Kind]wording{
		model.Lost: {"the record {key} there: {by}", "it is not there", write.SymptomMissing,
			"the write is dropped without a word, or what was written is lost later."},
		model.Copied:   {"one record {key}: {by}", "there is more than one", symptomCopies, "the match runs on another field, or two writers race."},
		model.Appeared: {"no record {key}: {by}", "it is there", "refused and there", ""},
		model.Returned: {"no record {key}: it was deleted, and {by}", "it is there again", "still there", ""},
	}
	ofFields = map[model.Kind]wording{
		model.Changed: {"{field} of {key} as it was read back after its last batch: {want}", "it is {got}, though no later batch named it", "changed", reached},
		model.Mixed: {"{field} of {key} stored as {want}: {by}", "it is {got}, the value of {other}", "value of {field}",
			"records share a variable or a row of their batch."},
		model.Emptied: {"{field} of {key} stored as {want}: {by}", "it is {got}", "no value of {field}",
			"the value is dropped, or a later write of other fields empties it."},
		model.OldValue: {"{field} of {key} changed to {want}: {by}", "it is {got}, as before", symptomOldValue,
			"an acknowledged change is dropped, or an older state is written back later."},
		model.Appeared: {"{field} of {key} as it was: {want}", "it is {got}, of a batch that was refused or skipped", "skipped value",
			"what a refused batch has stored is not taken back, or is written with the next one."},
		model.Returned: {"no {field} of {key}: it was deleted, and created again without one", "it is {got}, as before the delete", "deleted value",
			"what the record had survives its delete: old values stay in another table, in a cache or in a row that is only marked, and come back with the key."},
		model.Reverted: {"{field} of {key} as it was changed to: {want}; {by}, without this field", "it is {got}, as before that change", symptomOldValue,
			"an older state of the record (a cache, a copy) is written back with a later change."},
	}
)

const reached = "a batch that did not name the record reaches it."

// inWords describes a contradiction.
func inWords(c model.Contradiction, last model.Named) wording {
	w := ofRecords[c.Kind]
	switch {
	case c.Field != "":
		w = ofFields[c.Kind]
	case c.Kind == model.Returned && c.Before == nil && last.Operation == rpc.OperationDelete:
		w.actual, w.symptom = "it is there", symptomLeft
		w.why = wire.EitherCause("its delete was not carried out (an error that is swallowed, such as that of a locked database)",
			"it was written again later (a mark that is taken away, a cache)", "a look into the destination right after the delete")
	case c.Kind == model.Lost && c.Before != nil && c.Before.Count > 0:
		w.actual, w.why = "it is not there, though a read-back after that batch has shown it: a batch that did not name it has removed it", reached
	}
	key := func(text string) string { return foreign.Clip(string(values.Quote(text)), 80) }
	said := map[model.Outcome]string{model.Acknowledged: "acknowledged", model.Refused: "refused", model.Unclear: "answered unclearly"}[last.Outcome]
	fill := strings.NewReplacer("{key}", key(c.Key), "{field}", c.Field, "{want}", foreign.Clip(model.OrNull(c.Want), 120), "{got}", foreign.Clip(model.OrNull(c.Got), 120),
		"{other}", key(c.Other.Key), "{by}", fmt.Sprintf("its %s was %s in %s", last.Operation, said, last.Check)).Replace
	w.expected, w.actual, w.symptom = fill(w.expected), fill(w.actual), fill(w.symptom)
	return w
}
