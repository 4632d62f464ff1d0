package write

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
)

// Sending is the way in which a step sends its records; the zero value sends
// ordinary records in batches as large as the endpoint allows.
type Sending struct {
	Identifiers []rpc.Field // at least one in sendsNew
	Every       bool        // maps every field that can be written, not only the ordinary ones
	Shapes      []func(sc *Scenario, r *Record) *Record
	twice       bool
	Alone       bool // records of a refused batch go again, each alone
	plan        func(sc *Scenario, op string, records []*Record) Plan

	split    int  // records in a batch; 0: as many as allowed
	spread   bool // over as many batches as may be under way at once
	through  func(sc *Scenario, s Set) ([]*Batch, error)
	parallel bool // all batches at once
	copies   int  // the same records that many times at once, other values each
	rounds   int  // that many sets of new records at once
	cutReply bool
}

// Shape changes a record as the way asks.
func (m *Sending) Shape(sc *Scenario, r *Record) *Record {
	for _, f := range m.Shapes {
		r = f(sc, r)
	}
	return r
}

// sendingWays reads the words behind the operation of a step.
func (sc *Scenario) Manner(words string) (*Sending, error) {
	m := &Sending{Identifiers: []rpc.Field{{}}}
	o := sc.Object
	switch words = strings.TrimPrefix(words, ", "); words {
	case "":
	case "mapping every field":
		m.Every = true
	case "mapping every field but arrays":
		m.Every = true
		m.Shapes = append(m.Shapes, func(_ *Scenario, r *Record) *Record {
			return r.keep(func(f rpc.Field) bool { return !f.Array || f.Required })
		})
	case "mapping a new field":
		name := sc.NewFieldName()
		m.Shapes = append(m.Shapes, func(_ *Scenario, r *Record) *Record { return r.With(name, values.Quote("new")) })
	case "by each identifier":
		m.Identifiers = o.Identifiers()
	case "by the integer identifier":
		m.Identifiers = slices.DeleteFunc(o.Identifiers(), func(f rpc.Field) bool { return f.Type != rpc.TypeInteger })[:1]
	case "by the second identifier":
		m.Identifiers = o.Identifiers()[1:2]
		if f, fixed := o.fixedIdentifier(m.Identifiers[0]); fixed {
			return nil, line.NotApplicable("%s is required and may not be updated, so that every plan matches by it as well", f)
		}
		m.Shapes = append(m.Shapes, withoutOtherIdentifiers)
	case "by a field that is no identifier":
		f, _ := o.NoIdentifier()
		m.Identifiers = []rpc.Field{f}
		m.Shapes = append(m.Shapes, withRealKey)
	case "mapping only what is required":
		m.Shapes = append(m.Shapes, OnlyRequired)
	case "mapping every second field":
		m.Shapes = append(m.Shapes, everySecond)
	case "mapping only the identifier":
		m.Shapes, m.Alone = append(m.Shapes, onlyIdentifier), true
	case "in another sync run":
		sc.run = sc.syncRun() + 1 // of the same sync
	case "in another sync":
		sc.syncRun()
		sc.run = sc.syncRuns.Add(2)
	case "in parallel batches":
		m.parallel, m.spread = true, true
	case "one by one":
		m.split = 1
	case "one by one in parallel, each followed by a witness":
		m.through = (*Scenario).sendsInLanes
	case "in bodies of 0.2, 1 and 4 MB":
		m.through = (*Scenario).sendsLarge
	case "at the declared rate":
		m.through = (*Scenario).sendsAtRate
	case "one by one in parallel":
		m.split, m.parallel = 1, true
	case "each twice":
		if err := sc.needsBatch(2); err != nil {
			return nil, err
		}
		m.twice = true
	case "with members in reverse order":
		m.plan = reversedPlan
	case "without their identifier":
		m.plan = withoutKeyPlan
	case "without credentials":
		m.plan = func(*Scenario, string, []*Record) Plan {
			return Plan{request: line.Request{Header: http.Header{"Authorization": nil}}}
		}
	case "on a fresh connection":
		m.plan = func(*Scenario, string, []*Record) Plan { return Plan{request: line.Request{Fresh: true}} }
	case "cutting the reply":
		m.cutReply = true
	case "with null in every optional field":
		m.Every = true
		m.Shapes = append(m.Shapes, NullRest)
	case "with nulls by turns":
		m.Every = true
		m.Shapes = append(m.Shapes, NullsInTurn)
	case "with arrays of each length":
		m.Shapes = append(m.Shapes, arraysInTurn)
	case "mapping one field beyond what is required":
		m.Shapes = append(m.Shapes, oneBeyond)
	case "mapping fewer fields":
		m.Shapes = append(m.Shapes, fewerFields)
	case "8 times in parallel with other values":
		m.copies = 8
	case "4 times in parallel":
		m.rounds = 4
	default:
		return nil, line.Harness("no manner is called %q", words)
	}
	return m, nil
}

