package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"github.com/destkit/destkit/conformance/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// set is the records that one When sends with one operation.
type set struct {
	operation string
	records   []*record
}

const (
	whichOperation = `(operation "[a-z]+"|the creating operation|the changing operation|any operation|each operation|an operation that is not advertised)`
	manner         = `((?:, [^:]+)?)`
)

// recordSteps choose an object and send records.
func recordSteps() []definition {
	return []definition{
		step(`^an object$`, func(w *world) any { return w.anObject }),
		step(`^an object that accepts "([a-z]+)"(?: or "([a-z]+)")?$`, func(w *world) any { return w.objectAccepts }),
		step(`^an object that can create records$`, func(w *world) any { return w.objectCreates }),
		step(`^an object with (two identifier fields|a field that is no identifier|fields created on write|an integer identifier|an array field|a known bad record|two operations|a witness operation)$`,
			func(w *world) any { return w.objectWith }),
		step(`^the service sends (\d+) new records? with `+whichOperation+manner+`$`, func(w *world) any { return w.sendsNew }),
		step(`^the service sends the same records( with other values)? with `+whichOperation+`(?: (\d+) times)?`+manner+`$`,
			func(w *world) any { return w.sendsSame }),
		step(`^the service sends the (first|same records and) (\d+) (?:records|new ones) with `+whichOperation+`$`, func(w *world) any { return w.sendsSome }),
		step(`^the service sends new records with these (values|identifiers) with `+whichOperation+`:$`, func(w *world) any { return w.sendsThese }),
		step(`^the service sends (\d+) good records and (\d+) bad records? with `+whichOperation+`$`, func(w *world) any { return w.sendsBad }),
		step(`^the service sends no records (?:(to every other object) )?with any operation$`, func(w *world) any { return w.sendsNone }),
		step(`^the service writes (\d+) records into existing fields if it may$`, func(w *world) any { return w.writesIfItMay }),
	}
}

func (w *world) anObject() error {
	if w.object == nil {
		return notRun("--object", "looks at one object: name it with --object NAME")
	}
	if _, err := w.object.identifier(); err != nil {
		return err
	}
	if len(w.object.writing()) == 0 {
		return notApplicable("%s advertises no operation", w.object)
	}
	return nil
}

func (w *world) objectAccepts(first, second string) error {
	if err := w.anObject(); err != nil {
		return err
	}
	if w.object.accepts(first) || second != "" && w.object.accepts(second) {
		return nil
	}
	names := first
	if second != "" {
		names += " or " + second
	}
	if first == rpc.OperationDelete {
		names = rpc.OperationMirror
	}
	return notApplicable("%s does not advertise %s", w.object, names)
}

func (w *world) objectCreates() error {
	if err := w.anObject(); err != nil {
		return err
	}
	if w.object.creating() == "" {
		return notApplicable("%s advertises no operation that creates records", w.object)
	}
	return nil
}

func (w *world) objectWith(what string) error {
	if err := w.anObject(); err != nil {
		return err
	}
	o := w.object
	has := false
	switch what {
	case "two identifier fields":
		has = len(o.identifiers()) > 1
	case "a field that is no identifier":
		_, has = o.noIdentifier()
	case "fields created on write":
		has = o.CanCreateFields == rpc.CanCreateOnWrite
	case "an integer identifier":
		has = slices.ContainsFunc(o.identifiers(), func(f rpc.Field) bool { return f.Type == rpc.TypeInteger })
	case "an array field":
		has = slices.ContainsFunc(o.Fields, func(f rpc.Field) bool { return f.Array && f.Createable && f.Updateable })
	case "two operations":
		has = len(o.writing()) > 1
	case "a witness operation":
		has = o.accepts(rpc.OperationUpdate) || o.accepts(rpc.OperationInsert)
	case "a known bad record":
		if _, _, ok := w.badField(); !ok {
			return notRun("fixtures", "%s has no required field to leave null: describe a bad record under fixtures: {%s: {bad: {FIELD: VALUE}}}", o, o.APIName)
		}
		return nil
	}
	if !has {
		return notApplicable("%s has not %s", o, what)
	}
	return nil
}

