package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/internal/lists"
)

// name identifies a key: identifiers are the same when their JSON texts are.
type name struct{ object, field, identifier string }

// fate is what the lines so far show about one key.
type fate struct {
	first int64 // the number of the batch that sent it first
	place int   // within that batch
	open  int   // batches under way
	state State
}

// ledger adds the lines up.
type ledger struct {
	open map[int64]Batch
	last int64 // the number of the last batch
	keys map[name]*fate
}

// nameOf leaves white space out, which the writer of the file does too.
func nameOf(object, field string, raw json.RawMessage) name {
	var text bytes.Buffer
	if json.Compact(&text, raw) != nil {
		return name{object, field, string(raw)}
	}
	return name{object, field, text.String()}
}

// key finds or makes the fate of one identifier of a batch.
func (l *ledger) key(batch Batch, raw json.RawMessage, place int) *fate {
	n := nameOf(batch.Object, batch.Field, raw)
	if l.keys[n] == nil {
		l.keys[n] = &fate{first: batch.Seq, place: place}
	}
	return l.keys[n]
}

func (l *ledger) begin(batch Batch) {
	l.open[batch.Seq], l.last = batch, batch.Seq
	for i, raw := range batch.Identifiers {
		l.key(batch, raw, i).open++
	}
}

// outcome sorts the identifiers of an open batch by their answer.
func (l *ledger) outcome(seq int64, acknowledged, refused []json.RawMessage) (Outcome, error) {
	outcome := Outcome{Seq: seq, Acknowledged: acknowledged, Refused: refused}
	batch, open := l.open[seq]
	if !open {
		return outcome, fmt.Errorf("outcome of batch %d, which is not under way", seq)
	}
	missing := map[name]bool{}
	for _, raw := range batch.Identifiers {
		missing[nameOf(batch.Object, batch.Field, raw)] = true
	}
	for _, raw := range slices.Concat(acknowledged, refused) {
		n := nameOf(batch.Object, batch.Field, raw)
		if _, sent := missing[n]; !sent {
			return outcome, fmt.Errorf("outcome of %s, which is not in batch %d", raw, seq)
		}
		missing[n] = false
	}
	outcome.Unknown = lists.Where(batch.Identifiers, func(raw json.RawMessage) bool { return missing[nameOf(batch.Object, batch.Field, raw)] })
	return outcome, nil
}

// close ends a batch. A key without a state was announced and never sent.
func (l *ledger) close(batch Batch) {
	delete(l.open, batch.Seq)
	for _, raw := range batch.Identifiers {
		n := nameOf(batch.Object, batch.Field, raw)
		known := l.keys[n]
		if known == nil {
			continue // it was cleaned meanwhile
		}
		known.open = max(0, known.open-1)
		if known.open == 0 && known.state == "" {
			delete(l.keys, n)
		}
	}
}

// finish applies an outcome. Of two answers for one key the more dangerous counts.
func (l *ledger) finish(outcome Outcome) {
	batch := l.open[outcome.Seq]
	for _, answer := range []struct {
		list  []json.RawMessage
		state State
	}{{outcome.Refused, Refused}, {outcome.Acknowledged, Written}, {outcome.Unknown, Unknown}} {
		for _, raw := range answer.list {
			// A key that was cleaned meanwhile may have been written after that: it comes back.
			known := l.key(batch, raw, 0)
			known.state = next(known.state, batch.Operation == "delete", answer.state)
		}
	}
	l.close(batch)
}

// next is the state of a key after one more answer. A refusal changes nothing
// that is known, and whatever has no answer may have happened.
func next(before State, isDelete bool, answer State) State {
	switch {
	case answer == Written && isDelete:
		return Deleted
	case answer == Written:
		return Written
	case answer == Unknown && before == Deleted && isDelete:
		return Deleted
	case answer == Unknown:
		return Unknown
	case before == "":
		return Refused
	}
	return before
}

func (l *ledger) clean(cleaned Cleaned) {
	for _, raw := range cleaned.Identifiers {
		delete(l.keys, nameOf(cleaned.Object, cleaned.Field, raw))
	}
}

// pending sorts by the first batch and the place in it, so that a clean-up goes the way of the run.
func (l *ledger) pending() []Key {
	names := slices.SortedFunc(maps.Keys(l.keys), func(a, b name) int {
		x, y := l.keys[a], l.keys[b]
		return cmp.Or(cmp.Compare(x.first, y.first), cmp.Compare(x.place, y.place), cmp.Compare(a.identifier, b.identifier))
	})
	return lists.Of(names, func(n name) Key {
		state := l.keys[n].state
		if l.keys[n].open > 0 || state == "" {
			state = Unknown
		}
		return Key{Object: n.object, Field: n.field, Identifier: json.RawMessage(n.identifier), State: state}
	})
}
