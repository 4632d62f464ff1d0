// Package model is the ledger of a run: for every key that was ever sent, the batches that
// named it and what the destination must hold under it. It compares that with what a
// read-back shows. How batches are sent and records are read back is left to others.
package model

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// Place names one record of the destination: object, identifier field, text of the key.
type Place struct{ Object, Field, Key string }

// Batch is one batch of a check.
type Batch struct {
	Check, Operation string
	Records          []Naming
	Exhibit          any // what shows the batch in a finding; nil when nothing does
}

// Naming is one record of a batch.
type Naming struct {
	Place
	Values map[string]json.RawMessage // the key included
	Others []Place                    // the keys that the record has under further identifiers
	Fixed  func(field string) bool    // which fields an existing record keeps; nil: none
	Odd    bool                       // the values test the endpoint, so that a refusal may have its reason in them
	Near   bool                       // the key is made to resemble other keys, which an endpoint may take for one
	Bulk   bool                       // the record makes load, takes long to read back, or changes to what looks like an old value
}

// Outcome is what the reply to a batch reports about one record.
type Outcome int

// The outcomes. An unclear operation may have happened.
const (
	Unclear Outcome = iota
	Acknowledged
	Refused
	Unsent // no byte of the batch has left
)

// Answer is an outcome with the words of a skip or refusal.
type Answer struct {
	Outcome Outcome
	Words   string
}

// Named is a batch as an entry remembers it; the latest one has its exhibit.
type Named struct {
	Check, Operation string
	Outcome          Outcome
	Exhibit          any
	Restarts         int // of the endpoint that came before
}

// Sight is what a read-back shows of one key.
type Sight struct {
	Count  int // 0: absent
	Fields map[string]json.RawMessage
}

// Ledger is safe for parallel batches. The zero value is ready.
type Ledger struct {
	mu        sync.Mutex
	at        map[Place]*entry
	order     []*entry
	owner     map[Place]*entry // by the further keys of a record
	witnesses map[witness]bool
	restarts  atomic.Int64
}

// Restarted notes that the endpoint was restarted.
func (l *Ledger) Restarted() { l.restarts.Add(1) }

// Restarts is how often the endpoint was restarted.
func (l *Ledger) Restarts() int { return int(l.restarts.Load()) }

// entry holds the state of one key.
type entry struct {
	Place
	State
	raw     json.RawMessage
	sent    map[string]json.RawMessage // by the latest batch
	batches []Named
	sight   *Sight // of the latest read-back, nil when a batch has named the key since
	values  history
	open    int  // batches under way
	overlap bool // several were under way at once
	removed bool // one of these may have removed the record
	shared  bool // the record is named by other keys as well

	odd, near, bulk bool
}

func (l *Ledger) entry(p Place) *entry {
	e := l.at[p]
	if e == nil {
		if l.at == nil {
			l.at = map[Place]*entry{}
		}
		e = &entry{Place: p, State: absent()}
		l.at[p] = e
		l.order = append(l.order, e)
	}
	return e
}

// Begin notes a batch that is about to be sent.
func (l *Ledger) Begin(b *Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range b.Records {
		e := l.entry(n.Place)
		e.overlap = e.overlap || e.open > 0
		e.open++
		e.sight, e.raw = nil, n.Values[n.Field]
		e.odd, e.near, e.bulk = e.odd || n.Odd, e.near || n.Near, e.bulk || n.Bulk
		l.share(e, n.Others)
	}
}

// share notes under which other keys a record is named.
func (l *Ledger) share(e *entry, others []Place) {
	if l.owner == nil {
		l.owner = map[Place]*entry{}
	}
	if owner := l.owner[e.Place]; owner != nil && owner != e {
		e.shared, owner.shared = true, true
	}
	for _, other := range others {
		for _, o := range []*entry{l.at[other], l.owner[other]} {
			if o != nil && o != e {
				e.shared, o.shared = true, true
			}
		}
		l.owner[other] = e
	}
}