// identifiers are the fields that may be the active identifier.
func (o *object) identifiers() []rpc.Field {
	return slices.DeleteFunc(slices.Clone(o.Fields), func(f rpc.Field) bool {
		return !f.Identifier || f.Array || f.Type != rpc.TypeString && f.Type != rpc.TypeInteger
	})
}

// noIdentifier is a writable string field that is not declared an identifier.
func (o *object) noIdentifier() (rpc.Field, bool) {
	for _, f := range o.Fields {
		if !f.Identifier && f.Type == rpc.TypeString && !f.Array && f.Createable && f.Updateable {
			return f, true
		}
	}
	return rpc.Field{}, false
}

// operations resolves the words of a step.
func (w *world) operations(which string) ([]string, error) {
	o := w.object
	if o == nil {
		return nil, harness("no object is chosen")
	}
	one := func(op, missing string) ([]string, error) {
		if op == "" {
			return nil, notApplicable("%s advertises no operation that %s", o, missing)
		}
		return []string{op}, nil
	}
	switch which {
	case "the creating operation":
		return one(o.creating(), "creates records")
	case "the changing operation":
		op := rpc.OperationUpsert
		if !o.accepts(op) {
			op = o.modifying()
		}
		return one(op, "changes records")
	case "any operation":
		return o.writing()[:1], nil
	case "each operation":
		return o.writing(), nil
	case "an operation that is not advertised":
		for _, op := range []string{rpc.OperationUpdate, rpc.OperationInsert, rpc.OperationUpsert} {
			if !o.accepts(op) {
				return []string{op}, nil
			}
		}
		return nil, notApplicable("%s advertises every operation", o)
	}
	return []string{strings.Trim(strings.TrimPrefix(which, "operation "), `"`)}, nil
}

// sendsNew makes records and sends them, a set of its own for each operation.
func (w *world) sendsNew(n int, which, how string) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	m, err := w.manner(how)
	if err != nil {
		return err
	}
	w.sets = nil
	for _, op := range ops {
		for _, id := range m.identifiers {
			records, err := w.make(n, op, id, m)
			if err != nil {
				return err
			}
			w.sets = append(w.sets, set{op, records})
		}
	}
	return w.sendSets(m)
}

// sendsSame sends the records of the earlier step again, with their own
// operation ("each operation") or another one.
func (w *world) sendsSame(other, which, times, how string) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	m, err := w.manner(how)
	if err != nil {
		return err
	}
	if which != "each operation" {
		var all []*record
		for _, s := range w.sets {
			all = append(all, s.records...)
		}
		w.sets = []set{{ops[0], all}}
	}
	for i := range w.sets {
		w.sets[i].records = w.again(w.sets[i].records, other != "", m)
	}
	n, _ := strconv.Atoi(times) // absent: once
	for range max(1, n) {
		if err := w.sendSets(m); err != nil {
			return err
		}
	}
	return nil
}

// again prepares records for another sending.
func (w *world) again(records []*record, other bool, m *sending) []*record {
	out := make([]*record, len(records))
	for i, r := range records {
		if other {
			r = w.changed(r, r.n+50)
		}
		out[i] = m.shape(w, r)
	}
	return out
}

func (w *world) sendsSome(what string, n int, which string) error {
	if what == "first" {
		return w.sendsFirst(n, which)
	}
	return w.sendsSameAndNew(n, which)
}

func (w *world) sendsSameAndNew(n int, which string) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	old := w.sets[0].records
	fresh, err := w.make(n, ops[0], old[0].id, &sending{})
	if err != nil {
		return err
	}
	// The existing ones carry other values, so that an overwrite shows.
	w.sets = []set{{ops[0], append(w.again(old, true, &sending{}), fresh...)}}
	return w.sendSets(&sending{})
}

func (w *world) sendsFirst(n int, which string) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	first := w.history[0].records
	w.sets = []set{{ops[0], first[:min(n, len(first))]}}
	return w.sendSets(&sending{})
}

