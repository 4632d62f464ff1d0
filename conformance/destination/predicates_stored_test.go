package destination

import (
	"encoding/json"
	"maps"
)

// record of a batch as it was sent.
type sentRecord = map[string]json.RawMessage

// kept is what the judge has sent for one key, and what it was answered about it.
type kept struct {
	id          json.RawMessage
	first, last sentRecord
	all         sentRecord // all sendings laid over one another
	before      sentRecord // the same without the latest one
	accepted    sentRecord // only what was acknowledged; nil before that and after a delete
	times       int        // how often it was sent
	deleted     bool       // by the latest batch that named it
	created     bool       // by an operation that creates
	batches     int        // batches of the whole conversation
}

// sent adds a record of a batch that was answered.
func (k *kept) sent(operation string, r sentRecord, acknowledged bool) {
	if k.first == nil {
		k.first = r
	}
	k.last, k.before, k.deleted = r, k.all, operation == "delete"
	k.times++
	k.created = k.created || operation == "upsert" || operation == "insert"
	k.all = laid(k.all, r)
	switch {
	case acknowledged && k.deleted:
		k.accepted = nil
	case acknowledged:
		k.accepted = laid(k.accepted, r)
	}
}

// laid is a copy of a record under another one: what a read-back has shown stays
// as it was when more is sent.
func laid(below, above sentRecord) sentRecord {
	out := maps.Clone(below)
	if out == nil {
		out = sentRecord{}
	}
	maps.Copy(out, above)
	return out
}

// stored is what a read-back shows of one key: the copies and the fields of one.
type stored func(k *kept) (count int, fields sentRecord)

// asSent does what the judge asks for, deletes too.
func asSent(k *kept) (int, sentRecord) {
	if k.deleted {
		return 0, nil
	}
	return 1, maps.Clone(k.all)
}

// asAcknowledged holds what the results have acknowledged.
func asAcknowledged(k *kept) (int, sentRecord) {
	if k.accepted == nil {
		return 0, nil
	}
	return 1, maps.Clone(k.accepted)
}

// undeleted is asSent but for deletes.
func undeleted(k *kept) (int, sentRecord) { return 1, maps.Clone(k.all) }

func firstSent(k *kept) (int, sentRecord) { return 1, maps.Clone(k.first) }
func lastSent(k *kept) (int, sentRecord)  { return 1, maps.Clone(k.last) }
func nothing(*kept) (int, sentRecord)     { return 0, nil }

// but is the record as it was sent, with one field as written here; "" leaves
// it out.
func but(field, raw string) stored {
	return func(k *kept) (int, sentRecord) {
		count, fields := asSent(k)
		if count == 0 {
			return 0, nil
		}
		fields[field] = json.RawMessage(raw)
		if raw == "" {
			delete(fields, field)
		}
		return 1, fields
	}
}

// later is the record as it was sent until the conversation has n batches, and
// something else from then on.
func later(n int, then stored) stored {
	return func(k *kept) (int, sentRecord) {
		if k.batches < n {
			return asSent(k)
		}
		return then(k)
	}
}

// only shows one key in another way than the rest.
func only(key string, then stored) []stored {
	return []stored{func(k *kept) (int, sentRecord) {
		if keyText(k.id) == key {
			return then(k)
		}
		return asSent(k)
	}}
}