// End notes how a batch was answered, in the order of its records.
func (l *Ledger) End(b *Batch, answers []Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, n := range b.Records {
		e := l.at[n.Place]
		if answers[i].Outcome != Unsent {
			l.keepWitness(e, b.Operation, n, answers[i])
			if n := len(e.batches); n > 0 {
				e.batches[n-1].Exhibit = nil // replies are large, and the latest is shown
			}
			e.batches = append(e.batches, Named{b.Check, b.Operation, answers[i].Outcome, b.Exhibit, l.Restarts()})
			e.take(b.Operation, n, answers[i].Outcome)
		}
		if e.open--; e.open == 0 {
			e.overlap, e.removed = false, false
		}
	}
}

// Doubt makes the state of a key unknown: it may exist from an earlier run.
func (l *Ledger) Doubt(p Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(p).Known = false
}

// State is what must hold under a key; one that was never sent is absent.
func (l *Ledger) State(p Place) State {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.at[p]
	if e == nil {
		return absent()
	}
	return e.clone()
}

// Saw keeps what a read-back shows of a key that no batch names at the moment.
func (l *Ledger) Saw(p Place, s Sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.at[p]; e != nil && e.open == 0 {
		e.sight = &s
	}
}

// Key is a settled key: its raw JSON, and what must hold under it.
type Key struct {
	Place
	State
	Raw json.RawMessage
}

// Settled are the keys whose state is known and belongs to no other key, without bulk, in order.
func (l *Ledger) Settled(object string) []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	forms := map[Place]int{}
	of := lists.Where(l.order, func(e *entry) bool { return e.Object == object })
	for _, e := range of {
		forms[form(e.Place)]++
	}
	var out []Key
	for _, e := range of {
		if e.Known && e.open == 0 && len(e.batches) > 0 && !e.shared && !e.near && !e.bulk && forms[form(e.Place)] == 1 {
			out = append(out, Key{e.Place, e.clone(), e.raw})
		}
	}
	return out
}

// form is the place of a key without what a collation, a trimmed column or a double does
// not keep. Keys of one form may be one record, which a check about keys judges.
func form(p Place) Place {
	const exact = 1 << 53
	if n, err := strconv.ParseInt(p.Key, 10, 64); err == nil && (n >= exact || n <= -exact) {
		p.Key = strconv.FormatFloat(float64(n), 'g', -1, 64)
		return p
	}
	p.Key = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Cc, unicode.Cf, unicode.Z) {
			return -1
		}
		return r
	}, norm.NFKD.String(strings.ToLower(p.Key)))
	return p
}

// witness is an answer about a record whose state was known before: its words distinguish an
// existing record from an absent one, where both never get the same.
type witness struct {
	object, operation string
	words             string // "" of a success
	exists            bool   // the record
}

func (l *Ledger) keepWitness(e *entry, operation string, n Naming, a Answer) {
	if operation != rpc.OperationUpdate && operation != rpc.OperationDelete || !e.Known || e.overlap || n.Odd || a.Outcome == Unclear {
		return
	}
	if l.witnesses == nil {
		l.witnesses = map[witness]bool{}
	}
	l.witnesses[witness{n.Object, operation, a.Words, e.Exists}] = true
}

// Contradicted reports whether updates got the same words for records that must exist and must not.
func (l *Ledger) Contradicted(object string) bool {
	return l.anyUpdate(object, func(words string) bool { return l.witnesses[witness{object, rpc.OperationUpdate, words, true}] })
}

// ShowsSkips reports whether an update of a key that was not there was reported as a skip.
func (l *Ledger) ShowsSkips(object string) bool {
	return l.anyUpdate(object, func(words string) bool { return words != "" })
}

// anyUpdate reports whether an update of a record that must not be there was answered by such words.
func (l *Ledger) anyUpdate(object string, such func(words string) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.witnesses {
		if w.object == object && w.operation == rpc.OperationUpdate && !w.exists && such(w.words) {
			return true
		}
	}
	return false
}

// MeansAbsent reports whether only keys that were not there got these words for a delete.
func (l *Ledger) MeansAbsent(object, said string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := witness{object, rpc.OperationDelete, said, false}
	there := witness{object, rpc.OperationDelete, said, true}
	return said != "" && l.witnesses[w] && !l.witnesses[there]
}
