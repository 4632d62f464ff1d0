package cleanup

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// What shows that records are gone, since an acknowledged delete is only a claim: the read-back, or
// an update that is skipped for each of them (a witness).
const (
	ByReadback    = "readback"
	ByWitness     = "witness"
	needsReadback = "give a read-back hook (--readback-url or --readback-command), and clean up again with the journal"
)

// sight is the way in which the records of one object can be seen.
type sight struct {
	by      string // "" when nothing shows them
	why     string // then
	skipped string // by a witness: its words for a key that does not exist
}

// LateDelete is how long an acknowledged delete may take to show, which the checks judge.
const LateDelete = 500 * time.Millisecond

// seen is what the look after the deletion shows of one key.
type seen struct {
	there  bool
	copies int
}

// findSight finds before the deletion how its effect can be seen: a way that
// shows nothing of records that are there shows nothing of their end.
func (sc *Scenario) findSight(g *Cleaning, witnesses bool) sight {
	why := "nothing shows whether they are gone: " + needsReadback
	switch {
	case sc.Readback == nil:
	case sc.c.HookFault != nil:
		why = "the read-back hook failed its own test, so that it shows nothing"
	default:
		if _, shown := sc.HookShown.Load(g.Name); shown {
			return sight{by: ByReadback}
		}
		found, err := sc.lookThroughHook(g)
		if err != nil {
			why = "the read-back hook failed: " + sc.Redactor.String(err.Error())
			break
		}
		if slices.ContainsFunc(g.Keys, func(k journal.Key) bool { return found[exchange.KeyText(k.Identifier)].there }) {
			return sight{by: ByReadback}
		}
		why = fmt.Sprintf("the read-back hook has shown no record of %q, so that it does not show their end", g.Name)
	}
	if witnesses && sc.Ledger.Contradicted(g.Name) {
		return sight{why: "an update of a record that is there got the same answer in this run as one of an absent record, so that updates show nothing: " + needsReadback}
	}
	if witnesses {
		if said, ok := sc.calibrateWitness(g); ok {
			return sight{by: ByWitness, skipped: said}
		}
	}
	return sight{why: why}
}

// look returns for each key what shows after the deletion.
func (sc *Scenario) look(g *Cleaning) map[string]seen {
	switch g.sight.by {
	case "":
		return nil
	case ByWitness:
		return sc.lookByWitness(g)
	}
	deadline := time.Now().Add(max(sc.Opts.ReadbackWindow, LateDelete))
	for {
		found, err := sc.lookThroughHook(g)
		if err != nil {
			g.sight.why = "the read-back hook failed: " + sc.Redactor.String(err.Error())
			return nil
		}
		late := slices.ContainsFunc(g.Keys, func(k journal.Key) bool {
			return found[exchange.KeyText(k.Identifier)].there && g.AnswerTo(k).Acknowledged
		})
		if !late || !time.Now().Before(deadline) || line.Elapse(sc.Ctx, 100*time.Millisecond) != nil {
			return found
		}
	}
}

// lookThroughHook reads back every key.
func (sc *Scenario) lookThroughHook(g *Cleaning) (map[string]seen, error) {
	request := hook.ReadbackRequest{Object: g.Name, IdentifierField: g.Field, Identifiers: identifiersOf(g.Keys)}
	reply, err := hook.Paged(sc.Readback)(sc.Ctx, request)
	if err != nil {
		return nil, err
	}
	out := make(map[string]seen, len(g.Keys))
	for _, k := range g.Keys {
		out[exchange.KeyText(k.Identifier)] = seen{}
	}
	for _, r := range reply.Records {
		out[exchange.KeyText(r.Identifier)] = seen{there: true, copies: r.Count}
	}
	return out, nil
}

// settle counts what became of the keys of one object, and notes in the journal those that are
// gone. A key that is gone only by a claim stays in the journal.
func settle(res *conformance.Residue, sc *Scenario, g *Cleaning, found map[string]seen) {
	var gone []journal.Key
	cleaned := 0
	for _, k := range g.Keys {
		answer, refused := g.AnswerTo(k), k.State == journal.Refused
		look, known := found[exchange.KeyText(k.Identifier)]
		switch {
		case known && look.there:
			keep(res, sc.Redactor, k, g.stillThere(k, answer, look.copies), true)
			g.StillThere = append(g.StillThere, k)
		case known, refused && answer.Acknowledged:
			gone = append(gone, k)
			if !refused {
				cleaned++
			}
		case refused: // every write of it was refused: nothing is there
		case answer.Acknowledged:
			res.Unverified++
			res.UnverifiedReason = g.sight.why
		case answer.absent && k.State == journal.Unknown: // it never had an answer, and is not there
			gone = append(gone, k)
		default:
			keep(res, sc.Redactor, k, answer.why, k.State != journal.Unknown && !answer.unanswered)
		}
	}
	res.Cleaned += cleaned
	if cleaned > 0 && !slices.Contains(res.VerifiedBy, g.sight.by) {
		res.VerifiedBy = append(res.VerifiedBy, g.sight.by)
	}
	if err := sc.Journal.Cleaned(gone); err != nil && res.UnverifiedReason == "" {
		res.UnverifiedReason = sc.Redactor.String(err.Error())
	}
}

// keep files a key that may still be there; known: it is.
func keep(res *conformance.Residue, secrets *wire.Redactor, k journal.Key, why string, known bool) {
	l := conformance.Leftover{Object: k.Object, Field: k.Field, Identifier: string(k.Identifier), Reason: secrets.String(why)}
	if !known {
		res.Unknown = append(res.Unknown, l)
	} else {
		res.Refused = append(res.Refused, l)
	}
}

