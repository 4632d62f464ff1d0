package destination

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
)

// sending is the way in which a step sends its records; the zero value sends
// ordinary records in batches as large as the endpoint allows.
type sending struct {
	identifiers []rpc.Field // at least one in sendsNew
	every       bool        // maps every field that can be written, not only the ordinary ones
	shapes      []func(sc *scenario, r *record) *record
	twice       bool
	alone       bool // records of a refused batch go again, each alone
	plan        func(sc *scenario, op string, records []*record) plan

	split    int  // records in a batch; 0: as many as allowed
	spread   bool // over as many batches as may be under way at once
	through  func(sc *scenario, s set) ([]*batch, error)
	parallel bool // all batches at once
	copies   int  // the same records that many times at once, other values each
	rounds   int  // that many sets of new records at once
	cutReply bool
}

// shape changes a record as the way asks.
func (m *sending) shape(sc *scenario, r *record) *record {
	for _, f := range m.shapes {
		r = f(sc, r)
	}
	return r
}

// sendingWays reads the words behind the operation of a step.
func (sc *scenario) manner(words string) (*sending, error) {
	m := &sending{identifiers: []rpc.Field{{}}}
	o := sc.object
	switch words = strings.TrimPrefix(words, ", "); words {
	case "":
	case "mapping every field":
		m.every = true
	case "mapping every field but arrays":
		m.every = true
		m.shapes = append(m.shapes, func(_ *scenario, r *record) *record {
			return r.keep(func(f rpc.Field) bool { return !f.Array || f.Required })
		})
	case "mapping a new field":
		name := sc.newFieldName()
		m.shapes = append(m.shapes, func(_ *scenario, r *record) *record { return r.with(name, values.Quote("new")) })
	case "by each identifier":
		m.identifiers = o.identifiers()
	case "by the integer identifier":
		m.identifiers = slices.DeleteFunc(o.identifiers(), func(f rpc.Field) bool { return f.Type != rpc.TypeInteger })[:1]
	case "by the second identifier":
		m.identifiers = o.identifiers()[1:2]
		if f, fixed := o.fixedIdentifier(m.identifiers[0]); fixed {
			return nil, notApplicable("%s is required and may not be updated, so that every plan matches by it as well", f)
		}
		m.shapes = append(m.shapes, withoutOtherIdentifiers)
	case "by a field that is no identifier":
		f, _ := o.noIdentifier()
		m.identifiers = []rpc.Field{f}
		m.shapes = append(m.shapes, withRealKey)
	case "mapping only what is required":
		m.shapes = append(m.shapes, onlyRequired)
	case "mapping every second field":
		m.shapes = append(m.shapes, everySecond)
	case "mapping only the identifier":
		m.shapes, m.alone = append(m.shapes, onlyIdentifier), true
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
		m.through = (*scenario).sendsInLanes
	case "in bodies of 0.2, 1 and 4 MB":
		m.through = (*scenario).sendsLarge
	case "at the declared rate":
		m.through = (*scenario).sendsAtRate
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
		m.plan = func(*scenario, string, []*record) plan {
			return plan{request: request{header: http.Header{"Authorization": nil}}}
		}
	case "on a fresh connection":
		m.plan = func(*scenario, string, []*record) plan { return plan{request: request{fresh: true}} }
	case "cutting the reply":
		m.cutReply = true
	case "with null in every optional field":
		m.every = true
		m.shapes = append(m.shapes, nullRest)
	case "with nulls by turns":
		m.every = true
		m.shapes = append(m.shapes, nullsInTurn)
	case "with arrays of each length":
		m.shapes = append(m.shapes, arraysInTurn)
	case "mapping one field beyond what is required":
		m.shapes = append(m.shapes, oneBeyond)
	case "mapping fewer fields":
		m.shapes = append(m.shapes, fewerFields)
	case "8 times in parallel with other values":
		m.copies = 8
	case "4 times in parallel":
		m.rounds = 4
	default:
		return nil, harness("no manner is called %q", words)
	}
	return m, nil
}

// fixedIdentifier is another identifier that every plan must map and that no
// update may change: it is always there to be matched by.
func (o *object) fixedIdentifier(active rpc.Field) (string, bool) {
	for _, f := range o.identifiers() {
		if f.APIName != active.APIName && f.Required && !f.Updateable {
			return f.APIName, true
		}
	}
	return "", false
}

// withoutOtherIdentifiers leaves the other identifiers out of a record that was
// sent before, or gives those that every plan must map another value, so that
// only the active one can match.
func withoutOtherIdentifiers(sc *scenario, r *record) *record {
	if e := sc.expectedOf(r); e == nil || !e.Exists {
		return r
	}
	c := *r
	c.values = map[string]json.RawMessage{}
	for name, raw := range r.values {
		switch f, _ := r.object.field(name); {
		case !f.Identifier || name == r.id.APIName:
			c.values[name] = raw
		case f.Required:
			if key, err := sc.key(r.object, f); err == nil {
				c.values[name] = key
			}
		}
	}
	return &c
}

func (sc *scenario) expectedOf(r *record) *expected {
	if sc.model == nil || sc.model.at[r.place()] == nil {
		return nil
	}
	return sc.model.get(r)
}

// withRealKey gives the record the values of its true identifiers as well.
func withRealKey(sc *scenario, r *record) *record {
	for _, f := range r.object.identifiers() {
		if _, ok := r.values[f.APIName]; ok {
			continue
		}
		if key, err := sc.key(r.object, f); err == nil {
			r = r.with(f.APIName, key)
		}
	}
	return r
}

