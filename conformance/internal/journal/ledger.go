package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// name identifies a key: identifiers are the same when their JSON texts are.
type name struct{ object, field, identifier string }

// fate is what the lines so far say about one key.
type fate struct {
	first int64 // the number of the batch that sent it first
	place int   // within that batch
	open  int   // batches under way
	state State
	raw   json.RawMessage
}

// ledger adds the lines up.
type ledger struct {
	open map[int64]Batch
	keys map[name]*fate
}

func newLedger() ledger {
	return ledger{open: map[int64]Batch{}, keys: map[name]*fate{}}
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
		l.keys[n] = &fate{first: batch.Seq, place: place, raw: json.RawMessage(n.identifier)}
	}
	return l.keys[n]
}

func (l *ledger) begin(batch Batch) {
	l.open[batch.Seq] = batch
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
	inBatch := map[name]bool{}
	for _, raw := range batch.Identifiers {
		inBatch[nameOf(batch.Object, batch.Field, raw)] = true
	}
	answered := map[name]bool{}
	for _, list := range [][]json.RawMessage{acknowledged, refused} {
		for _, raw := range list {
			n := nameOf(batch.Object, batch.Field, raw)
			if !inBatch[n] {
				return outcome, fmt.Errorf("outcome of %s, which is not in batch %d", raw, seq)
			}
			answered[n] = true
		}
	}
	for _, raw := range batch.Identifiers {
		if !answered[nameOf(batch.Object, batch.Field, raw)] {
			outcome.Unknown = append(outcome.Unknown, raw)
		}
	}
	return outcome, nil
}

// close ends a batch's being under way; keys that were cleaned meanwhile are
// not there any more.
func (l *ledger) close(batch Batch) {
	delete(l.open, batch.Seq)
	for _, raw := range batch.Identifiers {
		if known := l.keys[nameOf(batch.Object, batch.Field, raw)]; known != nil && known.open > 0 {
			known.open--
		}
	}
}

// abandon forgets a batch that was announced and never sent.
func (l *ledger) abandon(batch Batch) {
	l.close(batch)
	for _, raw := range batch.Identifiers {
		n := nameOf(batch.Object, batch.Field, raw)
		if known := l.keys[n]; known != nil && known.open == 0 && known.state == "" {
			delete(l.keys, n)
		}
	}
}

// finish applies an outcome. The most dangerous answer for a key that was
// sent twice in a batch counts.
func (l *ledger) finish(outcome Outcome) {
	batch := l.open[outcome.Seq]
	l.close(batch)
	for _, answer := range []struct {
		list  []json.RawMessage
		state State
	}{{outcome.Refused, Refused}, {outcome.Acknowledged, Written}, {outcome.Unknown, Unknown}} {
		for _, raw := range answer.list {
			// A key that was cleaned while its batch was under way may have
			// been written after that: it comes back.
			known := l.key(batch, raw, 0)
			known.state = next(known.state, batch.Operation == "delete", answer.state)
		}
	}
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

// pending sorts by the first batch and the place in it, so that a clean-up
// goes the way of the run.
func (l *ledger) pending() []Key {
	type entry struct {
		name
		*fate
	}
	list := make([]entry, 0, len(l.keys))
	for n, known := range l.keys {
		list = append(list, entry{n, known})
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.place, b.place), cmp.Compare(a.identifier, b.identifier))
	})
	keys := make([]Key, len(list))
	for i, e := range list {
		keys[i] = Key{Object: e.object, Field: e.field, Identifier: e.raw, State: e.state}
		if e.open > 0 || e.state == "" {
			keys[i].State = Unknown
		}
	}
	return keys
}