// make builds n new records for an operation, by an identifier field.
func (w *world) make(n int, op string, id rpc.Field, m *sending) ([]*record, error) {
	if id.APIName == "" {
		var err error
		if id, err = w.object.identifier(); err != nil {
			return nil, err
		}
	}
	out := make([]*record, 0, n)
	for i := range n {
		r, err := w.newRecord(w.object, id, i+1)
		if err != nil {
			return nil, err
		}
		if op == rpc.OperationUpdate {
			r = r.updateable()
		}
		out = append(out, m.shape(w, r))
	}
	if m.twice {
		out = append(out, out...)
	}
	return out, nil
}

// updateable leaves out what an update may not write.
func (r *record) updateable() *record {
	c := *r
	c.values = map[string]json.RawMessage{}
	for name, raw := range r.values {
		if f, ok := r.object.field(name); !ok || f.Updateable || name == r.id.APIName {
			c.values[name] = raw
		}
	}
	return &c
}

// sendSets sends every set in the wanted manner and follows the results.
func (w *world) sendSets(m *sending) error {
	if w.model == nil {
		w.model = newModel()
	}
	w.modelBefore = w.model.clone()
	w.latest = nil
	for _, s := range w.sets {
		w.history = append(w.history, s)
		sent, err := m.send(w, s)
		if err == nil && m.alone {
			sent, err = w.sendAlone(s.operation, sent)
		}
		w.latest = append(w.latest, sent...)
		for _, b := range sent {
			w.model.apply(b)
		}
		if err != nil {
			return err
		}
		if slices.ContainsFunc(sent, func(b *batch) bool { return b.reply.Kind == wire.KindTimeout }) {
			break // one lost deadline is enough to judge
		}
	}
	w.waves = append(w.waves, w.latest)
	return nil
}

func (w *world) sendsNone(which string) error {
	if which == "" {
		return w.sendEmpty(w.object)
	}
	others := 0
	for _, o := range w.catalog.objects {
		if o.APIName != w.object.APIName && len(o.writing()) > 0 {
			others++
			if err := w.sendEmpty(o); err != nil {
				return err
			}
		}
	}
	if others == 0 {
		return notApplicable("the endpoint lists one object only")
	}
	return nil
}

func (w *world) sendEmpty(o *object) error {
	params, ok := w.emptyBatch(o)
	if !ok {
		return nil
	}
	_, err := w.send(request{method: rpc.MethodSyncBatch, params: params, object: o.APIName})
	return err
}

// writesIfItMay writes into the first named object that takes new records; a
// run without writes judges by reading alone.
func (w *world) writesIfItMay(n int) error {
	if !w.opts.Write {
		w.note("judged without writes: --write sees more")
		return nil
	}
	defer func() { w.object = nil }()
	for _, name := range w.opts.Objects {
		o := w.catalog.object(name)
		if o == nil || o.creating() == "" {
			continue
		}
		w.object = o
		records, err := w.newRecords(n)
		if err != nil {
			w.note("%s: %v", o, err)
			continue
		}
		_, err = w.write(o.creating(), records, plan{})
		return err
	}
	return nil
}

// badField is the field that makes a record bad: the author's fixture, else a
// required field that is left null.
func (w *world) badField() (fields map[string]json.RawMessage, sure, ok bool) {
	if bad := w.opts.Fixtures[w.object.APIName].Bad; len(bad) > 0 {
		fields = map[string]json.RawMessage{}
		for name, raw := range bad {
			fields[name] = json.RawMessage(raw)
		}
		return fields, true, true
	}
	for _, f := range w.object.Fields {
		if f.Required && !f.Identifier && f.Createable {
			return map[string]json.RawMessage{f.APIName: json.RawMessage("null")}, false, true
		}
	}
	return nil, false, false
}

// sendsBad puts the bad records into the middle of the good ones.
func (w *world) sendsBad(good, bad int, which string) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	records, err := w.make(good+bad, ops[0], rpc.Field{}, &sending{})
	if err != nil {
		return err
	}
	fields, sure, _ := w.badField()
	w.badSure = sure
	for i := range bad {
		at := good/2 + i
		for name, raw := range fields {
			records[at] = records[at].with(name, raw)
		}
		w.bad = append(w.bad, records[at])
	}
	w.sets = []set{{ops[0], records}}
	return w.sendSets(&sending{})
}

