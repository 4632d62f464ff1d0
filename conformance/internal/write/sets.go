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
	out := make([]*Record, len(records))
	for i, r := range records {
		out[i] = r.Updateable()
	}
	return out
}

// Make builds n new records for an operation, by an identifier field.
func (sc *Scenario) Make(n int, op string, id rpc.Field, m *Sending) ([]*Record, error) {
	if id.APIName == "" {
		var err error
		if id, err = sc.Object.Identifier(); err != nil {
			return nil, err
		}
	}
	fields := sc.Object.Ordinary(id)
	if m.Every {
		fields = sc.Object.Every(id, false)
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
		out = append(out, out...)
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

// lookBefore reads back what the scenario has written so far, so that the next
// batch can be judged by what it changes.
func (sc *Scenario) lookBefore() error {
	sc.Before = map[model.Place]Observed{}
	for _, e := range sc.Model.All() {
		if e.Operation == rpc.OperationDelete && e.Refused {
			return engine.Inconclusive("", "the delete of %s was refused (OPS-007), so that what follows shows nothing", e.Record.Key)
		}
	}
	if sc.Readback == nil || len(sc.Model.order) == 0 {
		return nil
	}
	records := RecordsOf(sc.Model.All())
	seen, err := sc.Observe(records)
	if err != nil {
		return err
	}
	for _, e := range sc.Model.All() {
		was := seen[exchange.KeyText(e.Record.Key)]
		sc.Before[e.Record.Place()] = was
		if e.Known && e.Created && !e.Exists && was.Count > 0 {
			return engine.Inconclusive("", "%s is still there after its delete was acknowledged (SEM-009), so that what follows shows nothing", e.Record.Key)
		}
	}
	return nil
}

// KeepRefusal notes what the endpoint first says about a record that it refuses.
func (sc *Scenario) KeepRefusal(b *Batch) {
	if sc.Refusal() != "" {
		return
	}
	for _, r := range b.Records {
		if text := b.RefusalOf(r); text != "" {
			sc.Refused(foreign.Clip(text, 200))
			return
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

// Odd is what a row of a table made of a record: the fields that carry the value
// of the row, and what the row says that it is.
type Odd struct {
	Fields []rpc.Field
	What   string
	Key    bool // the row is an identifier
}

// Fits reports whether a field has the type of a row: its own, "array" for any array,
// "texts" for arrays of strings, "any" for all that may be null.
func Fits(f rpc.Field, kind string) bool {
	switch kind {
	case "array":
		return f.Array
	case values.TypeArray:
		return f.Array && f.Type == rpc.TypeString
	case "any":
		return !f.Required
	}
	return f.Type == kind && !f.Array
}

// Takes lists the fields that carry a value of a table: those of its type (or any
// array field, or any that may be null) that create and update may both write.
func (o *Object) Takes(id rpc.Field, kind string, differs bool) []rpc.Field {
	var free, formatted []rpc.Field
	for _, f := range o.Fields {
		if len(free)+len(formatted) >= mostFields {
			break
		}
		if !Fits(f, kind) || !BothWays(f) || f.APIName == id.APIName || o.Avoids(f.APIName) || o.Unique(f.APIName) && !differs {
			continue
		}
		if (kind == rpc.TypeString || kind == values.TypeArray) && (values.Guessed(f) != nil || o.Lessons[f.APIName] != nil && o.Lessons[f.APIName].Refusal != "") {
			formatted = append(formatted, f)
			continue
		}
		free = append(free, f)
	}
	if len(free) > 0 {
		return free
	}
	return formatted
}

// writable is the first free field of a type.
func (o *Object) writable(kind string) (rpc.Field, bool) {
	fields := o.Takes(rpc.Field{}, kind, true)
	if len(fields) == 0 {
		return rpc.Field{}, false
	}
	return fields[0], true
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
	for _, b := range sc.Latest {
		if b.Operation != s.Operation {
			continue
		}
		for _, r := range b.Records {
			if !slices.ContainsFunc(s.Records, func(o *Record) bool { return o.Place() == r.Place() }) {
				continue
			}
			switch {
			case b.Succeeded(r):
				yes++
			case b.Refused(r):
				no++
				if refusal == "" {
					refusal, where = b.RefusalOf(r), b.Reply
				}
			}
		}
	}
	return yes, no, refusal, where
}

// unseenPurpose is a purpose of which not one record was accepted, though records
// were sent for it: what the others show is no evidence of it.
func (sc *Scenario) unseenPurpose() (Purpose, bool) {
	if len(sc.Sets) != len(sc.Purposes) {
		return Purpose{}, false // the scenario ended before they were sent
	}
	for i, p := range sc.Purposes {
		if yes, no, _, _ := sc.Accepted(sc.Sets[i]); yes == 0 && no > 0 && (!sc.LeastPlan || !p.Existing || !sc.ChangesNothing(sc.Sets[i])) {
			return p, true
		}
	}
	return Purpose{}, false
}

// ChangesNothing reports whether the records carry nothing but what identifies them.
func (sc *Scenario) ChangesNothing(s Set) bool {
	return !slices.ContainsFunc(s.Records, func(r *Record) bool { return len(sc.FieldsThatChange(r)) > 0 })
}

// DeciderKeys decides what was refused for the keys that the judge has chosen.
const DeciderKeys = "--key-range"

func (sc *Scenario) LastOperation() string {
	if len(sc.Latest) == 0 {
		return ""
	}
	return sc.Latest[len(sc.Latest)-1].Operation
}

// ReplyFor is the reply to the last batch that carried a record.
func (sc *Scenario) ReplyFor(r *Record) *exchange.Reply {
	for _, b := range slices.Backward(sc.Batches) {
		if slices.ContainsFunc(b.Records, func(o *Record) bool { return o.Place() == r.Place() }) {
			return b.Reply
		}
	}
	return nil
}

func RecordsOf(es []*Expected) []*Record {
	out := make([]*Record, len(es))
	for i, e := range es {
		out[i] = e.Record
	}
	return out
}

const SymptomMissing = "not there"

const SymptomRenamed = "under another identifier"

func (sc *Scenario) FieldsThatChange(r *Record) []string {
	var out []string
	for name := range r.Values {
		if f, ok := r.Object.Field(name); ok && BothWays(f) && name != r.ID.APIName {
			out = append(out, name)
		}
	}
	return out
}
