package write

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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
	secrets *wire.Redactor
}

// of returns the results for a record, in the order of the reply.
func (b *Batch) ResultsOf(r *Record) []exchange.Result { return b.Of(exchange.KeyText(r.Key)) }

// Succeeded reports whether the record has a result and that each says success.
func (b *Batch) Succeeded(r *Record) bool { return b.Say(exchange.KeyText(r.Key), true) }

// Failed reports whether the record has a result and that each says failure.
func (b *Batch) Failed(r *Record) bool { return b.Say(exchange.KeyText(r.Key), false) }

// Refused reports whether a record was refused: by its results, or by an error in place
// of them where it was sent alone.
func (b *Batch) Refused(r *Record) bool {
	return b.Failed(r) || len(b.Records) == 1 && b.Reply.IsError()
}

// RefusalOf is the message of a record that was refused, "" when it was not. It looks for
// secrets in it, which takes long: refused answers most questions.
func (b *Batch) RefusalOf(r *Record) string {
	switch {
	case !b.Refused(r):
		return ""
	case b.Failed(r):
		return b.clean(cmp.Or(b.ResultsOf(r)[0].Text(), "no message"))
	default:
		return b.clean(cmp.Or(b.Reply.ErrorText(), "an error without a message"))
	}
}

// clean takes secrets out of a text before anything cuts it.
func (b *Batch) clean(text string) string {
	if b.secrets == nil {
		return text
	}
	return b.secrets.String(text)
}

// Answered reports whether results came back, be they good or bad.
func (b *Batch) Answered() bool { return b.IsArray }

// why describes what came instead of a success for a record.
func (b *Batch) WhyOf(r *Record) string { return b.Why(r.Key) }

func (b *Batch) Read() {
	b.Batch = rules.NewBatch(b.Object.APIName, b.Operation, lists.Of(b.Records, func(r *Record) json.RawMessage { return r.Key }), b.Reply)
}

// Plan is how a batch is sent; the zero value is what the service would do.
type Plan struct {
	mapped  []rpc.Field  // nil: the fields of the records
	params  []byte       // the whole params, instead
	odd     bool         // deliberately outside the published schema
	request line.Request // connection and timing details
}

