package destsim

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/rawjson"
)

// record is one record of a batch while it is applied. It is reused for the
// next one: nothing of it may be kept.
type record struct {
	batch *batch
	index int
	raw   codec.RawRecord
	// An apply seam may change these before it calls next.
	object    *object
	operation string  // insert, update, upsert, delete
	active    *column // the active identifier

	identifier []byte // raw, as it is echoed; nil when the record has none
	// Known after parsing.
	cells []cell
	key   []byte // canonical value of the active identifier

	run func(store.Rows) error // the effect under the lock of the key
}

// reset makes the record ready for the next one of its batch.
func (r *record) reset(b *batch, i int, run func(store.Rows) error) {
	*r = record{
		batch: b, index: i, raw: b.Record(i), object: b.object, operation: b.operation,
		active: b.identifier, cells: r.cells[:0], run: run,
	}
	r.identifier, _ = r.raw.Field(r.active.APIName)
}

// apply is the clean effect of one record.
func (r *record) apply() result {
	b := r.batch
	r.cells = r.cells[:0]
	if problem := r.parse(); problem != "" {
		return r.fail("%s", problem)
	}
	s := b.call.sim
	if s.broken.Load() {
		return r.fail(downstreamDown)
	}
	if err := b.unit.With(r.object.table, r.active.quoted, r.key, r.run); err != nil {
		b.failed = err
		return r.fail("the record could not be stored: %v", err)
	}
	return b.outcome
}

// parse checks every value against its field and fills cells and key; it gives
// "" or the sentence for error_message.
func (r *record) parse() string {
	if len(r.identifier) == 0 {
		return "the record lacks its identifier " + string(r.active.quoted)
	}
	if r.identifier[0] == 'n' {
		return "the identifier " + string(r.active.quoted) + " is null"
	}
	for j := 0; j < r.raw.Len(); j++ {
		name, raw := r.raw.At(j)
		if r.operation == rpc.OperationDelete && string(name) != r.active.APIName {
			continue // a delete needs nothing but the key
		}
		if problem := r.take(j, name, raw); problem != "" {
			return problem
		}
	}
	r.changeCells()
	for i := range r.cells {
		if r.cells[i].column.field == r.active.field {
			r.key = r.cells[i].raw
		}
	}
	if r.key == nil {
		return "the record lacks its identifier " + string(r.active.quoted)
	}
	return ""
}

// changeCells runs the seams over the parsed values.
func (r *record) changeCells() {
	c := r.batch.call
	if h := c.sim.chain(); len(h.value) > 0 {
		kept := r.cells[:0]
		for i := range r.cells {
			cell := r.cells[i]
			for _, f := range h.value {
				f(c, r, &cell)
			}
			if cell.raw != nil {
				kept = append(kept, cell)
			}
		}
		r.cells = kept
	}
	for _, f := range c.sim.chain().cells {
		f(c, r)
	}
}

// take adds one member of the record; of a repeated member the last counts.
func (r *record) take(at int, name, raw []byte) string {
	col := r.batch.column(at, name)
	if col == nil {
		return "field " + string(store.Quote(clip(string(name)))) + " is not in the sync plan"
	}
	if col.problem != "" {
		return col.problem
	}
	value, problem := col.canonical(raw)
	if problem != "" {
		return problem
	}
	if value[0] == 'n' && col.Required {
		return "required field " + string(col.quoted) + " is null"
	}
	for i := range r.cells {
		if r.cells[i].column == col {
			r.cells[i].raw = value
			return ""
		}
	}
	r.cells = append(r.cells, cell{col, value})
	return ""
}

