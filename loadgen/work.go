package loadgen

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Share is one part of a mix: an object or an operation and its weight.
type Share struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"` // above 0; 0 stands for 1
}

// Work defines what is sent. Objects must be named; the rest has defaults.
type Work struct {
	Objects []Share
	// Operations are upsert (the default), insert, update and delete.
	Operations []Share
	// BatchSize in records; 0: maximum_batch_size, at most 10,000.
	BatchSize int
	// Fields limits what is mapped, besides the identifier and what is
	// required; nil: every field that may be written.
	Fields []string
	// Identifier names the active identifier; "": the first that is required.
	Identifier string
	// Repeats is the share of records, 0 to 1, whose key the run has written
	// before.
	Repeats float64
	// Prime is how many records are written first, unmeasured and in whole batches,
	// where the mix only updates or deletes; 0: 10,000.
	Prime int
	// Data and Template give the records instead of the generator; not both.
	Data     *Data
	Template []byte
}

// Data is a file of records: CSV with a header line, JSON lines or Parquet, by its
// extension.
// Columns go to the fields of their name.
type Data struct {
	Path string
	// OwnKeys sends the identifiers of the file as they are. They do not carry the
	// run, so nothing of them is ever cleaned up. Otherwise the identifier is that
	// of the run, whatever the file holds.
	OwnKeys bool
	// Most bounds how many records are read; 0: 1,000,000. They are sent over and
	// over.
	Most int

	read *records.File // once the run has started
}

// load reads the file.
func (d *Data) load(ctx context.Context) (err error) {
	d.read, err = records.ReadFile(ctx, d.Path, d.Most)
	return err
}

// keyspace is an object with the keys that the run has used in it.
type keyspace struct {
	object records.Object
	used   atomic.Int64 // numbers below it may have been sent
	keys   int64        // how many there are
	as     records.Sync
}

// task is one kind of batch of a mix.
type task struct {
	shape    *records.Shape
	keyspace *keyspace
	weight   float64 // of all tasks: up to this, cumulated and scaled to 1
	rows     []records.Row
	// inTurn: rows come from a file and are sent one after the other, over and
	// over; else they are put into batches once.
	inTurn bool
	turn   atomic.Int64
	// own: the rows have their own identifiers, which stay. sweeps: every key of
	// the keyspace once, from the first to the last.
	own, sweeps bool
}

// creates reports operations that write new keys.
func (t *task) creates() bool {
	return t.shape.Operation == rpc.OperationUpsert || t.shape.Operation == rpc.OperationInsert
}

// plan is the whole work of a run, ready to be sent.
type plan struct {
	tasks   []*task
	grounds []*keyspace
	size    int
	keys    records.Keys
	primed  bool // the mix needs records before it starts
}

// normalised checks the shares of a mix.
func normalised(what string, shares []Share, fallback string) ([]Share, error) {
	if len(shares) == 0 && fallback != "" {
		shares = []Share{{Name: fallback}}
	}
	out := slices.Clone(shares)
	for i, s := range out {
		if s.Weight == 0 {
			out[i].Weight = 1
		}
		if s.Name == "" || out[i].Weight < 0 || out[i].Weight > 1e9 {
			return nil, wire.Usagef("%s %q: a share is NAME or NAME=WEIGHT with a weight above 0", what, s.Name)
		}
		if slices.ContainsFunc(out[:i], func(o Share) bool { return o.Name == s.Name }) {
			return nil, wire.Usagef("%s %q is named twice", what, s.Name)
		}
	}
	return out, nil
}

// names of shares.
func names(shares []Share) []string {
	return lists.Of(shares, func(s Share) string { return s.Name })
}