// Write sends records with an operation, in batches no larger than the
// endpoint declares, each noted in the journal before it leaves.
func (sc *Scenario) Write(operation string, records []*Record, how Plan) ([]*Batch, error) {
	var out []*Batch
	for chunk := range slices.Chunk(records, sc.LargestBatch()) {
		b, err := sc.WriteOne(operation, chunk, how)
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

// needsBatch is NOT_APPLICABLE where the endpoint takes no batch of n records.
func (sc *Scenario) needsBatch(n int) error {
	if most := sc.LargestBatch(); most < n {
		return line.NotApplicable("the endpoint takes batches of %d at most, and the check needs %s in one", most, quantity.Count(n, "record"))
	}
	return nil
}

// WriteOne sends exactly one batch. The caller may run several at once; each
// has its own scenario or adds the batch itself under a lock.
func (sc *Scenario) WriteOne(operation string, records []*Record, how Plan) (*Batch, error) {
	b, err := sc.batch(sc, operation, records, how)
	if b != nil {
		sc.Batches = append(sc.Batches, b)
		sc.Replies = append(sc.Replies, b.Reply)
	}
	return b, err
}

// batch sends one batch and reads its results; it is safe for parallel use.
func (s *Session) batch(sc *Scenario, operation string, records []*Record, how Plan) (*Batch, error) {
	if len(records) == 0 {
		return nil, line.Harness("no records to send")
	}
	if most := s.LargestBatch(); len(records) > most {
		return nil, line.Harness("the judge was about to send %s in one batch, and the endpoint declares %d at most", quantity.Count(len(records), "record"), most)
	}
	first := records[0]
	b := &Batch{Object: first.Object, Operation: operation, Records: records, secrets: s.Redactor}
	if err := s.Reserve(len(records)); err != nil {
		return nil, err
	}
	params := how.params
	if params == nil {
		params = sc.BatchParams(operation, records, how.mapped)
	}
	seq, err := s.Announce(operation, records)
	if err != nil {
		return nil, err
	}
	req := how.request
	req.Method, req.Params, req.Object, req.Records = rpc.MethodSyncBatch, params, first.Object.APIName, len(records)
	req.Odd, req.Once = req.Odd || how.odd, line.TakesEffectOnce(operation)
	entered := sc.entered(operation, records)
	s.Ledger.Begin(entered)
	b.Reply, err = s.Send(sc.Ctx, sc.Check().ID, req)
	_, unsent := errors.AsType[line.UnsentError](err)
	if b.Reply != nil {
		b.Read()
		unsent = b.Reply.Unsent()
	}
	sc.enter(entered, b, unsent)
	if unsent {
		s.GiveBack(len(records))
		err = cmp.Or(s.withdraw(seq, b), err)
	}
	if err != nil || unsent {
		return b.orNone(), err
	}
	sc.Wrote.Store(time.Now().UnixNano())
	return b, s.Finish(seq, b)
}

// orNone is a batch that was sent, nil else.
func (b *Batch) orNone() *Batch {
	if b.Reply == nil {
		return nil
	}
	return b
}

// withdraw notes in the journal that no byte of a batch has left: nothing was changed.
func (s *Session) withdraw(seq int64, b *Batch) error {
	if seq < 0 {
		return nil
	}
	var unchanged []json.RawMessage
	for _, r := range b.Records {
		if _, key := r.journalled(); key != nil {
			unchanged = append(unchanged, key)
		}
	}
	if err := s.Journal.Finish(seq, nil, unchanged); err != nil {
		return line.Harness("%w", err)
	}
	return nil
}

// Announce writes a batch into the journal before anything is sent; -1 stands
// for a batch without a key, of which nothing can be left behind.
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
	if seq < 0 || !b.Answered() {
		return nil
	}
	var acknowledged, refused []json.RawMessage
	for _, r := range b.Records {
		_, key := r.journalled()
		switch {
		case key == nil:
		case b.Succeeded(r):
			acknowledged = append(acknowledged, key)
		case b.Failed(r):
			refused = append(refused, key)
		}
	}
	if err := s.Journal.Finish(seq, acknowledged, refused); err != nil {
		return line.Harness("%w", err)
	}
	return nil
}

// syncRun is the sync_run_id of this scenario: every run of a check is a sync
// run of its own, so that nothing of another one can be mistaken for it.
func (sc *Scenario) syncRun() int64 {
	sc.runOnce.Do(func() { sc.run = sc.syncRuns.Add(2) })
	return sc.run
}

// BatchParams writes the params of sync_batch in the published key order.
func (sc *Scenario) BatchParams(operation string, records []*Record, mapped []rpc.Field) []byte {
	first := records[0]
	if mapped == nil {
		mapped = mappedFields(records)
	}
	ref, _ := json.Marshal(first.Object.Ref())
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"sync_plan":{"object":%s,"operation":%s,"sync_run_id":%d,"sync_id":%d,"schema":{`,
		ref, values.Quote(operation), sc.syncRun(), sc.syncRun()/2)
	for i, f := range mapped {
		if i > 0 {
			out.WriteByte(',')
		}
		entry, _ := json.Marshal(rpc.SchemaField{ActiveIdentifier: f.APIName == first.ID.APIName, Field: f})
		fmt.Fprintf(&out, "%s:%s", values.Quote(f.APIName), entry)
	}
	out.WriteString(`}},"records":[`)
	for i, r := range records {
		if i > 0 {
			out.WriteByte(',')
		}
		r.encode(&out, operation, mapped)
	}
	out.WriteString("]}")
	return out.Bytes()
}

// mappedFields are the fields that the records carry, in the object's order.
func mappedFields(records []*Record) []rpc.Field {
	first := records[0]
	out := lists.Where(first.Object.Fields, func(f rpc.Field) bool {
		return slices.ContainsFunc(records, func(r *Record) bool { _, ok := r.Values[f.APIName]; return ok })
	})
	for _, r := range records {
		for name := range r.Values {
			if !slices.ContainsFunc(out, func(f rpc.Field) bool { return f.APIName == name }) {
				out = append(out, NewField(name))
			}
		}
	}
	return out
}

// NewField describes a field that the destination is to create on write.
func NewField(name string) rpc.Field {
	return rpc.Field{APIName: name, Label: name, Createable: true, Updateable: true, Type: rpc.TypeString}
}
