package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"github.com/destkit/destkit/destsim/rpc"
)

// valueSteps send records whose values or identifiers are written in a table,
// and records that must not be accepted.
func valueSteps() []definition {
	return []definition{
		step(`^the service sends new records with these (values|identifiers) with `+whichOperation+`:$`, func(w *world) any { return w.sendsThese }),
		step(`^the service sends (\d+) good records and (\d+) bad records? with `+whichOperation+`$`, func(w *world) any { return w.sendsBad }),
	}
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
