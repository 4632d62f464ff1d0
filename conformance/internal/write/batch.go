package write

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// Batch is one sync_batch call with what came back.
type Batch struct {
	Object    *Object
	Operation string
	Records   []*Record
	Reply     *exchange.Reply
	rules.Batch
	secrets *wire.Redactor // nil for none
}

// Each goes through the records of batches.
func Each(batches []*Batch) iter.Seq2[*Batch, *Record] {
	return func(yield func(*Batch, *Record) bool) {
		for _, b := range batches {
			for _, r := range b.Records {
				if !yield(b, r) {
					return
				}
			}
		}
	}
}

// ResultsOf returns the results for a record, in the order of the reply.
func (b *Batch) ResultsOf(r *Record) []exchange.Result { return b.Of(exchange.KeyText(r.Key)) }

// Succeeded reports whether the record has results and all report success.
func (b *Batch) Succeeded(r *Record) bool { return b.Say(exchange.KeyText(r.Key), true) }

// Failed reports whether the record has results and all report failure.
func (b *Batch) Failed(r *Record) bool { return b.Say(exchange.KeyText(r.Key), false) }

// Refused reports whether a record was refused: by its results, or by an error where it was sent alone.
func (b *Batch) Refused(r *Record) bool {
	return b.Failed(r) || len(b.Records) == 1 && b.Reply.IsError()
}

// RefusalOf is the message of a refused record without secrets, whose search takes long; "" for none.
func (b *Batch) RefusalOf(r *Record) string {
	if !b.Refused(r) {
		return ""
	}
	text := cmp.Or(b.Reply.ErrorText(), "an error without a message")
	if b.Failed(r) {
		text = cmp.Or(b.ResultsOf(r)[0].Text(), "no message")
	}
	if b.secrets != nil {
		text = b.secrets.String(text)
	}
	return text
}

// Answered reports whether results came back, be they good or bad.
func (b *Batch) Answered() bool { return b.IsArray }

// WhyOf describes what came instead of a success for a record.
func (b *Batch) WhyOf(r *Record) string { return b.Why(r.Key) }

// Read reads the results out of the reply.
func (b *Batch) Read() {
	b.Batch = rules.NewBatch(b.Object.APIName, b.Operation, lists.Of(b.Records, func(r *Record) json.RawMessage { return r.Key }), b.Reply)
}

// Plan is the request of a batch without its records; the zero value is as the service sends it.
type Plan = line.Request

// Write sends records in batches no larger than declared, each noted in the journal before it leaves.
func (sc *Scenario) Write(operation string, records []*Record, how Plan) ([]*Batch, error) {
	return sc.WriteEach(operation, slices.Chunk(records, sc.LargestBatch()), func([]*Record) Plan { return how })
}

// WriteEach sends batches one after the other.
func (sc *Scenario) WriteEach(operation string, parts iter.Seq[[]*Record], how func([]*Record) Plan) ([]*Batch, error) {
	var out []*Batch
	for part := range parts {
		b, err := sc.WriteOne(operation, part, how(part))
		if err != nil {
			return out, err
		}
		out = append(out, b)
	}
	return out, nil
}

// LargestBatch is the declared size of a batch: no batch is larger (spec 4.2).
func (s *Session) LargestBatch() int {
	if s.Catalog == nil || s.Catalog.Speed == nil {
		return math.MaxInt
	}
	return int(max(1, min(s.Catalog.Speed.MaximumBatchSize, math.MaxInt32)))
}

// WriteOne sends exactly one batch. It is not safe for parallel use.
func (sc *Scenario) WriteOne(operation string, records []*Record, how Plan) (*Batch, error) {
	b, err := sc.batch(operation, records, how)
	sc.KeepBatches(b)
	return b, err
}

// KeepBatches adds batches to those of the scenario, without those that are nil.
func (sc *Scenario) KeepBatches(batches ...*Batch) {
	for _, b := range batches {
		if b != nil {
			sc.Batches, sc.Replies = append(sc.Batches, b), append(sc.Replies, b.Reply)
		}
	}
}

// batch sends one batch and reads its results; nil when nothing was sent. It is safe for parallel use.
func (sc *Scenario) batch(operation string, records []*Record, how Plan) (*Batch, error) {
	if len(records) == 0 {
		return nil, line.Harness("no records to send")
	}
	if most := sc.LargestBatch(); len(records) > most {
		return nil, line.Harness("the judge was about to send %s in one batch, and the endpoint declares %d at most", quantity.Count(len(records), "record"), most)
	}
	b := &Batch{Object: records[0].Object, Operation: operation, Records: records, secrets: sc.Redactor}
	if err := sc.Session.Reserve(len(records)); err != nil {
		return nil, err
	}
	if how.Params == nil {
		how.Params = sc.BatchParams(operation, records, nil)
	}
	seq, err := sc.Announce(operation, records)
	if err != nil {
		return nil, err
	}
	how.Method, how.Object, how.Records, how.Once = rpc.MethodSyncBatch, b.Object.APIName, len(records), line.TakesEffectOnce(operation)
	entered := sc.entered(operation, records)
	sc.Ledger.Begin(entered)
	b.Reply, err = sc.Session.Send(sc.Ctx, sc.Check().ID, how)
	_, unsent := errors.AsType[line.UnsentError](err)
	if b.Reply != nil {
		b.Read()
		unsent = b.Reply.Unsent()
	}
	sc.enter(entered, b, unsent)
	if unsent {
		sc.GiveBack(len(records))
		err = cmp.Or(sc.finish(seq, b, func(*Record) bool { return true }), err)
	}
	switch {
	case b.Reply == nil:
		return nil, err
	case err != nil || unsent:
		return b, err
	}
	sc.Wrote.Store(time.Now().UnixNano())
	return b, sc.Finish(seq, b)
}

