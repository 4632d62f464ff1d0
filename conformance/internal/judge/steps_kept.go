package judge

import (
	"encoding/json"
	"fmt"
	"maps"
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

// What the ledger of the run knows is read back before the clean-up: a record of one check
// that another one's batch has changed is seen here only.

func keptSteps() []definition {
	return []definition{
		step(`^no (refused|deleted) record of the run is there$`, func(sc *Scenario) any { return sc.noneAppeared }),
	}
}

// updatesSkipped judges updates of deleted records where updates of others that are absent
// are reported as skipped: what the update says and what the read-back shows must agree.
func (sc *Scenario) updatesSkipped() error {
	if !sc.Ledger.ShowsSkips(sc.Object.APIName) {
		return nil
	}
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			if b.Operation != rpc.OperationUpdate || !b.Succeeded(r) || sc.Skipped(b, r) {
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
	}
	sc.Explain(func(symptom string) bool { return symptom == symptomRevived }, wire.EitherCause(
		"the delete marks the row (a soft delete) and update does not leave deleted rows out", "a cache of known keys still has the record", "a look into the destination"), false)
	return nil
}

const (
	symptomRevived = "update of a deleted record"
	symptomSkipped = "skipped value"
)

func (sc *Scenario) acknowledgedKept() error {
	return sc.heldByRun(conformance.SeenKept, func(s model.State) bool { return s.Exists }, sc.noneAccepted())
}

func (sc *Scenario) noneAppeared(which string) error {
	if which == "deleted" {
		if err := sc.updatesSkipped(); err != nil {
			return err
		}
		return sc.heldByRun(conformance.SeenDeleted, func(s model.State) bool { return !s.Exists && s.Created }, sc.noneAccepted())
	}
	return sc.heldByRun(conformance.SeenAbsent, func(s model.State) bool { return !s.Exists && !s.Created },
		line.NotApplicable("no record was refused, so that none can appear"))
}

// heldByRun reads back the keys of the object that have such a state. none is the outcome
// where there is none.
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
			// What holds already is not asked for again.
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

// contradictions are what a read-back shows of keys against the ledger, but for records of
// checks that have failed: those say it already. ask are the keys to look at now, the others
// are as they were seen.
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
		for text, o := range found {
			seen[model.Place{Object: sc.Object.APIName, Field: field, Key: text}] = o.Sight()
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
				status == conformance.Warn && c.Kind != model.Lost && c.Kind != model.Changed)
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
		expected, actual, symptom := sc.describe(c, last)
		if n := recordsIn(broken, c.Kind); times[c.Kind] == 1 && n > 1 {
			actual += fmt.Sprintf("; so it is with %d of %s", n, quantity.Count(of, "record"))
		}
		shows, _ := last.Exhibit.(*exchange.Reply)
		sc.BrokenAs(symptom, last.Operation, expected, actual, shows)
		why := whyBroken(c)
		switch restarted := last.Restarts < sc.Ledger.Restarts(); {
		case restarted && c.Before == nil && why != "":
			why = strings.TrimSuffix(why, ".") + ", or the restart of the endpoint after that batch has lost it."
		case restarted && c.Before != nil && (c.Before.Count > 0) == (c.Kind != model.Returned):
			why = wire.EitherCause("the endpoint was restarted after that batch, and does not read all back that it had acknowledged (a file or log that is read in part, or memory)", "a later batch that does not name the record", "the batch below again, with a restart behind it,")
		}
		if why != "" {
			sc.Explain(func(s string) bool { return s == symptom }, why, false)
		}
	}
}

func recordsIn(broken []model.Contradiction, kind model.Kind) int {
	places := map[model.Place]bool{}
	for _, c := range broken {
		places[c.Place] = places[c.Place] || c.Kind == kind
	}
	return len(lists.Where(slices.Collect(maps.Keys(places)), func(p model.Place) bool { return places[p] }))
}

// whyBroken are the candidates for a contradiction, where the check names others; "" else.
func whyBroken(c model.Contradiction) string {
	switch c.Kind {
	case model.Lost:
		if c.Before == nil || c.Before.Count == 0 {
			return "the write is dropped without a word, or what was written is lost later."
		}
	case model.OldValue:
		return "an acknowledged change is dropped, or an older state is written back later."
	case model.Mixed:
		return "records share a variable or a row of their batch."
	case model.Copied:
		return "the match runs on another field, or two writers race."
	case model.Emptied:
		return "the value is dropped, or a later write of other fields empties it."
	case model.Returned, model.Appeared:
		switch {
		case c.Field == "":
			return ""
		case c.Kind == model.Appeared:
			return "what a refused batch has stored is not taken back, or is written with the next one."
		}
		return "what the record had survives its delete: old values stay in another table, in a cache or in a row that is only marked, and come back with the key."
	}
	return "a batch that did not name the record reaches it."
}

// describe says what must hold for a key, what is there instead, and which other findings
// would be the same.
func (sc *Scenario) describe(c model.Contradiction, last model.Named) (expected, actual, symptom string) {
	key := foreign.Clip(string(values.Quote(c.Key)), 80)
	value := func(raw json.RawMessage) string { return foreign.Clip(OrNull(raw), 120) }
	by := fmt.Sprintf("its %s was %s in %s", last.Operation, said[last.Outcome], last.Check)
	switch c.Kind {
	case model.Lost:
		actual = "it is not there"
		if c.Before != nil && c.Before.Count > 0 {
			actual = "it is not there, though a read-back after that batch has shown it: a batch that did not name it has removed it"
		}
		return "the record " + key + " there: " + by, actual, write.SymptomMissing
	case model.Copied:
		return "one record " + key + ": " + by, "there is more than one", "copies"
	case model.Changed:
		return fmt.Sprintf("%s of %s as it was read back after its last batch: %s", c.Field, key, value(c.Want)),
			"it is " + value(c.Got) + ", though no later batch named it", "changed"
	case model.Mixed:
		return fmt.Sprintf("%s of %s stored as %s: %s", c.Field, key, value(c.Want), by),
			fmt.Sprintf("it is %s, the value of %s", value(c.Got), foreign.Clip(string(values.Quote(c.Other.Key)), 80)), "value of " + c.Field
	case model.Emptied:
		return fmt.Sprintf("%s of %s stored as %s: %s", c.Field, key, value(c.Want), by), "it is " + value(c.Got), "no value of " + c.Field
	case model.OldValue:
		return fmt.Sprintf("%s of %s changed to %s: %s", c.Field, key, value(c.Want), by), "it is " + value(c.Got) + ", as before", symptomOldValue
	case model.Appeared:
		if c.Field != "" {
			return fmt.Sprintf("%s of %s as it was: %s", c.Field, key, value(c.Want)), "it is " + value(c.Got) + ", of a batch that was refused or skipped", symptomSkipped
		}
		return "no record " + key + ": " + by, "it is there", "refused and there"
	default:
		if c.Field != "" {
			return fmt.Sprintf("no %s of %s: it was deleted, and created again without one", c.Field, key), "it is " + value(c.Got) + ", as before the delete", "deleted value"
		}
		return "no record " + key + ": it was deleted, and " + by, "it is there again", "still there"
	}
}

var said = map[model.Outcome]string{model.Acknowledged: "acknowledged", model.Refused: "refused", model.Unclear: "answered unclearly"}
