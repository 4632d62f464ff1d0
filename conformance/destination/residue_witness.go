package destination

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
)

// controls is the number of records that are asked for before the deletion, of which one
// must be found, and none be denied that must be there.
const controls = 5

// calibrateWitness finds whether an update tells a record that is there from one
// that is not, and returns what it says of the latter. Without a record that it
// finds, an endpoint that refuses every update would pass for an empty one.
func (sc *scenario) calibrateWitness(g *cleaning) (string, bool) {
	o := g.object
	if o == nil || !o.accepts(rpc.OperationUpdate) || sc.opts.SkipConvention == conformance.SkipSuccess {
		return "", false
	}
	id, ok := o.field(g.field)
	if !ok || !o.accepts(rpc.OperationDelete) && !sc.opts.Hooks.Cleanup.Set() {
		return "", false
	}
	var keys []journal.Key
	for _, k := range slices.Backward(g.keys) {
		if (k.State == journal.Written || k.State == journal.Unknown) && len(keys) < controls {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return "", false
	}
	never, err := sc.key(o, id)
	if err != nil {
		return "", false
	}
	// Whatever becomes of it, it is deleted with the others.
	absent := journal.Key{Object: g.name, Field: g.field, Identifier: never, State: journal.Refused}
	said, ok := sc.witnessUpdates(g, id, append(keys, absent))
	g.keys = append(g.keys, absent)
	if !ok {
		return "", false
	}
	found := slices.ContainsFunc(keys, func(k journal.Key) bool { return said[exchange.KeyText(k.Identifier)] == "" })
	none := said[exchange.KeyText(never)]
	denied := slices.ContainsFunc(keys, func(k journal.Key) bool {
		must := sc.ledger.State(place{Object: g.name, Field: g.field, Key: exchange.KeyText(k.Identifier)})
		return must.Known && must.Exists && said[exchange.KeyText(k.Identifier)] == none
	})
	return none, found && none != "" && !denied
}

// lookByWitness updates every key. What is found is there; what is skipped in the
// words that a key gets which was never there, is not.
func (sc *scenario) lookByWitness(g *cleaning) map[string]seen {
	id, _ := g.object.field(g.field)
	said, ok := sc.witnessUpdates(g, id, g.keys)
	out := map[string]seen{}
	for text, words := range said {
		switch words {
		case "":
			out[text] = seen{there: true}
		case g.sight.skipped:
			out[text] = seen{}
		}
	}
	if !ok || len(out) < len(g.keys) {
		g.sight.why = "the updates that were to show it were not answered as before: " + needsReadback
	}
	return out
}

// witnessUpdates sends an update for each key and returns what the results say:
// "" for a record that was found, else the words of the skip. Keys without a
// clear result are left out; false: a batch was not answered.
func (sc *scenario) witnessUpdates(g *cleaning, id rpc.Field, keys []journal.Key) (map[string]string, bool) {
	out, all := map[string]string{}, true
	for part := range slices.Chunk(keys, sc.cleanUpSize()) {
		records, err := sc.witnesses(g.object, id, part)
		if err != nil || len(records) == 0 {
			return out, false
		}
		seq, err := sc.announce(rpc.OperationUpdate, records)
		if err != nil {
			return out, false
		}
		b, err := sc.cleanUpBatch(rpc.OperationUpdate, records, nil)
		if err != nil {
			return out, false
		}
		if sc.finish(seq, b) != nil || !b.answered() {
			all = false
			continue
		}
		for i, r := range records {
			text := exchange.KeyText(part[i].Identifier)
			switch {
			case sc.skipped(b, r):
				out[text] = "skipped " + skipWords(b, r)
			case b.succeeded(r):
				out[text] = ""
			}
		}
	}
	return out, all
}

// witnesses are records with ordinary values under these keys; none where the
// object has no field that an update could carry.
func (sc *scenario) witnesses(o *object, id rpc.Field, keys []journal.Key) ([]*record, error) {
	out := make([]*record, len(keys))
	for i, k := range keys {
		r := &record{object: o, id: id, key: k.Identifier, seed: values.NewSeed(sc.Check().Number, sc.keys.NextRecord(sc.Check().ID)), values: map[string]json.RawMessage{id.APIName: k.Identifier}}
		for _, f := range o.ordinary(id) {
			if f.APIName == id.APIName || !f.Updateable || f.Identifier && !f.Required {
				continue
			}
			raw, err := sc.fieldValue(r, f)
			if err != nil {
				return nil, err
			}
			r.values[f.APIName] = raw
		}
		if len(r.values) == 1 {
			return nil, nil
		}
		out[i] = r
	}
	return out, nil
}

var digits = regexp.MustCompile(`[0-9]+`)

// skipWords is the message of a skip without what is of one record alone.
func skipWords(b *batch, r *record) string {
	var words []string
	for _, res := range b.resultsOf(r) {
		text := res.Text()
		if key := exchange.KeyText(r.key); len(key) >= 4 { // a shorter one may be part of a word
			text = strings.ReplaceAll(text, key, "")
		}
		words = append(words, digits.ReplaceAllString(text, "#"))
	}
	return strings.Join(words, " ")
}