// Announce writes a batch into the journal before it is sent; -1 means one without a key.
func (s *Session) Announce(operation string, records []*Record) (int64, error) {
	var ids []json.RawMessage
	field := ""
	for _, r := range records {
		f, key := r.journalled()
		if field = f; key != nil {
			ids = append(ids, key)
		}
	}
	if len(ids) == 0 {
		return -1, nil
	}
	seq, err := s.Journal.Begin(records[0].Object.APIName, field, operation, ids)
	if err != nil {
		return 0, line.Harness("%w", err)
	}
	return seq, nil
}

// Finish notes in the journal what became of a batch.
func (s *Session) Finish(seq int64, b *Batch) error {
	if !b.Answered() {
		return nil
	}
	return s.finish(seq, b, b.Failed)
}

// finish is Finish with the records that a batch has left as they were.
func (s *Session) finish(seq int64, b *Batch, unchanged func(*Record) bool) error {
	if seq < 0 {
		return nil
	}
	var acknowledged, refused []json.RawMessage
	for _, r := range b.Records {
		switch _, key := r.journalled(); {
		case key == nil:
		case b.Succeeded(r):
			acknowledged = append(acknowledged, key)
		case unchanged(r):
			refused = append(refused, key)
		}
	}
	if err := s.Journal.Finish(seq, acknowledged, refused); err != nil {
		return line.Harness("%w", err)
	}
	return nil
}

// syncRun is the sync_run_id: each scenario is a separate sync run with a distinct id.
func (sc *Scenario) syncRun() int64 {
	sc.runOnce.Do(func() { sc.run = sc.syncRuns.Add(2) })
	return sc.run
}

// BatchParams writes the params of sync_batch; mapped is nil for the fields of the records.
func (sc *Scenario) BatchParams(operation string, records []*Record, mapped []rpc.Field) []byte {
	if mapped == nil {
		mapped = mappedFields(records)
	}
	return sc.params(operation, records[0], mapped, records, mapped)
}

// EmptyBatch are the params of a batch without records; nil where the object accepts no operation.
func (sc *Scenario) EmptyBatch(o *Object) []byte {
	id, err := o.Identifier()
	if operations := o.Writing(); err == nil && len(operations) > 0 {
		return sc.params(operations[0], &Record{Object: o, ID: id}, []rpc.Field{id}, nil)
	}
	return nil
}

// params writes the plan of a record like first in the published key order, and the members of records in these orders
// by turns: of a delete the identifier only, since no endpoint may need more.
func (sc *Scenario) params(operation string, first *Record, mapped []rpc.Field, records []*Record, orders ...[]rpc.Field) []byte {
	var out bytes.Buffer
	follows := func(n int) {
		if n > 0 {
			out.WriteByte(',')
		}
	}
	ref, _ := json.Marshal(first.Object.Ref())
	fmt.Fprintf(&out, `{"sync_plan":{"object":%s,"operation":%s,"sync_run_id":%d,"sync_id":%d,"schema":{`,
		ref, values.Quote(operation), sc.syncRun(), sc.syncRun()/2)
	for i, f := range mapped {
		follows(i)
		entry, _ := json.Marshal(rpc.SchemaField{ActiveIdentifier: f.APIName == first.ID.APIName, Field: f})
		fmt.Fprintf(&out, "%s:%s", values.Quote(f.APIName), entry)
	}
	out.WriteString(`}},"records":[`)
	for i, r := range records {
		follows(i)
		out.WriteByte('{')
		n := 0
		for _, f := range orders[i%len(orders)] {
			if raw, ok := r.Values[f.APIName]; ok && (operation != rpc.OperationDelete || f.APIName == first.ID.APIName) {
				follows(n)
				fmt.Fprintf(&out, "%s:%s", values.Quote(f.APIName), raw)
				n++
			}
		}
		out.WriteByte('}')
	}
	out.WriteString("]}")
	return out.Bytes()
}

// mappedFields are the fields that the records carry, in the object's order, new ones last.
func mappedFields(records []*Record) []rpc.Field {
	carried := map[string]bool{}
	for _, r := range records {
		for name := range r.Values {
			carried[name] = true
		}
	}
	out := lists.Where(records[0].Object.Fields, func(f rpc.Field) bool { return carried[f.APIName] })
	for _, f := range out {
		delete(carried, f.APIName)
	}
	return append(out, lists.Of(slices.Sorted(maps.Keys(carried)), NewField)...)
}

// NewField describes a field that the destination is to create on write.
func NewField(name string) rpc.Field {
	return rpc.Field{APIName: name, Label: name, Createable: true, Updateable: true, Type: rpc.TypeString}
}