// sendsThese sends one record for each row: | identifier | or | type | value |.
func (w *world) sendsThese(what, which string, table *godog.Table) error {
	ops, err := w.operations(which)
	if err != nil {
		return err
	}
	id, err := w.object.identifier()
	if err != nil {
		return err
	}
	w.valuesMatter = true
	key, err := w.key(id) // one for all rows, so that they differ as written
	if err != nil {
		return err
	}
	base := strings.Trim(string(key), `"`)
	var records []*record
	for i, row := range table.Rows {
		var r *record
		if what == "identifiers" {
			r, err = w.withIdentifier(id, i+1, base, row.Cells[0].Value)
		} else {
			r, err = w.withValue(id, i+1, row.Cells[0].Value, row.Cells[1].Value)
		}
		if err != nil {
			return err
		}
		if r != nil {
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return notApplicable("%s has no field of that type", w.object)
	}
	w.sets = []set{{ops[0], records}}
	return w.sendSets(&sending{alone: true})
}

// sendAlone repeats the records of a batch that was refused as a whole one by
// one, as the service does (spec 7.2.5): an odd record may spoil its batch.
func (w *world) sendAlone(operation string, sent []*batch) ([]*batch, error) {
	var out []*batch
	for _, b := range sent {
		if len(b.records) == 1 || !b.reply.isError() {
			out = append(out, b)
			continue
		}
		w.batches = slices.DeleteFunc(w.batches, func(o *batch) bool { return o == b })
		for _, r := range b.records {
			one, err := w.writeOne(operation, []*record{r}, plan{})
			if err != nil {
				return out, err
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// withIdentifier makes a record whose key is written in the table: {key} is an
// ordinary key of the run, {odd} a number beyond 2^53 that doubles cannot hold.
func (w *world) withIdentifier(id rpc.Field, n int, key, text string) (*record, error) {
	quoted := strings.HasPrefix(text, `"`)
	if quoted != (id.Type == rpc.TypeString) {
		return nil, nil // the row is for identifiers of the other type
	}
	r, err := w.newRecord(w.object, id, n)
	if err != nil {
		return nil, err
	}
	odd := int64(9007199254740993)
	if w.opts.KeyFrom != 0 || w.opts.KeyTo != 0 {
		if id.Type == rpc.TypeInteger {
			return nil, nil // the author bounds integer keys: none beyond 2^53
		}
	}
	run, _ := strconv.ParseInt(w.keys.run, 16, 64)
	odd += 2 * (run*1000 + int64(n))
	text = strings.ReplaceAll(text, "{odd}", strconv.FormatInt(odd, 10))
	text = strings.ReplaceAll(text, "{key}", key)
	return r.with(id.APIName, json.RawMessage(text)), nil
}

// withValue makes a record with one value written in the table, in the first
// writable field of that type; nil when the object has none.
func (w *world) withValue(id rpc.Field, n int, kind, text string) (*record, error) {
	f, ok := w.object.writable(kind)
	if !ok {
		return nil, nil
	}
	r, err := w.newRecord(w.object, id, n)
	if err != nil {
		return nil, err
	}
	if kind == "array" {
		items := map[string][]int{"[]": nil, "one item": {1}, "three items in falling order": {3, 2, 1}}[text]
		item := f
		item.Array = false
		parts := make([]string, len(items))
		for i, v := range items {
			parts[i] = string(value(item, v))
		}
		return r.with(f.APIName, json.RawMessage("["+strings.Join(parts, ",")+"]")), nil
	}
	for _, size := range []int{300, 65536} {
		text = strings.ReplaceAll(text, fmt.Sprintf("{%d}", size), strings.Repeat("abcdefghij", size/10+1)[:size])
	}
	return r.with(f.APIName, json.RawMessage(text)), nil
}

// writable is the first field of a type (or any array field) that create and
// update may both write and that is no identifier.
func (o *object) writable(kind string) (rpc.Field, bool) {
	for _, f := range o.Fields {
		fits := f.Type == kind && !f.Array || kind == "array" && f.Array
		if fits && f.Createable && f.Updateable && !f.Identifier {
			return f, true
		}
	}
	return rpc.Field{}, false
}