// newPlan makes the tasks of a mix. Everything that can be refused is refused
// here, before the first batch.
func newPlan(w Work, d *targetWords, keys records.Keys, seed uint64, syncRun int64) (*plan, error) {
	objects, err := normalised("object", w.Objects, "")
	if err != nil {
		return nil, err
	}
	operations, err := normalised("operation", w.Operations, rpc.OperationUpsert)
	if err != nil {
		return nil, err
	}
	p := &plan{size: w.BatchSize, keys: keys, primed: true}
	p.size = cmp.Or(p.size, int(min(d.Speed.MaximumBatchSize, 10_000)))
	sum := 0.0
	for i, o := range objects {
		g := &keyspace{object: d.Objects[o.Name], as: records.Sync{ID: int64(i) + 1, Run: syncRun + int64(i)}}
		p.grounds = append(p.grounds, g)
		for _, op := range operations {
			t, err := p.task(w, g, op.Name, seed)
			if err != nil {
				return nil, err
			}
			sum += o.Weight * op.Weight
			t.weight = sum
			p.tasks = append(p.tasks, t)
			p.primed = p.primed && !t.creates()
		}
	}
	for _, t := range p.tasks {
		t.weight /= sum
	}
	return p, nil
}

// task makes one kind of batch with its records.
func (p *plan) task(w Work, g *keyspace, operation string, seed uint64) (*task, error) {
	switch operation {
	case rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationDelete:
	case rpc.OperationMirror:
		return nil, wire.Usagef("operation mirror: no batch has it; a mirror sync sends upsert and delete (--operation upsert=9,delete=1)")
	default:
		return nil, wire.Usagef("operation %q is none of upsert, insert, update and delete", operation)
	}
	o, err := g.object.ForOperation(operation, w.Identifier, w.Fields)
	if err != nil {
		return nil, err
	}
	if !o.Supports(operation) {
		return nil, wire.Usagef("the object %q does not take %s; it has %s", o.APIName, operation, strings.Join(o.Operations, ", "))
	}
	integer := o.Identifier.Type == rpc.TypeInteger
	g.object, g.keys = o, p.keys.Count(integer)
	t := &task{keyspace: g}
	m := &records.Maker{Object: o, Keys: p.keys, Random: rand.New(rand.NewPCG(seed, uint64(len(p.tasks))))}
	switch {
	case w.Data != nil:
		t.inTurn, t.own = true, w.Data.OwnKeys
		t.rows, err = m.FromFile(w.Data.read, w.Data.OwnKeys)
	case len(w.Template) > 0:
		t.rows, err = m.FromTemplate(w.Template)
	default:
		t.rows = make([]records.Row, max(records.Pooled, min(p.size, 10*records.Pooled)))
		for i := range t.rows {
			t.rows[i] = m.Row()
		}
	}
	if err != nil {
		return nil, err
	}
	// The records decide what the plan maps: a file may have fewer fields.
	if t.shape, err = records.NewShape(m.Object, operation, p.size, g.as); err != nil {
		return nil, err
	}
	if t.own && !t.creates() {
		return nil, wire.Usagef("operation %s with the identifiers of the file: only upsert and insert write them", operation)
	}
	return t, nil
}

// primer is the task that writes records for those that need some.
func (p *plan) primer(w Work, g *keyspace, seed uint64) (*task, error) {
	operation := rpc.OperationUpsert
	if !g.object.Supports(operation) {
		operation = rpc.OperationInsert
	}
	t, err := p.task(w, g, operation, seed)
	if err != nil {
		return nil, fmt.Errorf("prepare records of %s: %w", g.object.APIName, err)
	}
	return t, nil
}

// pick chooses a task by its weight.
func (p *plan) pick(random *rand.Rand) *task {
	if len(p.tasks) == 1 {
		return p.tasks[0]
	}
	at := random.Float64()
	for _, t := range p.tasks {
		if at < t.weight {
			return t
		}
	}
	return p.tasks[len(p.tasks)-1]
}

// take reserves n new keys of an object; false: there are not so many left.
func (g *keyspace) take(n int64) (first int64, ok bool) {
	first = g.used.Add(n) - n
	if first+n > g.keys {
		g.used.Add(-n)
		return 0, false
	}
	return first, true
}
