package destsim

import (
	"bytes"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// dataViolations are values that are not kept exactly (DAT-*).
func dataViolations() []violation {
	return slices.Concat(textViolations(), escapedViolations(), nullViolations(), numberViolations(), floatViolations(), shapeViolations())
}

// single reports whether a cell holds one value of that type. Identifiers are
// left alone: a changed key would be the subject of other rules.
func (c *cell) single(typ string) bool {
	return c.column.Type == typ && !c.column.Array && !c.column.Identifier
}

// alters is a violation that stores something else than a value of that type;
// null is no such value, and nil from change leaves the value as it is.
func alters(id, changes, typ string, change func(raw []byte) []byte) violation {
	return breaks(id, changes, seams{value: func(_ *call, _ *record, cell *cell) {
		if !cell.single(typ) || cell.raw[0] == 'n' {
			return
		}
		if changed := change(cell.raw); changed != nil {
			cell.raw = changed
		}
	}})
}

// carries reports whether some record of a batch has a value of that type, alone
// or in an array, that is no identifier and of which found is true.
func (b *batch) carries(typ string, found func(raw []byte) bool) bool {
	for i := b.from; i < b.to; i++ {
		r := b.Record(i)
		for j := range r.Len() {
			name, raw := r.At(j)
			col := b.plan.columns[string(name)]
			if col == nil || col.Type != typ || col.Identifier {
				continue
			}
			if raw[0] != '[' && found(raw) || raw[0] == '[' && slices.ContainsFunc(itemsOf(raw), found) {
				return true
			}
		}
	}
	return false
}

// itemsOf are the raw items of an array.
func itemsOf(array []byte) [][]byte {
	var items [][]byte
	for i := skipSpace(array, 1); array[i] != ']'; {
		end := skipElement(array, i)
		items = append(items, array[i:end])
		if i = skipSpace(array, end); array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
	return items
}

// crashes is a violation that closes the connection when a batch carries a
// value that the destination cannot stand.
func crashes(id, changes, typ string, found func(raw []byte) bool) violation {
	return breaks(id, changes, seams{batch: func(c *call, b *batch) *rpc.Error {
		if b.carries(typ, found) {
			c.cut()
		}
		return nil
	}}, Also{"HTTP-003", "the batch has no response, and no reply may stay away"})
}

// nullViolations do not write null (DAT-003).
func nullViolations() []violation {
	return []violation{
		breaks("DAT-003", `null in an optional string field is stored as "null"`,
			seams{value: func(_ *call, _ *record, cell *cell) {
				if cell.single(rpc.TypeString) && cell.raw[0] == 'n' {
					cell.raw = []byte(`"null"`)
				}
			}}),
		breaks("DAT-003.2", "null in a field of an existing record leaves the old value",
			seams{rows: func(_ *call, r *record, rows store.Rows) store.Rows { return nullSkippingRows{rows, r} }}),
	}
}

// nullSkippingRows forget the nulls of a record as soon as it is found.
type nullSkippingRows struct {
	store.Rows
	record *record
}

func (n nullSkippingRows) Find(field, key []byte) ([]*store.Row, error) {
	found, err := n.Rows.Find(field, key)
	if r := n.record; len(found) > 0 && bytes.Equal(field, r.active.quoted) {
		r.cells = slices.DeleteFunc(r.cells, func(c cell) bool { return bytes.Equal(c.raw, store.Null) })
	}
	return found, err
}

// numberViolations take numbers through a float64 (DAT-004 to DAT-006).
func numberViolations() []violation {
	return []violation{
		alters("DAT-004", "integer values beyond ±2^53 are stored as float64", rpc.TypeInteger, func(raw []byte) []byte {
			n, err := strconv.ParseInt(string(raw), 10, 64)
			if err != nil || n >= -1<<53 && n <= 1<<53 {
				return nil
			}
			return strconv.AppendFloat(nil, float64(n), 'f', 0, 64)
		}),
		alters("DAT-005", "decimals of more than 15 significant digits are stored by way of a float64", rpc.TypeDecimal, func(raw []byte) []byte {
			text := strings.Trim(string(raw), `"`)
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || significant(text) <= 15 {
				return nil
			}
			return store.Quote(strconv.FormatFloat(v, 'f', -1, 64))
		}),
		crashes("DAT-006", "a number in a float field that overflows to infinity closes the connection without a response", rpc.TypeFloat, func(raw []byte) bool {
			v, _ := strconv.ParseFloat(string(raw), 64)
			return isNumber(raw) && math.IsInf(v, 0)
		}),
	}
}

// significant counts the digits of a decimal from the first that is not zero.
func significant(decimal string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(decimal), "e")
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, mantissa)
	return len(strings.TrimLeft(digits, "0"))
}

// shapeViolations lose what a type means (DAT-007 to DAT-010), or refuse what is
// large (DAT-012).
func shapeViolations() []violation {
	return []violation{
		alters("DAT-007", "the 29 February of any year is stored as the day before", rpc.TypeDate, func(raw []byte) []byte {
			before, leap := bytes.CutSuffix(raw, []byte(`-02-29"`))
			if !leap {
				return nil
			}
			return slices.Concat(before, []byte(`-02-28"`))
		}),
		alters("DAT-008", "date_times in March to October are stored two hours earlier", rpc.TypeDateTime, func(raw []byte) []byte {
			at, err := time.Parse(time.RFC3339Nano, strings.Trim(string(raw), `"`))
			if err != nil || at.Month() < time.March || at.Month() > time.October {
				return nil
			}
			return store.Quote(at.Add(-2 * time.Hour).Format(time.RFC3339Nano))
		}),
		alters("DAT-009", `booleans are stored as the texts "true" and "false"`, rpc.TypeBoolean, func(raw []byte) []byte {
			return store.Quote(string(raw))
		}),
		breaks("DAT-010", "arrays are stored as one string with the items joined by commas",
			seams{value: func(_ *call, _ *record, cell *cell) {
				if cell.column.Array && cell.raw[0] == '[' {
					cell.raw = store.Quote(joined(cell.raw))
				}
			}}),
		breaks("DAT-012", "a request body of more than 100 KB and fewer than 1000 records is answered 413",
			seams{batch: func(c *call, b *batch) *rpc.Error {
				if len(c.body) > 100*1024 && b.Len() < 1000 {
					c.refuse(http.StatusRequestEntityTooLarge, rpc.CodeInvalidRequest, "request entity too large")
				}
				return nil
			}}),
	}
}

// joined is the text of the items of an array, with commas between.
func joined(array []byte) string {
	items := itemsOf(array)
	texts := make([]string, len(items))
	for i, raw := range items {
		text, err := rawjson.StringText(raw)
		if err != nil {
			text = string(raw)
		}
		texts[i] = text
	}
	return strings.Join(texts, ",")
}