// effect reads and changes the rows of the key; the lock is held.
func (r *record) effect(rows store.Rows) (result, error) {
	found, err := rows.Find(r.active.quoted, r.key)
	if err != nil {
		return result{}, err
	}
	switch {
	case r.operation == rpc.OperationDelete:
		for _, old := range found {
			if err := rows.Remove(old); err != nil {
				return result{}, err
			}
		}
		return r.ok(), nil // also when there was none: it is gone
	// spec 4.2: insert only creates, update only modifies, and the destination
	// enforces it (spec 1).
	case len(found) == 0 && r.operation == rpc.OperationUpdate:
		return r.skip(notPresent), nil
	case len(found) > 0 && r.operation == rpc.OperationInsert:
		return r.skip(alreadyPresent), nil
	case len(found) == 0:
		return r.create(rows)
	}
	return r.modify(rows, found)
}

// create stores a new row.
func (r *record) create(rows store.Rows) (result, error) {
	for i := range r.cells {
		if col := r.cells[i].column; !col.Createable {
			return r.fail("field %s cannot be set when a record is created", col.quoted), nil
		}
	}
	for _, f := range r.object.required {
		if r.cell(f) == nil {
			return r.fail("required field %s is missing", f.quoted), nil
		}
	}
	if problem, err := r.prepare(rows, nil); problem != "" || err != nil {
		return r.fail("%s", problem), err
	}
	return r.ok(), rows.Put(nil, encodeCells(r.cells))
}

// modify changes what the record names and leaves the rest untouched.
func (r *record) modify(rows store.Rows, found []*store.Row) (result, error) {
	for i := range r.cells {
		if col := r.cells[i].column; !col.Updateable && col.field != r.active.field {
			return r.fail("field %s cannot be changed", col.quoted), nil
		}
	}
	if problem, err := r.prepare(rows, found); problem != "" || err != nil {
		return r.fail("%s", problem), err
	}
	for _, old := range found {
		if err := rows.Put(old, mergeCells(old.Data, r.cells)); err != nil {
			return result{}, err
		}
	}
	return r.ok(), nil
}

// prepare refuses values that another row holds in a unique field, and creates
// the custom fields that the record is the first to carry.
func (r *record) prepare(rows store.Rows, own []*store.Row) (string, error) {
	for i := range r.cells {
		cell := &r.cells[i]
		if cell.column.pending {
			if problem, err := r.batch.call.sim.createField(r.batch.unit, r.object.APIName, cell.column.field); problem != "" || err != nil {
				return problem, err
			}
		}
		if !cell.column.unique || cell.column.field == r.active.field || bytes.Equal(cell.raw, store.Null) {
			continue
		}
		others, err := rows.Find(cell.column.quoted, cell.raw)
		if err != nil {
			return "", err
		}
		for _, other := range others {
			if !slices.ContainsFunc(own, func(o *store.Row) bool { return o.ID == other.ID }) {
				return "field " + string(cell.column.quoted) + takenValue, nil
			}
		}
	}
	return "", nil
}

// canonical checks one value against the field's type and gives the
// text that is stored: strings in their one canonical encoding, so that
// "\u00e9" and "é" are the same value; everything else as it was sent. raw is
// valid JSON. problem is "" or a sentence for the record's error_message.
func (f *field) canonical(raw []byte) (value []byte, problem string) {
	if raw[0] == 'n' { // null is legal for every type
		return store.Null, ""
	}
	if !f.Array {
		return f.scalar(raw)
	}
	if raw[0] != '[' {
		return nil, fmt.Sprintf("field %q must be an array of %s, not %s", f.APIName, f.Type, kindOf(raw))
	}
	items := itemsOf(raw)
	for i, item := range items {
		if item[0] == 'n' {
			continue
		}
		if items[i], problem = f.scalar(item); problem != "" {
			return nil, problem
		}
	}
	return arrayOf(items), ""
}

// itemsOf are the raw items of an array; arrayOf makes one of such.
func itemsOf(array []byte) (items [][]byte) {
	for i, more, _ := rawjson.FirstElement(array, 0); more; {
		end, _ := rawjson.SkipValue(array, i, 1)
		items = append(items, array[i:end:end])
		i, more, _ = rawjson.NextElement(array, end)
	}
	return items
}