// StillSeen says what shows that a record still exists.
func (g *Cleaning) StillSeen() string { return stillSeen[g.sight.by] }

var stillSeen = map[string]string{ByReadback: "the read-back still shows it", ByWitness: "an update still finds it"}

// stillThere describes what was claimed of a record that still exists.
func (g *Cleaning) stillThere(k journal.Key, answer Deletion, copies int) string {
	shows := g.StillSeen()
	if copies > 1 {
		shows += fmt.Sprintf(" (%s)", quantity.Count(copies, "copy"))
	}
	switch {
	case answer.Acknowledged && answer.hook:
		return "the cleanup hook said that it is gone, and " + shows
	case answer.Acknowledged:
		return "acknowledged the delete, and " + shows
	case k.State == journal.Refused:
		return "refused to write it, and " + shows + "; " + answer.why
	}
	return answer.why + "; " + shows
}

// calibrateWitness checks whether an update distinguishes existing records from absent ones, and
// returns its words for the latter. Of the records that it updates, one must be found (an endpoint
// that refuses every update would pass for an empty one), and none that must exist may be denied.
func (sc *Scenario) calibrateWitness(g *Cleaning) (string, bool) {
	const controls = 5
	o := g.Object
	if o == nil || !o.Accepts(rpc.OperationUpdate) || sc.Opts.SkipConvention == conformance.SkipSuccess ||
		!o.Accepts(rpc.OperationDelete) && !sc.Opts.Hooks.Cleanup.Set() {
		return "", false
	}
	id, ok := o.Field(g.Field)
	keys := lists.Where(g.Keys, func(k journal.Key) bool { return k.State == journal.Written || k.State == journal.Unknown })
	if keys = keys[max(0, len(keys)-controls):]; !ok || len(keys) == 0 {
		return "", false
	}
	never, err := sc.Key(o, id)
	if err != nil {
		return "", false
	}
	// Whatever becomes of it, it is deleted with the others.
	absent := journal.Key{Object: g.Name, Field: g.Field, Identifier: never, State: journal.Refused}
	said, ok := sc.witnessUpdates(g, id, append(keys, absent))
	g.Keys = append(g.Keys, absent)
	if !ok {
		return "", false
	}
	found := slices.ContainsFunc(keys, func(k journal.Key) bool { return said[exchange.KeyText(k.Identifier)] == "" })
	none := said[exchange.KeyText(never)]
	denied := slices.ContainsFunc(keys, func(k journal.Key) bool {
		must := sc.Ledger.State(model.Place{Object: g.Name, Field: g.Field, Key: exchange.KeyText(k.Identifier)})
		return must.Known && must.Exists && said[exchange.KeyText(k.Identifier)] == none
	})
	return none, found && none != "" && !denied
}

// lookByWitness updates every key. A key that the update finds exists; one that is skipped with the
// words for a key that never existed does not.
func (sc *Scenario) lookByWitness(g *Cleaning) map[string]seen {
	id, _ := g.Object.Field(g.Field)
	said, ok := sc.witnessUpdates(g, id, g.Keys)
	out := map[string]seen{}
	for text, words := range said {
		switch words {
		case "":
			out[text] = seen{there: true}
		case g.sight.skipped:
			out[text] = seen{}
		}
	}
	if !ok || len(out) < len(g.Keys) {
		g.sight.why = "the updates that were to show it were not answered as before: " + needsReadback
	}
	return out
}

// witnessUpdates sends an update for each key and returns what the results report: "" for a record
// that was found, else the words of the skip. Keys without a clear result are left out; false: a
// batch was not answered.
func (sc *Scenario) witnessUpdates(g *Cleaning, id rpc.Field, keys []journal.Key) (map[string]string, bool) {
	out, all := map[string]string{}, true
	for part := range slices.Chunk(keys, sc.cleanUpSize()) {
		records, err := sc.witnesses(g.Object, id, part)
		if err != nil || len(records) == 0 {
			return out, false
		}
		seq, err := sc.Announce(rpc.OperationUpdate, records)
		if err != nil {
			return out, false
		}
		b, err := sc.cleanUpBatch(rpc.OperationUpdate, records, nil)
		if err != nil {
			return out, false
		}
		if sc.Finish(seq, b) != nil || !b.Answered() {
			all = false
			continue
		}
		for i, r := range records {
			text := exchange.KeyText(part[i].Identifier)
			switch {
			case sc.Skipped(b, r):
				out[text] = "skipped " + write.SkipWords(b, r)
			case b.Succeeded(r):
				out[text] = ""
			}
		}
	}
	return out, all
}

// witnesses are ordinary records under these keys; nil where an update could carry no field.
func (sc *Scenario) witnesses(o *write.Object, id rpc.Field, keys []journal.Key) ([]*write.Record, error) {
	out := make([]*write.Record, len(keys))
	for i, k := range keys {
		r := &write.Record{Object: o, ID: id, Key: k.Identifier, Seed: values.NewSeed(sc.Check().Number, sc.Keys.NextRecord(sc.Check().ID)), Values: map[string]json.RawMessage{id.APIName: k.Identifier}}
		for _, f := range o.Ordinary(id) {
			if f.APIName == id.APIName || !f.Updateable || f.Identifier && !f.Required {
				continue
			}
			raw, err := sc.FieldValue(r, f)
			if err != nil {
				return nil, err
			}
			r.Values[f.APIName] = raw
		}
		if len(r.Values) == 1 {
			return nil, nil
		}
		out[i] = r
	}
	return out, nil
}
