package destination

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
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// batch is one sync_batch call with what came back.
type batch struct {
	object    *object
	operation string
	records   []*record
	reply     *reply
	rules.Batch
	secrets *wire.Redactor
}

// of returns the results for a record, in the order of the reply.
func (b *batch) resultsOf(r *record) []result { return b.Of(exchange.KeyText(r.key)) }

// succeeded reports whether the record has a result and that each says success.
func (b *batch) succeeded(r *record) bool { return b.Say(exchange.KeyText(r.key), true) }

// failed reports whether the record has a result and that each says failure.
func (b *batch) failed(r *record) bool { return b.Say(exchange.KeyText(r.key), false) }

// refused reports whether a record was refused: by its results, or by an error in place
// of them where it was sent alone.
func (b *batch) refused(r *record) bool {
	return b.failed(r) || len(b.records) == 1 && b.reply.IsError()
}

// refusalOf is the message of a record that was refused, "" when it was not. It looks for
// secrets in it, which takes long: refused answers most questions.
func (b *batch) refusalOf(r *record) string {
	switch {
	case !b.refused(r):
		return ""
	case b.failed(r):
		return b.clean(cmp.Or(b.resultsOf(r)[0].Text(), "no message"))
	default:
		return b.clean(cmp.Or(b.reply.ErrorText(), "an error without a message"))
	}
}

// clean takes secrets out of a text before anything cuts it.
func (b *batch) clean(text string) string {
	if b.secrets == nil {
		return text
	}
	return b.secrets.String(text)
}

// answered reports whether results came back, be they good or bad.
func (b *batch) answered() bool { return b.IsArray }

// why describes what came instead of a success for a record.
func (b *batch) whyOf(r *record) string { return b.Why(r.key) }

func (b *batch) read() {
	b.Batch = rules.NewBatch(b.object.APIName, b.operation, lists.Of(b.records, func(r *record) json.RawMessage { return r.key }), b.reply)
}

// plan is how a batch is sent; the zero value is what the service would do.
type plan struct {
	mapped  []rpc.Field // nil: the fields of the records
	params  []byte      // the whole params, instead
	odd     bool        // deliberately outside the published schema
	request request     // connection and timing details
}

// write sends records with an operation, in batches no larger than the
// endpoint declares, each noted in the journal before it leaves.
func (sc *scenario) write(operation string, records []*record, how plan) ([]*batch, error) {
	var out []*batch
	for chunk := range slices.Chunk(records, sc.largestBatch()) {
		b, err := sc.writeOne(operation, chunk, how)
		if err != nil {
			return out, err
		}
		out = append(out, b)
	}
	return out, nil
}

// largestBatch is the declared size of a batch: no batch is larger (spec 4.2).
func (s *session) largestBatch() int {
	if s.catalog == nil || s.catalog.speed == nil {
		return math.MaxInt
	}
	return int(max(1, min(s.catalog.speed.MaximumBatchSize, math.MaxInt32)))
}

// needsBatch is NOT_APPLICABLE where the endpoint takes no batch of n records.
func (sc *scenario) needsBatch(n int) error {
	if most := sc.largestBatch(); most < n {
		return notApplicable("the endpoint takes batches of %d at most, and the check needs %s in one", most, quantity.Count(n, "record"))
	}
	return nil
}

// writeOne sends exactly one batch. The caller may run several at once; each
// has its own scenario or adds the batch itself under a lock.
func (sc *scenario) writeOne(operation string, records []*record, how plan) (*batch, error) {
	b, err := sc.batch(sc, operation, records, how)
	if b != nil {
		sc.batches = append(sc.batches, b)
		sc.replies = append(sc.replies, b.reply)
	}
	return b, err
}