func arrayOf(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// scalar is canonical for one value that is not null.
func (f *field) scalar(raw []byte) ([]byte, string) {
	switch f.Type {
	case rpc.TypeBoolean:
		if raw[0] != 't' && raw[0] != 'f' {
			return nil, f.wrongType(raw, "a boolean")
		}
		return raw, ""
	case rpc.TypeInteger:
		return f.integer(raw)
	case rpc.TypeFloat:
		if !isNumber(raw) {
			return nil, f.wrongType(raw, "a number")
		}
		if v, err := strconv.ParseFloat(string(raw), 64); err != nil || math.IsInf(v, 0) {
			return nil, fmt.Sprintf("field %q is out of the range of a float", f.APIName)
		}
		return raw, ""
	}
	if raw[0] != '"' {
		want := map[string]string{
			rpc.TypeDecimal: `a decimal in a string like "12.34"`, rpc.TypeDate: `a date like "2021-03-29"`,
			rpc.TypeDateTime: `a UTC time like "2021-03-29T16:32:23Z"`,
		}[f.Type]
		return nil, f.wrongType(raw, cmp.Or(want, "a string"))
	}
	return f.text(raw)
}

// isNumber looks at the first byte, which decides in valid JSON.
func isNumber(raw []byte) bool { return raw[0] == '-' || raw[0]-'0' <= 9 }

// integer takes a JSON number without fraction and exponent within 64 bits.
func (f *field) integer(raw []byte) ([]byte, string) {
	if !isNumber(raw) || bytes.ContainsAny(raw, ".eE") {
		return nil, f.wrongType(raw, "an integer")
	}
	// Up to 18 digits always fit; the rest is compared exactly, never as a float.
	if len(raw) > 18 {
		if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
			return nil, fmt.Sprintf("field %q is out of the range of a 64-bit integer", f.APIName)
		}
	}
	if string(raw) == "-0" {
		return []byte("0"), ""
	}
	return raw, ""
}

// textForms are what the texts of a type have to be.
var textForms = map[string]string{
	rpc.TypeDecimal: "a decimal", rpc.TypeDate: "a calendar date of the years 0001 to 9999", rpc.TypeDateTime: "a UTC time with Z at its end",
}

// text is canonical for the four types that are strings on the wire.
func (f *field) text(raw []byte) ([]byte, string) {
	if bytes.IndexByte(raw, '\\') >= 0 {
		text, err := rawjson.StringText(raw)
		if err != nil {
			return nil, fmt.Sprintf("field %q is not Unicode text: %v", f.APIName, err)
		}
		raw = store.Quote(text)
	}
	if f.Type != rpc.TypeString {
		want := codec.Want{Kind: codec.KindOf(f.Type)}
		if want.Plain(raw, 0) != len(raw) {
			return nil, f.wrongType(raw, textForms[f.Type])
		}
		return raw, ""
	}
	if f.maxLength > 0 && len(raw)-2 > f.maxLength {
		text, _ := rawjson.StringText(raw) // canonical text decodes
		if n := utf8.RuneCountInString(text); n > f.maxLength {
			return nil, fmt.Sprintf("field %q has %d characters, at most %d fit", f.APIName, n, f.maxLength)
		}
	}
	return raw, ""
}

// wrongType is the sentence for a value of the wrong kind. It shows short texts
// of typed fields, where the mistake is in the spelling, but not free text,
// which may be data of users.
func (f *field) wrongType(raw []byte, want string) string {
	if raw[0] == '"' && f.Type != rpc.TypeString && len(raw) <= 48 {
		return fmt.Sprintf("field %q must be %s, not %s", f.APIName, want, raw)
	}
	return fmt.Sprintf("field %q must be %s, not %s", f.APIName, want, kindOf(raw))
}

// kindOf names the JSON type of a value.
func kindOf(raw []byte) string {
	kind := rawjson.Described(raw)
	if kind == "a number" && bytes.ContainsAny(raw, ".eE") {
		kind += " with a fraction or exponent"
	}
	return kind
}