// fixedIdentifier is another identifier that every plan must map and that no
// update may change: it is always there to be matched by.
func (o *Object) fixedIdentifier(active rpc.Field) (string, bool) {
	for _, f := range o.Identifiers() {
		if f.APIName != active.APIName && f.Required && !f.Updateable {
			return f.APIName, true
		}
	}
	return "", false
}

// withoutOtherIdentifiers leaves the other identifiers out of a record that was
// sent before, or gives those that every plan must map another value, so that
// only the active one can match.
func withoutOtherIdentifiers(sc *Scenario, r *Record) *Record {
	if e := sc.expectedOf(r); e == nil || !e.Exists {
		return r
	}
	c := *r
	c.Values = map[string]json.RawMessage{}
	for name, raw := range r.Values {
		switch f, _ := r.Object.Field(name); {
		case !f.Identifier || name == r.ID.APIName:
			c.Values[name] = raw
		case f.Required:
			if key, err := sc.Key(r.Object, f); err == nil {
				c.Values[name] = key
			}
		}
	}
	return &c
}

func (sc *Scenario) expectedOf(r *Record) *Expected {
	if sc.Model == nil || sc.Model.at[r.Place()] == nil {
		return nil
	}
	return sc.Model.Get(r)
}

// withRealKey gives the record the values of its true identifiers as well.
func withRealKey(sc *Scenario, r *Record) *Record {
	for _, f := range r.Object.Identifiers() {
		if _, ok := r.Values[f.APIName]; ok {
			continue
		}
		if key, err := sc.Key(r.Object, f); err == nil {
			r = r.With(f.APIName, key)
		}
	}
	return r
}

// reversedPlan sends schema and records in different orders of members.
func reversedPlan(sc *Scenario, op string, records []*Record) Plan {
	mapped := mappedFields(records)
	params := sc.BatchParams(op, records, mapped)
	back := slices.Clone(mapped)
	slices.Reverse(back)
	var out bytes.Buffer
	i := bytes.Index(params, []byte(`"records":[`))
	out.Write(params[:i])
	out.WriteString(`"records":[`)
	for i, r := range records {
		if i > 0 {
			out.WriteByte(',')
		}
		r.encode(&out, op, back)
	}
	out.WriteString("]}")
	return Plan{params: out.Bytes()}
}

// NewFieldName is the field that OBJ-005 creates on write.
func (sc *Scenario) NewFieldName() string { return "zz_conf_" + sc.Keys.Run }

// withoutKeyPlan is what the service never sends, as the check says: the first
// half of the records without the identifier, the rest with null in its place.
func withoutKeyPlan(sc *Scenario, op string, records []*Record) Plan {
	mapped := mappedFields(records)
	params := sc.BatchParams(op, records, mapped)
	i := bytes.Index(params, []byte(`"records":[`))
	var out bytes.Buffer
	out.Write(params[:i])
	out.WriteString(`"records":[`)
	for i, r := range records {
		if i > 0 {
			out.WriteByte(',')
		}
		c := *r
		c.Values = map[string]json.RawMessage{}
		for name, raw := range r.Values {
			if name != r.ID.APIName {
				c.Values[name] = raw
			} else if i >= len(records)/2 {
				c.Values[name] = json.RawMessage("null")
			}
		}
		c.encode(&out, "", mapped)
	}
	out.WriteString("]}")
	return Plan{params: out.Bytes(), odd: true}
}

