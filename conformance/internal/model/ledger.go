// Package model is the ledger of a run: for every key that was ever sent, the batches that
// named it and what the destination must hold under it. It compares that with what a
// read-back shows. How batches are sent and records are read back is left to others.
package model

import (
	"encoding/json"
	"sync"

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
	// Others are the keys that the record has under further identifiers.
	Others []Place
	// Fixed reports which fields an existing record keeps; nil: none.
	Fixed func(field string) bool
	// Odd: the values test the endpoint, so that a refusal may have its reason in them.
	Odd bool
	// Near: the key is made to resemble other keys, which an endpoint may take for one.
	Near bool
	// Bulk: the record is one of many that make load, or takes long to read back.
	Bulk bool
}

// Outcome is what the reply to a batch says of one record.
type Outcome int

// The outcomes. What is unclear may have happened.
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
	witnesses map[witnessKey]*words
	restarts  int
}

// Restarted notes that the endpoint was restarted.
func (l *Ledger) Restarted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restarts++
}

// Restarts is how often the endpoint was restarted.
func (l *Ledger) Restarts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restarts
}

// entry is what is known of one key.
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
	odd     bool
	near    bool
	bulk    bool
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
		e.odd, e.near = e.odd || n.Odd, e.near || n.Near
		e.bulk = e.bulk || n.Bulk
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
			l.witness(e, b.Operation, n, answers[i])
			if n := len(e.batches); n > 0 {
				e.batches[n-1].Exhibit = nil // replies are large, and the latest is shown
			}
			e.batches = append(e.batches, Named{b.Check, b.Operation, answers[i].Outcome, b.Exhibit, l.restarts})
			e.take(b.Operation, n, answers[i].Outcome)
		}
		if e.open--; e.open == 0 {
			e.overlap, e.removed = false, false
		}
	}
}

// Doubt takes back what is known of a key: it may be there from an earlier run.
func (l *Ledger) Doubt(p Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(p).Known = false
}

// State is what must hold under a key. One that was never sent is absent, since keys are
// made for one run.
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

// Settled are the keys of an object whose state is known and belongs to no other key, in the
// order in which they were first sent, without those of bulk.
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
		if e.settled() && forms[form(e.Place)] == 1 {
			out = append(out, Key{e.Place, e.clone(), e.raw})
		}
	}
	return out
}

func (e *entry) settled() bool {
	return e.Known && e.open == 0 && len(e.batches) > 0 && !e.shared && !e.near && !e.bulk
}
