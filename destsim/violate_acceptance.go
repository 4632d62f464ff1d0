package destsim

import (
	"slices"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

const foreignMessage = "the character set of the table has no room for the text"

// acceptanceViolations refuse records that are good, each with a message and
// without a write (OPS-007, RES-020, DAT-014).
var acceptanceViolations = []violation{
	// An operation is advertised and takes no record.
	breaks("OPS-007", "update refuses every existing record", refuses("the record is locked", by(rpc.OperationUpdate, (*record).stored))),
	breaks("OPS-007.2", "insert refuses every new record", refuses("the record cannot be created", by(rpc.OperationInsert, (*record).absent))),
	breaks("OPS-007.3", "upsert refuses every existing record", refuses("duplicate key", by(rpc.OperationUpsert, (*record).stored))),
	breaks("OPS-007.4", "upsert refuses every new record", refuses("no row to change", by(rpc.OperationUpsert, (*record).absent))),
	breaks("OPS-007.5", "delete refuses every record",
		refuses("deleting is not permitted", by(rpc.OperationDelete, func(*record) bool { return true }))),

	// A value that is taken in one place is refused in another.
	breaks("RES-020", "insert refuses a new record with text outside ASCII in a string field that is no identifier, upsert takes it",
		refuses(foreignMessage, by(rpc.OperationInsert, writing(isForeign)))),
	breaks("RES-020.2", "upsert refuses a record with text outside ASCII in a string field that is no identifier unless it is the first of its batch",
		refuses(foreignMessage, by(rpc.OperationUpsert, func(r *record) bool { return r.index > 0 && r.hasValue(isForeign) }))),

	// Values that the declared type permits are refused in every operation that writes them.
	breaks("DAT-014", "records with text outside ASCII in a string field that is no identifier are refused", refuses(foreignMessage, writing(isForeign))),
	breaks("DAT-014.2", "records with null in an optional field are refused", refuses("a value is missing", writing(isOptionalNull))),
	breaks("DAT-014.3", "records with a negative integer or decimal are refused", refuses("a number is out of range", writing(isNegative))),
	breaks("DAT-014.4", "records with an empty text in a string field are refused",
		refuses("a text is empty", writing(textOf(func(text string) bool { return text == "" })))),
	breaks("DAT-014.5", "records with a text of more than 255 characters in a string field are refused",
		refuses("a text is too long", writing(textOf(func(text string) bool { return utf8.RuneCountInString(text) > columnLength })))),
}

// refuses fails the records that are meant and writes nothing of them.
func refuses(message string, meant func(r *record) bool) seams {
	return seams{apply: func(_ *call, r *record, next next) result {
		if !r.anonymous() && meant(r) {
			return r.fail("%s", message)
		}
		return next(r)
	}}
}

// by means the records of one operation among others that are meant.
func by(operation string, meant func(r *record) bool) func(r *record) bool {
	return func(r *record) bool { return r.operation == operation && meant(r) }
}

// stored reports whether the record is there before it is applied.
func (r *record) stored() bool { return r.batch.standing(r.batch.unit, r.index).stored }
func (r *record) absent() bool { return !r.stored() }

// writing means the records with such a value that go into the store when they are good:
// a delete has none, and a skip stays the skip that it is.
func writing(value func(c *column, value []byte) bool) func(r *record) bool {
	return func(r *record) bool {
		if !r.hasValue(value) {
			return false
		}
		switch r.operation {
		case rpc.OperationInsert:
			return r.absent()
		case rpc.OperationUpdate:
			return r.stored()
		}
		return r.operation == rpc.OperationUpsert
	}
}

// hasValue reports whether an ordinary field of the record has a value that is
// meant: identifiers and arrays are left alone, and so are bad values.
func (r *record) hasValue(meant func(c *column, value []byte) bool) bool {
	for j := range r.raw.Len() {
		name, raw := r.raw.At(j)
		col := r.batch.plan.columns[string(name)]
		if col == nil || col.Identifier || col.Array || col.problem != "" {
			continue
		}
		if value, problem := col.canonical(raw); problem == "" && meant(col, value) {
			return true
		}
	}
	return false
}

// maps reports whether the record has a field, be it null.
func (r *record) maps(name string) bool {
	for j := range r.raw.Len() {
		if is, _ := r.raw.At(j); string(is) == name {
			return true
		}
	}
	return false
}

// textOf means the texts of string fields; null is none.
func textOf(meant func(text string) bool) func(c *column, value []byte) bool {
	return func(c *column, value []byte) bool {
		text, err := rawjson.StringText(value)
		return c.Type == rpc.TypeString && err == nil && meant(text)
	}
}

var isForeign = textOf(func(text string) bool {
	return slices.ContainsFunc([]byte(text), func(b byte) bool { return b >= utf8.RuneSelf })
})

func isOptionalNull(c *column, value []byte) bool { return value[0] == 'n' && !c.Required }

// isNegative looks at the first digits of integers and decimals; a decimal is a
// string.
func isNegative(c *column, value []byte) bool {
	switch c.Type {
	case rpc.TypeInteger:
		return value[0] == '-'
	case rpc.TypeDecimal:
		return value[0] == '"' && value[1] == '-'
	}
	return false
}