// send sends one set.
func (m *Sending) send(sc *Scenario, s Set) ([]*Batch, error) {
	if m.spread || m.copies > 0 || m.rounds > 0 {
		if err := sc.NeedsSecondConnection(); err != nil {
			return nil, err
		}
	}
	how := Plan{}
	switch {
	case m.cutReply:
		return nil, m.sendAndCut(sc, s)
	case m.through != nil:
		return m.through(sc, s)
	case m.copies > 0:
		return m.sendCopies(sc, s)
	case m.rounds > 0:
		return m.sendRounds(sc, s)
	case m.plan != nil:
		return m.sendPlanned(sc, s)
	}
	if m.spread {
		m.split = min(sc.perLane(len(s.Records)), sc.LargestBatch())
	}
	if m.split == 0 {
		return sc.Write(s.Operation, s.Records, how)
	}
	parts := slices.Collect(slices.Chunk(s.Records, m.split))
	if m.parallel {
		return sc.writeAtOnce(s.Operation, parts, how)
	}
	var out []*Batch
	for _, p := range parts {
		sent, err := sc.Write(s.Operation, p, how)
		out = append(out, sent...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// sendPlanned sends the records by plans that the way makes.
func (m *Sending) sendPlanned(sc *Scenario, s Set) ([]*Batch, error) {
	var out []*Batch
	for part := range slices.Chunk(s.Records, sc.LargestBatch()) {
		b, err := sc.WriteOne(s.Operation, part, m.plan(sc, s.Operation, part))
		if b != nil {
			out = append(out, b)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// perLane cuts n records into as many batches as are declared for one time.
func (sc *Scenario) perLane(n int) int {
	lanes := 1
	if sc.Catalog.Speed != nil {
		lanes = min(line.ParallelCap(*sc.Catalog.Speed), n)
	}
	return (n + lanes - 1) / lanes
}

// writeAtOnce sends batches in parallel, as many at once as is declared.
func (sc *Scenario) writeAtOnce(operation string, parts [][]*Record, how Plan) ([]*Batch, error) {
	out := make([]*Batch, len(parts))
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { out[i], errs[i] = sc.batch(sc, operation, p, how) })
	}
	wg.Wait()
	for i, b := range out {
		if b != nil {
			sc.Batches = append(sc.Batches, b)
			sc.Replies = append(sc.Replies, b.Reply)
		}
		if errs[i] != nil {
			return slices.DeleteFunc(out, func(b *Batch) bool { return b == nil }), errs[i]
		}
	}
	return out, nil
}

// sendAndCut closes the connection in the middle of the reply. What became of
// the records is unknown until they are sent again.
func (m *Sending) sendAndCut(sc *Scenario, s Set) error {
	for part := range slices.Chunk(s.Records, sc.LargestBatch()) {
		if _, err := sc.batch(sc, s.Operation, part, Plan{request: line.Request{CutReply: 1}}); err != nil {
			return err
		}
	}
	for _, r := range s.Records {
		sc.Model.Get(r)
	}
	return nil
}

// sendCopies sends the same keys in parallel, each batch with values of its own.
func (m *Sending) sendCopies(sc *Scenario, s Set) ([]*Batch, error) {
	parts := make([][]*Record, m.copies)
	for i := range parts {
		for _, r := range s.Records {
			parts[i] = append(parts[i], mixable(sc.Changed(r, i+1)))
		}
	}
	sc.Parallel.Copies = parts
	var chunks [][]*Record
	for _, p := range parts {
		chunks = slices.AppendSeq(chunks, slices.Chunk(p, sc.LargestBatch()))
	}
	return sc.writeAtOnce(s.Operation, chunks, Plan{})
}

// sendRounds sends several sets of new records of every operation in parallel.
func (m *Sending) sendRounds(sc *Scenario, s Set) ([]*Batch, error) {
	rounds := sc.Parallel.rounds
	for range m.rounds {
		records, err := sc.Make(len(s.Records), s.Operation, rpc.Field{}, &Sending{})
		if err != nil {
			return nil, err
		}
		for part := range slices.Chunk(records, sc.LargestBatch()) {
			rounds = append(rounds, dueBatch{s.Operation, part})
		}
	}
	sc.Parallel.rounds = rounds
	if s.Operation != sc.Sets[len(sc.Sets)-1].Operation {
		return nil, nil // the last set sends them all at once
	}
	out := make([]*Batch, len(rounds))
	errs := make([]error, len(rounds))
	var wg sync.WaitGroup
	for i, r := range rounds {
		wg.Go(func() { out[i], errs[i] = sc.batch(sc, r.operation, r.records, Plan{}) })
	}
	wg.Wait()
	for i, b := range out {
		if errs[i] != nil {
			return nil, errs[i]
		}
		sc.Batches = append(sc.Batches, b)
		sc.Replies = append(sc.Replies, b.Reply)
	}
	return out, nil
}