// batch sends one batch and reads its results; it is safe for parallel use.
func (s *session) batch(sc *scenario, operation string, records []*record, how plan) (*batch, error) {
	if len(records) == 0 {
		return nil, harness("no records to send")
	}
	if most := s.largestBatch(); len(records) > most {
		return nil, harness("the judge was about to send %s in one batch, and the endpoint declares %d at most", quantity.Count(len(records), "record"), most)
	}
	first := records[0]
	b := &batch{object: first.object, operation: operation, records: records, secrets: s.redactor}
	if err := s.reserve(len(records)); err != nil {
		return nil, err
	}
	params := how.params
	if params == nil {
		params = sc.batchParams(operation, records, how.mapped)
	}
	seq, err := s.announce(operation, records)
	if err != nil {
		return nil, err
	}
	req := how.request
	req.method, req.params, req.object, req.records = rpc.MethodSyncBatch, params, first.object.APIName, len(records)
	req.odd, req.once = req.odd || how.odd, takesEffectOnce(operation)
	entered := sc.entered(operation, records)
	s.ledger.Begin(entered)
	b.reply, err = s.send(sc.ctx, sc.Check().ID, req)
	_, unsent := errors.AsType[unsentError](err)
	if b.reply != nil {
		b.read()
		unsent = b.reply.Unsent()
	}
	sc.enter(entered, b, unsent)
	if unsent {
		s.giveBack(len(records))
		err = cmp.Or(s.withdraw(seq, b), err)
	}
	if err != nil || unsent {
		return b.orNone(), err
	}
	sc.wrote.Store(time.Now().UnixNano())
	return b, s.finish(seq, b)
}

// orNone is a batch that was sent, nil else.
func (b *batch) orNone() *batch {
	if b.reply == nil {
		return nil
	}
	return b
}

// withdraw notes in the journal that no byte of a batch has left: nothing was changed.
func (s *session) withdraw(seq int64, b *batch) error {
	if seq < 0 {
		return nil
	}
	var unchanged []json.RawMessage
	for _, r := range b.records {
		if _, key := r.journalled(); key != nil {
			unchanged = append(unchanged, key)
		}
	}
	if err := s.journal.Finish(seq, nil, unchanged); err != nil {
		return harness("%w", err)
	}
	return nil
}

// announce writes a batch into the journal before anything is sent; -1 stands
// for a batch without a key, of which nothing can be left behind.
func (s *session) announce(operation string, records []*record) (int64, error) {
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
	seq, err := s.journal.Begin(records[0].object.APIName, field, operation, ids)
	if err != nil {
		return 0, harness("%w", err)
	}
	return seq, nil
}

// finish notes in the journal what became of a batch.
func (s *session) finish(seq int64, b *batch) error {
	if seq < 0 || !b.answered() {
		return nil
	}
	var acknowledged, refused []json.RawMessage
	for _, r := range b.records {
		_, key := r.journalled()
		switch {
		case key == nil:
		case b.succeeded(r):
			acknowledged = append(acknowledged, key)
		case b.failed(r):
			refused = append(refused, key)
		}
	}
	if err := s.journal.Finish(seq, acknowledged, refused); err != nil {
		return harness("%w", err)
	}
	return nil
}

// syncRun is the sync_run_id of this scenario: every run of a check is a sync
// run of its own, so that nothing of another one can be mistaken for it.
func (sc *scenario) syncRun() int64 {
	sc.runOnce.Do(func() { sc.run = sc.syncRuns.Add(2) })
	return sc.run
}

// batchParams writes the params of sync_batch in the published key order.
func (sc *scenario) batchParams(operation string, records []*record, mapped []rpc.Field) []byte {
	first := records[0]
	if mapped == nil {
		mapped = mappedFields(records)
	}
	ref, _ := json.Marshal(first.object.Ref())
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"sync_plan":{"object":%s,"operation":%s,"sync_run_id":%d,"sync_id":%d,"schema":{`,
		ref, values.Quote(operation), sc.syncRun(), sc.syncRun()/2)
	for i, f := range mapped {
		if i > 0 {
			out.WriteByte(',')
		}
		entry, _ := json.Marshal(rpc.SchemaField{ActiveIdentifier: f.APIName == first.id.APIName, Field: f})
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
func mappedFields(records []*record) []rpc.Field {
	first := records[0]
	out := lists.Where(first.object.Fields, func(f rpc.Field) bool {
		return slices.ContainsFunc(records, func(r *record) bool { _, ok := r.values[f.APIName]; return ok })
	})
	for _, r := range records {
		for name := range r.values {
			if !slices.ContainsFunc(out, func(f rpc.Field) bool { return f.APIName == name }) {
				out = append(out, newField(name))
			}
		}
	}
	return out
}

// newField describes a field that the destination is to create on write.
func newField(name string) rpc.Field {
	return rpc.Field{APIName: name, Label: name, Createable: true, Updateable: true, Type: rpc.TypeString}
}