// reversedPlan sends schema and records in different orders of members.
func reversedPlan(sc *scenario, op string, records []*record) plan {
	mapped := mappedFields(records)
	params := sc.batchParams(op, records, mapped)
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
	return plan{params: out.Bytes()}
}

// newFieldName is the field that OBJ-005 creates on write.
func (sc *scenario) newFieldName() string { return "zz_conf_" + sc.keys.Run }

// withoutKeyPlan is what the service never sends, as the check says: the first
// half of the records without the identifier, the rest with null in its place.
func withoutKeyPlan(sc *scenario, op string, records []*record) plan {
	mapped := mappedFields(records)
	params := sc.batchParams(op, records, mapped)
	i := bytes.Index(params, []byte(`"records":[`))
	var out bytes.Buffer
	out.Write(params[:i])
	out.WriteString(`"records":[`)
	for i, r := range records {
		if i > 0 {
			out.WriteByte(',')
		}
		c := *r
		c.values = map[string]json.RawMessage{}
		for name, raw := range r.values {
			if name != r.id.APIName {
				c.values[name] = raw
			} else if i >= len(records)/2 {
				c.values[name] = json.RawMessage("null")
			}
		}
		c.encode(&out, "", mapped)
	}
	out.WriteString("]}")
	return plan{params: out.Bytes(), odd: true}
}

// send sends one set.
func (m *sending) send(sc *scenario, s set) ([]*batch, error) {
	if m.spread || m.copies > 0 || m.rounds > 0 {
		if err := sc.needsSecondConnection(); err != nil {
			return nil, err
		}
	}
	how := plan{}
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
		m.split = min(sc.perLane(len(s.records)), sc.largestBatch())
	}
	if m.split == 0 {
		return sc.write(s.operation, s.records, how)
	}
	parts := slices.Collect(slices.Chunk(s.records, m.split))
	if m.parallel {
		return sc.writeAtOnce(s.operation, parts, how)
	}
	var out []*batch
	for _, p := range parts {
		sent, err := sc.write(s.operation, p, how)
		out = append(out, sent...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// sendPlanned sends the records by plans that the way makes.
func (m *sending) sendPlanned(sc *scenario, s set) ([]*batch, error) {
	var out []*batch
	for part := range slices.Chunk(s.records, sc.largestBatch()) {
		b, err := sc.writeOne(s.operation, part, m.plan(sc, s.operation, part))
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
func (sc *scenario) perLane(n int) int {
	lanes := 1
	if sc.catalog.speed != nil {
		lanes = min(parallelCap(*sc.catalog.speed), n)
	}
	return (n + lanes - 1) / lanes
}

// writeAtOnce sends batches in parallel, as many at once as is declared.
func (sc *scenario) writeAtOnce(operation string, parts [][]*record, how plan) ([]*batch, error) {
	out := make([]*batch, len(parts))
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { out[i], errs[i] = sc.batch(sc, operation, p, how) })
	}
	wg.Wait()
	for i, b := range out {
		if b != nil {
			sc.batches = append(sc.batches, b)
			sc.replies = append(sc.replies, b.reply)
		}
		if errs[i] != nil {
			return slices.DeleteFunc(out, func(b *batch) bool { return b == nil }), errs[i]
		}
	}
	return out, nil
}

// sendAndCut closes the connection in the middle of the reply. What became of
// the records is unknown until they are sent again.
func (m *sending) sendAndCut(sc *scenario, s set) error {
	for part := range slices.Chunk(s.records, sc.largestBatch()) {
		if _, err := sc.batch(sc, s.operation, part, plan{request: request{cutReply: 1}}); err != nil {
			return err
		}
	}
	for _, r := range s.records {
		sc.model.get(r)
	}
	return nil
}

// sendCopies sends the same keys in parallel, each batch with values of its own.
func (m *sending) sendCopies(sc *scenario, s set) ([]*batch, error) {
	parts := make([][]*record, m.copies)
	for i := range parts {
		for _, r := range s.records {
			parts[i] = append(parts[i], mixable(sc.changed(r, i+1)))
		}
	}
	sc.parallel.copies = parts
	var chunks [][]*record
	for _, p := range parts {
		chunks = slices.AppendSeq(chunks, slices.Chunk(p, sc.largestBatch()))
	}
	return sc.writeAtOnce(s.operation, chunks, plan{})
}

// sendRounds sends several sets of new records of every operation in parallel.
func (m *sending) sendRounds(sc *scenario, s set) ([]*batch, error) {
	rounds := sc.parallel.rounds
	for range m.rounds {
		records, err := sc.make(len(s.records), s.operation, rpc.Field{}, &sending{})
		if err != nil {
			return nil, err
		}
		for part := range slices.Chunk(records, sc.largestBatch()) {
			rounds = append(rounds, dueBatch{s.operation, part})
		}
	}
	sc.parallel.rounds = rounds
	if s.operation != sc.sets[len(sc.sets)-1].operation {
		return nil, nil // the last set sends them all at once
	}
	out := make([]*batch, len(rounds))
	errs := make([]error, len(rounds))
	var wg sync.WaitGroup
	for i, r := range rounds {
		wg.Go(func() { out[i], errs[i] = sc.batch(sc, r.operation, r.records, plan{}) })
	}
	wg.Wait()
	for i, b := range out {
		if errs[i] != nil {
			return nil, errs[i]
		}
		sc.batches = append(sc.batches, b)
		sc.replies = append(sc.replies, b.reply)
	}
	return out, nil
}
