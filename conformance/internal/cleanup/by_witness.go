package cleanup

import (
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// controls is the number of records that are asked for before the deletion, of which one
// must be found, and none be denied that must be there.
const controls = 5

// calibrateWitness finds whether an update tells a record that is there from one
// that is not, and returns what it says of the latter. Without a record that it
// finds, an endpoint that refuses every update would pass for an empty one.
func (sc *Scenario) calibrateWitness(g *Cleaning) (string, bool) {
	o := g.Object
	if o == nil || !o.Accepts(rpc.OperationUpdate) || sc.Opts.SkipConvention == conformance.SkipSuccess {
		return "", false
	}
	id, ok := o.Field(g.Field)
	if !ok || !o.Accepts(rpc.OperationDelete) && !sc.Opts.Hooks.Cleanup.Set() {
		return "", false
	}
	var keys []journal.Key
	for _, k := range slices.Backward(g.Keys) {
		if (k.State == journal.Written || k.State == journal.Unknown) && len(keys) < controls {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
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

// lookByWitness updates every key. What is found is there; what is skipped in the
// words that a key gets which was never there, is not.
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

// witnessUpdates sends an update for each key and returns what the results say:
// "" for a record that was found, else the words of the skip. Keys without a
// clear result are left out; false: a batch was not answered.
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

// witnesses are records with ordinary values under these keys; none where the
// object has no field that an update could carry.
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
