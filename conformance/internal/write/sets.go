package write

import (
	"slices"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// Set is the records that one When sends with one operation.
type Set struct {
	Operation string
	Records   []*Record
}

// ForOperation leaves out of the records what an operation may not write.
func ForOperation(operation string, records []*Record) []*Record {
	if operation != rpc.OperationUpdate {
		return records
	}
	return lists.Of(records, (*Record).Updateable)
}

// Make builds n new records for an operation, by an identifier field or the object's.
func (sc *Scenario) Make(n int, op string, id rpc.Field, m *Sending) ([]*Record, error) {
	if id.APIName == "" {
		var err error
		if id, err = sc.Object.Identifier(); err != nil {
			return nil, err
		}
	}
	fields := sc.Object.Ordinary(id)
	if m.Every {
		fields = sc.Object.Every(id)
		sc.LeavesOut()
	}
	out := make([]*Record, 0, n)
	for range n {
		r, err := sc.RecordWith(sc.Object, id, fields)
		if err != nil {
			return nil, err
		}
		if op == rpc.OperationUpdate {
			r = r.Updateable()
		}
		out = append(out, m.Shape(sc, r))
	}
	if m.twice {
		out = append(out, lists.Of(out, func(r *Record) *Record { return sc.Changed(r, 1) })...)
	}
	return out, nil
}

// SendSets sends every set in the wanted way and follows the results.
func (sc *Scenario) SendSets(m *Sending) error {
	if sc.Model == nil {
		sc.Model = sc.NewView()
	}
	if err := sc.lookBefore(); err != nil {
		return err
	}
	sc.Latest = nil
	for _, s := range sc.Sets {
		sc.History = append(sc.History, s)
		sent, err := m.send(sc, s)
		if err == nil && m.Alone {
			sent, err = sc.SendAlone(s.Operation, sent)
		}
		sc.Latest = append(sc.Latest, sent...)
		for _, b := range sent {
			sc.Model.Follow(b)
			sc.KeepRefusal(b)
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(sent, func(b *Batch) bool { return b.Reply.Kind == wire.KindTimeout }) {
			break // one lost deadline is enough to judge
		}
	}
	sc.Waves = append(sc.Waves, sc.Latest)
	return nil
}

// lookBefore reads back existing records, so that the next batch can be judged by what it changes.
func (sc *Scenario) lookBefore() error {
	sc.Before = map[model.Place]Observed{}
	all := sc.Model.All()
	var seen map[string]Observed
	var err error
	if sc.Readback != nil && len(all) > 0 {
		if seen, err = sc.Observe(RecordsOf(all)); err != nil {
			return err
		}
	}
	for _, e := range all {
		was := seen[exchange.KeyText(e.Record.Key)]
		if seen != nil {
			sc.Before[e.Record.Place()] = was
		}
		switch {
		case e.Operation == rpc.OperationDelete && e.Refused:
			return engine.Inconclusive("", "the delete of %s was refused (OPS-007), so that what follows shows nothing", e.Record.Key)
		case e.Known && e.Created && !e.Exists && was.Count > 0:
			return engine.Inconclusive("", "%s is still there after its delete was acknowledged (SEM-009), so that what follows shows nothing", e.Record.Key)
		}
	}
	return nil
}

// KeepRefusal keeps the first message of the endpoint about a record that it refuses.
func (sc *Scenario) KeepRefusal(b *Batch) {
	for _, r := range b.Records {
		if sc.Refusal() == "" {
			sc.Refused(foreign.Clip(b.RefusalOf(r), 200))
		}
	}
}

// SendAlone repeats the records of a batch that was refused as a whole one by
// one, as the service does (spec 7.2.5): an odd record may spoil its batch.
func (sc *Scenario) SendAlone(operation string, sent []*Batch) ([]*Batch, error) {
	var out []*Batch
	for _, b := range sent {
		if len(b.Records) == 1 || !b.Reply.IsError() {
			out = append(out, b)
			continue
		}
		sc.Batches = slices.DeleteFunc(sc.Batches, func(o *Batch) bool { return o == b })
		for _, r := range b.Records {
			one, err := sc.WriteOne(operation, []*Record{r}, Plan{})
			if err != nil {
				return out, err
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// Fits reports whether a field has the type of a row: "array" is any array, "texts" one of strings, "integers" one of
// these, "any" all that may be null.
func Fits(f rpc.Field, kind string) bool {
	switch kind {
	case "array":
		return f.Array
	case values.TypeArray:
		return f.Array && f.Type == rpc.TypeString
	case "any":
		return !f.Required
	}
	return f.Array && f.Type+"s" == kind || f.Type == kind && !f.Array
}

// Takes lists the fields that carry a value of a table. Text goes into those that are known to want a format only
// where there is no other.
func (o *Object) Takes(id rpc.Field, kind string, differs bool) []rpc.Field {
	var free, formatted []rpc.Field
	for _, f := range o.Fields {
		if len(free)+len(formatted) >= mostFields {
			break
		}
		switch {
		case !Fits(f, kind) || !BothWays(f) || f.APIName == id.APIName || o.Avoids(f.APIName) || o.Unique(f.APIName) && !differs:
		case (kind == rpc.TypeString || kind == values.TypeArray) && (values.Guessed(f) != nil || o.learned(f.APIName).Refusal != ""):
			formatted = append(formatted, f)
		default:
			free = append(free, f)
		}
	}
	if len(free) > 0 {
		return free
	}
	return formatted
}

// Purpose is one thing that an operation is for: new records of insert and
// upsert, records that are there for upsert, update and delete (spec 4.2).
type Purpose struct {
	Operation string
	Existing  bool
}

func (p Purpose) String() string {
	if p.Existing {
		return p.Operation + " of records that are there"
	}
	return p.Operation + " of new records"
}

// Purposes of the operations that the object advertises.
func (o *Object) Purposes(deletes bool) []Purpose {
	return lists.Where([]Purpose{
		{rpc.OperationInsert, false}, {rpc.OperationUpsert, false}, {rpc.OperationUpsert, true},
		{rpc.OperationUpdate, true}, {rpc.OperationDelete, true},
	}, func(p Purpose) bool {
		return o.Accepts(p.Operation) && (deletes || p.Operation != rpc.OperationDelete)
	})
}

// Accepted counts what became of the records of one set of the latest When.
func (sc *Scenario) Accepted(s Set) (yes, no int, refusal string, where *exchange.Reply) {
	for b, r := range Each(sc.Latest) {
		switch {
		case b.Operation != s.Operation || !Holds(s.Records, r):
		case b.Succeeded(r):
			yes++
		case b.Refused(r):
			if no++; refusal == "" {
				refusal, where = b.RefusalOf(r), b.Reply
			}
		}
	}
	return yes, no, refusal, where
}

// ChangesNothing reports whether the records carry nothing but what identifies them.
func (sc *Scenario) ChangesNothing(s Set) bool {
	return !slices.ContainsFunc(s.Records, func(r *Record) bool { return len(sc.FieldsThatChange(r)) > 0 })
}

// FieldsThatChange are those of a record that an update of it can change.
func (sc *Scenario) FieldsThatChange(r *Record) []string {
	var out []string
	for name := range r.Values {
		if f, ok := r.Object.Field(name); ok && BothWays(f) && name != r.ID.APIName {
			out = append(out, name)
		}
	}
	return out
}

// DeciderKeys decides what was refused for the keys that the judge has chosen.
const DeciderKeys = "--key-range"

// LastBatch is the last one of the latest When, empty without one.
func (sc *Scenario) LastBatch() *Batch {
	if len(sc.Latest) == 0 {
		return &Batch{}
	}
	return sc.Latest[len(sc.Latest)-1]
}

// LastOperation is that of the last batch, "" without one.
func (sc *Scenario) LastOperation() string { return sc.LastBatch().Operation }

// BatchAt is the last batch that named the place of a record.
func (sc *Scenario) BatchAt(r *Record) *Batch {
	for _, b := range slices.Backward(sc.Batches) {
		if Holds(b.Records, r) {
			return b
		}
	}
	return nil
}

// ReplyFor is the reply to the last batch that carried a record.
func (sc *Scenario) ReplyFor(r *Record) *exchange.Reply {
	if b := sc.BatchAt(r); b != nil {
		return b.Reply
	}
	return nil
}

// Symptoms of records that are not where they must be.
const (
	SymptomMissing = "not there"
	SymptomRenamed = "under another identifier"
)
