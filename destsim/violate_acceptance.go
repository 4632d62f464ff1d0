package destsim

import (
	"slices"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// acceptanceViolations refuse records that are good, each with a message and
// without a write (OPS-007, RES-020, DAT-014).
func acceptanceViolations() []violation {
	return slices.Concat(uselessViolations(), unevenViolations(), pickyViolations())
}

// refuses fails the records that are meant and writes nothing of them.
func refuses(id, changes, message string, meant func(r *record) bool, also ...Also) violation {
	return breaks(id, changes, seams{apply: func(_ *call, r *record, next next) result {
		if !r.anonymous() && meant(r) {
			return r.fail("%s", message)
		}
		return next(r)
	}}, also...)
}

// stored reports whether the record is there before it is applied.
func (r *record) stored() bool { return r.batch.standing(r.batch.unit, r.index).stored }

// writes reports whether values of the record go into the store when it is
// good: a delete has none, and a skip stays the skip that it is.
func (r *record) writes() bool {
	switch r.operation {
	case rpc.OperationInsert:
		return !r.stored()
	case rpc.OperationUpdate:
		return r.stored()
	}
	return r.operation == rpc.OperationUpsert
}

// hasValue reports whether an ordinary field of the record has a value that is
// meant: identifiers and arrays are left alone, and so is what is bad anyway.
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

// text gives the text of a value of a string field; ok is false for null and
// for every other type.
func (c *column) text(value []byte) (text string, ok bool) {
	if c.Type != rpc.TypeString || value[0] != '"' {
		return "", false
	}
	text, err := rawjson.StringText(value)
	return text, err == nil
}

func isForeign(c *column, value []byte) bool {
	text, ok := c.text(value)
	return ok && slices.ContainsFunc([]byte(text), func(b byte) bool { return b >= utf8.RuneSelf })
}

func isEmptyText(c *column, value []byte) bool {
	text, ok := c.text(value)
	return ok && text == ""
}

func isLongText(c *column, value []byte) bool {
	text, ok := c.text(value)
	return ok && utf8.RuneCountInString(text) > columnLength
}

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

// uselessViolations advertise an operation and take no record by it (OPS-007).
func uselessViolations() []violation {
	of := func(id, changes, message, operation string, which func(r *record) bool) violation {
		return refuses(id, changes, message, func(r *record) bool { return r.operation == operation && which(r) })
	}
	absent := func(r *record) bool { return !r.stored() }
	return []violation{
		of("OPS-007", "update refuses every existing record", "the record is locked", rpc.OperationUpdate, (*record).stored),
		of("OPS-007.2", "insert refuses every new record", "the record cannot be created", rpc.OperationInsert, absent),
		of("OPS-007.3", "upsert refuses every existing record", "duplicate key", rpc.OperationUpsert, (*record).stored),
		of("OPS-007.4", "upsert refuses every new record", "no row to change", rpc.OperationUpsert, absent),
		of("OPS-007.5", "delete refuses every record", "deleting is not permitted", rpc.OperationDelete, func(*record) bool { return true }),
	}
}

const foreignMessage = "the character set of the table has no room for the text"

// unevenViolations refuse in one place what they take in another (RES-020).
func unevenViolations() []violation {
	return []violation{
		refuses("RES-020", "insert refuses a new record with text outside ASCII in a string field that is no identifier, upsert takes it", foreignMessage,
			func(r *record) bool {
				return r.operation == rpc.OperationInsert && r.hasValue(isForeign) && r.writes()
			}),
		refuses("RES-020.2", "upsert refuses a record with text outside ASCII in a string field that is no identifier unless it is the first of its batch", foreignMessage,
			func(r *record) bool {
				return r.operation == rpc.OperationUpsert && r.index > 0 && r.hasValue(isForeign)
			}, Also{"DAT-014", "text outside ASCII is refused where it is not the first of its batch"}),
	}
}

// pickyViolations refuse values that the declared type permits (DAT-014). Each
// does so in every operation that writes values.
func pickyViolations() []violation {
	of := func(id, changes, message string, which func(c *column, value []byte) bool) violation {
		return refuses(id, changes, message, func(r *record) bool { return r.hasValue(which) && r.writes() })
	}
	return []violation{
		of("DAT-014", "records with text outside ASCII in a string field that is no identifier are refused", foreignMessage, isForeign),
		of("DAT-014.2", "records with null in an optional field are refused", "a value is missing", isOptionalNull),
		of("DAT-014.3", "records with a negative integer or decimal are refused", "a number is out of range", isNegative),
		of("DAT-014.4", "records with an empty text in a string field are refused", "a text is empty", isEmptyText),
		of("DAT-014.5", "records with a text of more than 255 characters in a string field are refused", "a text is longer than 255 characters", isLongText),
	}
}
