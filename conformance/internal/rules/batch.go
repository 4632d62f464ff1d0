package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// Batch is a sync_batch call: the keys of its records, and what came back.
type Batch struct {
	Object, Operation string
	Keys              []json.RawMessage // as they were sent, of the records that have one
	Reply             *exchange.Reply
	exchange.Results

	texts []string           // of the keys
	sent  map[string]sentKey // by text
}

// sentKey is a key, and how many records of the batch have it.
type sentKey struct {
	raw   json.RawMessage
	times int
}

// NewBatch reads the results of a reply to sync_batch.
func NewBatch(object, operation string, keys []json.RawMessage, r *exchange.Reply) Batch {
	b := Batch{Object: object, Operation: operation, Keys: keys, Reply: r, Results: r.RecordResults()}
	b.texts, b.sent = make([]string, len(keys)), make(map[string]sentKey, len(keys))
	for i, raw := range keys {
		t := exchange.KeyText(raw)
		s := b.sent[t]
		if s.times == 0 {
			s.raw = raw
		}
		s.times++
		b.texts[i], b.sent[t] = t, s
	}
	return b
}

// Statuses count the results that say success, and failure.
func (b *Batch) Statuses() (succeeded, failed int) {
	for _, r := range b.List {
		switch {
		case r.Success == nil:
		case *r.Success:
			succeeded++
		default:
			failed++
		}
	}
	return succeeded, failed
}

// repeated is the cause where each record of the batch is answered more than once.
func (b *Batch) repeated() string {
	n := len(b.List) / max(1, len(b.Keys))
	for text, s := range b.sent {
		if len(b.ByKey[text]) != n*s.times {
			return ""
		}
	}
	if n < 2 || len(b.sent) < 2 {
		return ""
	}
	return fmt.Sprintf("each record of the batch has %s: a part of it is written and reported, is not emptied when it is full, and is written and reported again.", quantity.Count(n, "result"))
}

// Stranger tells a result that names a record which was not sent.
func (b *Batch) Stranger(r result) bool {
	return r.Identifier != nil && r.Identifier.Kind != wire.Null && b.sent[exchange.NodeText(r.Identifier)].times == 0
}

// misnamed is the place of a key without a result, of which an identifier is an altered copy.
func (b *Batch) misnamed(got string) (int, bool) {
	i := slices.IndexFunc(b.texts, func(key string) bool { return len(b.ByKey[key]) == 0 && Resembles(key, got) })
	return i, i >= 0
}

// Anonymous reports whether there is a result for each record, and an identifier in none.
func (b *Batch) Anonymous() bool {
	return len(b.List) > 0 && len(b.List) == len(b.Keys) && !slices.ContainsFunc(b.List, func(r result) bool { return r.Identifier != nil || r.Node.Kind != wire.Object })
}

// keyMember is the member of the results that holds the keys of the records, by position.
func (b *Batch) keyMember() string {
	for _, m := range b.List[0].Node.Members {
		if m.Value.Kind != wire.Bool && exchange.NodeText(m.Value) == b.texts[0] {
			return m.Name
		}
	}
	return ""
}

// noResultSymptom tells a record whose result names an altered identifier from one
// that has none.
func (b *Batch) noResultSymptom(text string) string {
	for _, res := range b.List {
		if b.Stranger(res) && Resembles(text, exchange.NodeText(res.Identifier)) {
			return SymptomAltered
		}
	}
	// An altered one may be that of another record, which has results to spare.
	for key, at := range b.ByKey {
		if n := b.sent[key].times; len(at) > 1 && n > 0 && key != text && len(at) > n && Resembles(text, key) {
			return SymptomAltered
		}
	}
	return SymptomNoResult
}

// Why describes what came instead of a success for a key.
func (b *Batch) Why(key json.RawMessage) string {
	all := b.Of(exchange.KeyText(key))
	switch {
	case !b.IsArray:
		return b.Reply.Short()
	case len(all) == 0 && b.Anonymous():
		return "no result carries an identifier"
	case len(all) == 0:
		return "no result came back"
	}
	return strings.Join(lists.Of(all, func(res result) string { return foreign.Clip(string(res.Node.Raw), 160) }), " and ")
}

// withoutIdentifiers adds a breach, once, about a batch with a result for each record and
// an identifier in none: the records can be matched by position, which the service does not.
func (l *Look) withoutIdentifiers(b *Batch) bool {
	if !b.Anonymous() {
		return false
	}
	if slices.ContainsFunc(l.Breaches, func(b Breach) bool { return b.Symptom == SymptomNoIdentifier }) {
		return true
	}
	said, under := "", ""
	if name := b.keyMember(); name != "" {
		said = fmt.Sprintf("; the key is in the member %q", name)
		under = fmt.Sprintf(" (the key stands under another name, %q)", name)
	}
	l.Breaches = append(l.Breaches, Breach{
		Symptom: SymptomNoIdentifier, Operation: b.Operation, Expected: `an "identifier" in every record result`,
		Actual: fmt.Sprintf("%s came back for %s, in none an identifier%s: %s", quantity.Count(len(b.List), "result"), quantity.Count(len(b.Keys), "record"), said, foreign.Clip(string(b.List[0].Node.Raw), 160)),
		Where:  []*reply{b.Reply},
		Cause:  "the results carry no identifier" + under + ": the service matches results and records by it, and not by their position, so that each record counts as failed.",
		Fix:    `put the identifier of the record, as it was sent, into the member "identifier" of each result, successes and failures.`, Observed: true,
	})
	return true
}
