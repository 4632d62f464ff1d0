package destination

import (
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// What is sent of one record after the other: the opposite values, arrays of other
// lengths, null and values by turns. The records of a batch are at different places of
// a sequence, so that one more batch makes all of its changes.

// opposed returns the record with the opposite of each value that can be changed.
func (sc *scenario) opposed(r *record) *record {
	c := *r
	c.turn++
	c.values = make(map[string]json.RawMessage, len(r.values))
	fixtures := sc.opts.Fixtures[r.object.APIName].Fields
	for name, raw := range r.values {
		f, ok := r.object.field(name)
		fixed, is := fixtures[name]
		c.values[name] = raw
		if !ok || !bothWays(f) || name == r.id.APIName {
			continue
		}
		c.values[name] = values.Opposite(f, r.seed, c.turn, raw, func(s values.Seed) json.RawMessage {
			switch {
			case is:
				return sc.made.Expand(fixed, s, r.key)
			case s%2 == 1 && f.Type == rpc.TypeString && !f.Array && r.object.lessons[name] == nil && values.Guessed(f) == nil:
				return sc.made.Value(f, s, values.Word) // shorter than what names the field
			}
			return learned(sc.made, r.object, f, s)
		})
	}
	return &c
}

// arraysInTurn gives each array of the record another length.
func arraysInTurn(sc *scenario, r *record) *record {
	turn := r.turn + 1
	var arrays []rpc.Field
	for _, f := range r.object.Fields {
		if !f.Array || !bothWays(f) || r.object.avoids(f.APIName) {
			continue
		}
		how := values.Guess
		if l := r.object.lessons[f.APIName]; l != nil {
			how = l.style
		}
		arrays = append(arrays, f)
		r = r.with(f.APIName, sc.made.ArrayInTurn(f, r.seed, turn, how, !f.Required && !r.object.noNull(f.APIName)))
	}
	if len(arrays) == 0 {
		return r
	}
	r.turn, r.odd.fields = turn, arrays
	return r
}

// nullsInTurn gives the record nulls where it had values, and new values where it had nulls.
func nullsInTurn(sc *scenario, r *record) *record {
	c := sc.changed(r, r.turn+1)
	c.turn = r.turn + 1
	if r.seed.NullInTurn(c.turn) {
		c = nullRest(sc, c)
	}
	return c
}

// oneBeyond keeps what is required and the first field beyond it: batches that are large
// for another reason than their size stay far below what a statement can hold.
func oneBeyond(_ *scenario, r *record) *record {
	beyond := slices.IndexFunc(r.object.Fields, func(f rpc.Field) bool {
		_, ok := r.values[f.APIName]
		return ok && !f.Required && f.APIName != r.id.APIName
	})
	return r.keep(func(f rpc.Field) bool {
		return f.Required || beyond >= 0 && f.APIName == r.object.Fields[beyond].APIName
	})
}

// fewerFields leaves out every other field that need not be there, the first included,
// and never all of them: whether identifiers alone are taken is for RES-013.
func fewerFields(_ *scenario, r *record) *record {
	var optional []string
	for _, f := range r.object.Fields {
		if _, ok := r.values[f.APIName]; ok && !f.Required && f.APIName != r.id.APIName {
			optional = append(optional, f.APIName)
		}
	}
	return r.keep(func(f rpc.Field) bool {
		return f.Required || len(optional) == 1 || slices.Index(optional, f.APIName)%2 == 1
	})
}

// spread shares records among operations.
func spread(operations []string, records []*record) []set {
	var out []set
	for i, op := range operations {
		from, to := i*len(records)/len(operations), (i+1)*len(records)/len(operations)
		if from < to {
			out = append(out, set{op, records[from:to]})
		}
	}
	return out
}

// noDeletedValues: what a record had is gone with it. Created again with fewer fields it
// has none of the old values in the others.
func (sc *scenario) noDeletedValues() error {
	due := map[place]bool{}
	for _, e := range sc.expectations(written) {
		due[e.record.place()] = true
	}
	if sc.readback == nil || len(due) == 0 {
		return nil
	}
	keys := lists.Where(sc.ledger.Settled(sc.object.APIName), func(k model.Key) bool { return due[k.Place] })
	broken, err := sc.contradictions(keys, keys, map[place]model.Sight{})
	if err != nil {
		return err
	}
	sc.reportBroken(lists.Where(broken, func(c model.Contradiction) bool { return c.Kind == model.Returned }), len(due))
	return sc.Held()
}

// noRepeatRefused: a change that was accepted is accepted again, though it changes nothing.
func (sc *scenario) noRepeatRefused() error {
	if len(sc.waves) < 2 {
		return harness("the records were sent only once")
	}
	accepted := map[place]bool{}
	for _, b := range sc.waves[len(sc.waves)-2] {
		for _, r := range b.records {
			accepted[r.place()] = b.succeeded(r)
		}
	}
	for _, b := range sc.latest {
		for _, r := range b.records {
			if accepted[r.place()] && b.operation != rpc.OperationInsert && b.refused(r) {
				sc.brokenAs("refused "+purpose{b.operation, true}.String(), b.operation, "the same "+b.operation+" of "+foreign.Clip(string(r.key), 60)+" accepted again", b.whyOf(r), b.reply)
			}
		}
	}
	sc.ExplainAs(func(string) bool { return true },
		"a change to the values that are there counts as none: the rows that a statement has changed are counted, not those that it has found.",
		"take a record that is found for updated, whatever the driver counts.", false)
	return sc.Held()
}

// noneRefusedNextToOld: in a batch with records that exist the new ones are taken, as new
// ones were before.
func (sc *scenario) noneRefusedNextToOld() error {
	old, taken := map[place]bool{}, 0
	for _, r := range sc.history[0].records {
		old[r.place()] = true
		if e := sc.model.get(r); e != nil && e.Exists {
			taken++
		}
	}
	for _, b := range sc.latest {
		for _, r := range b.records {
			if taken > 0 && !old[r.place()] && b.failed(r) {
				sc.brokenAs("refused next to existing records", b.operation,
					foreign.Clip(string(r.key), 60)+" taken, which is new, next to records that exist", b.whyOf(r), b.reply)
			}
		}
	}
	return sc.Held()
}
