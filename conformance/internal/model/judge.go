package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
)

// Kind is what a read-back contradicts.
type Kind int

// The kinds of contradictions.
const (
	Lost     Kind = iota // acknowledged, and not there
	Copied               // there more than once
	Changed              // other than it was when no batch had named it since
	OldValue             // has a value that was replaced by an acknowledged batch
	Mixed                // has the value of another record
	Emptied              // has no value where other records have theirs
	Appeared             // was not accepted, and is there, or its refused value is
	Returned             // was deleted, and is there, or a value from before its delete is
	Reverted             // has a value that was replaced, and that the latest batch did not name
)

// Contradiction is one key, and for values one field, that is not as it must be.
type Contradiction struct {
	Place
	Kind
	Field     string // "" when it is about the record
	Want, Got json.RawMessage
	Other     Place // whose value it has
	// Before is what the read-back after the latest batch showed; nil without one.
	Before  *Sight
	Batches []Named
}

// Fields finds the declaration of a field.
type Fields func(object, name string) (rpc.Field, bool)

// Judge compares what a read-back shows of settled keys with what must hold.
func (l *Ledger) Judge(keys []Key, shown func(Place) Sight, fields Fields) []Contradiction {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := judge{fields: fields, shown: shown, entries: l.order, keys: keys}
	var out []Contradiction
	for _, k := range keys {
		e := l.at[k.Place]
		for _, c := range j.entry(e, shown(k.Place)) {
			c.Place, c.Before, c.Batches = k.Place, e.sight, slices.Clone(e.batches)
			out = append(out, c)
		}
	}
	return slices.DeleteFunc(out, returnsOfOneValue(out))
}

// returnsOfOneValue are values from before, the same in all records: defaults, maybe.
func returnsOfOneValue(all []Contradiction) func(Contradiction) bool {
	seen, different := map[owned]bool{}, map[owned]int{}
	for _, c := range all {
		if k := (owned{c.Object, c.Field, string(c.Got)}); c.Kind >= Returned && !seen[k] {
			seen[k] = true
			different[owned{c.Object, c.Field, ""}]++
		}
	}
	return func(c Contradiction) bool {
		return c.Kind >= Returned && c.Field != "" && different[owned{c.Object, c.Field, ""}] < 2
	}
}

type judge struct {
	fields  Fields
	shown   func(Place) Sight
	entries []*entry
	keys    []Key
	// These are made when a value is not as it was sent.
	owners map[owned]Place // of values that one record alone was sent
	filled map[owned]bool  // fields of objects that show a value; owned.raw is ""
}

// owned is a value of a field.
type owned struct{ object, field, raw string }

func (j *judge) index() {
	if j.owners != nil {
		return
	}
	j.owners, j.filled = map[owned]Place{}, map[owned]bool{}
	for _, e := range j.entries {
		for name, raw := range e.Values {
			k := owned{e.Object, name, string(raw)}
			if first, known := j.owners[k]; known && first != e.Place {
				j.owners[k] = Place{} // of several
			} else {
				j.owners[k] = e.Place
			}
		}
	}
	for _, k := range j.keys {
		for name, raw := range j.shown(k.Place).Fields {
			if !empty(raw) {
				j.filled[owned{k.Object, name, ""}] = true
			}
		}
	}
}

func (j *judge) entry(e *entry, s Sight) []Contradiction {
	switch {
	case e.Exists && s.Count == 0:
		return []Contradiction{{Kind: Lost}}
	case !e.Exists && s.Count == 0:
		return nil
	case !e.Exists && e.Created:
		return []Contradiction{{Kind: Returned}}
	case !e.Exists:
		return []Contradiction{{Kind: Appeared}}
	case s.Count > 1:
		return []Contradiction{{Kind: Copied}}
	}
	names := slices.Collect(maps.Keys(s.Fields))
	if e.sight != nil {
		names = slices.AppendSeq(names, maps.Keys(e.sight.Fields))
	}
	names = slices.AppendSeq(names, maps.Keys(e.Values))
	slices.Sort(names)
	var out []Contradiction
	for _, name := range slices.Compact(names) {
		f, declared := j.fields(e.Object, name)
		if !declared || f.Identifier || name == e.Field || !f.Createable && !f.Updateable {
			continue // what the destination keeps itself, such as the time of a change
		}
		if c, contradicts := j.value(e, f, json.RawMessage(OrNull(s.Fields[name]))); contradicts {
			out = append(out, c)
		}
	}
	return out
}

// value compares one field of a record that must be there.
func (j *judge) value(e *entry, f rpc.Field, got json.RawMessage) (Contradiction, bool) {
	name := f.APIName
	want, sent := e.Values[name]
	if _, loose := e.values.loose[name]; loose || sent && same(f, want, got) {
		return Contradiction{}, false
	}
	c := Contradiction{Field: name, Want: want, Got: got}
	had := func(values past) bool {
		return !empty(got) && slices.ContainsFunc(values[name], func(raw json.RawMessage) bool { return same(f, raw, got) })
	}
	if f.Type == rpc.TypeBoolean {
		had = func(past) bool { return false } // one of two values shows nothing about its origin
	}
	if !sent {
		c.Kind = Returned
		return c, had(e.values.buried)
	}
	if e.sight != nil && e.sight.Count > 0 {
		if was := json.RawMessage(OrNull(e.sight.Fields[name])); !same(f, was, got) && !bytes.Equal(was, got) {
			if c.Kind, c.Want = Changed, was; had(e.values.refused) {
				c.Kind = Appeared
			}
			return c, true
		}
	}
	if _, left := e.values.unmapped[name]; left {
		c.Kind = Reverted // else RES-014 judges it
		return c, had(e.values.replaced)
	}
	was := func(raw json.RawMessage) bool { return blank(raw) && bytes.Equal(raw, got) }
	j.index()
	owner := j.owners[owned{e.Object, name, string(got)}]
	switch {
	case had(e.values.refused):
		c.Kind = Appeared
	case had(e.values.replaced), had(e.values.buried), !blank(want) && slices.ContainsFunc(e.values.replaced[name], was):
		c.Kind = OldValue
	case owner != Place{} && owner != e.Place && !empty(got) && f.Type != rpc.TypeBoolean:
		c.Kind, c.Other = Mixed, owner
	case blank(got) && !empty(want) && !e.odd && j.filled[owned{e.Object, name, ""}]:
		c.Kind = Emptied
	default:
		return c, false // another value is for the checks about values
	}
	return c, true
}

func same(f rpc.Field, a, b json.RawMessage) bool {
	ok, _ := hook.SameValue(f, a, b)
	return ok
}

// OrNull is a value as text, null where it is missing.
func OrNull(raw []byte) string { return cmp.Or(string(raw), "null") }

// blank is no value. False or zero can be an older value.
func blank(raw json.RawMessage) bool {
	return slices.Contains([]string{"null", `""`, "[]"}, string(raw))
}

// empty are values that a default may be too.
func empty(raw json.RawMessage) bool {
	return slices.Contains([]string{"", "null", `""`, "[]", "0", "0.0", `"0"`, "false"}, string(raw))
}
