package destsim

import (
	"bytes"
	"html"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// dataViolations are values that are not kept exactly (DAT-001 to DAT-013, DAT-015).
var dataViolations = []violation{
	breaks("DAT-001", `characters outside the basic plane in values are stored as "?"`, altersText(func(text string) string {
		return strings.Map(func(r rune) rune {
			if r > 0xFFFF {
				return '?'
			}
			return r
		}, text)
	})),
	breaks("DAT-001.2", "values are stored in Unicode form NFC", altersText(norm.NFC.String)),
	crashes("DAT-002", "a record with U+0000 in a value closes the connection without a response", rpc.TypeString, holds("\x00")),
	breaks("DAT-003", `null in an optional string field is stored as "null"`, seams{value: func(_ *call, _ *record, cell *cell) {
		if cell.single(rpc.TypeString) && cell.raw[0] == 'n' {
			cell.raw = []byte(`"null"`)
		}
	}}),
	breaks("DAT-003.2", "null in a field of an existing record leaves the old value",
		finds(anyRecord, func(r *record, field []byte, found []*store.Row) []*store.Row {
			if len(found) > 0 && bytes.Equal(field, r.active.quoted) {
				r.cells = slices.DeleteFunc(r.cells, func(c cell) bool { return bytes.Equal(c.raw, store.Null) })
			}
			return found
		})),

	// Numbers pass through a float64.
	breaks("DAT-004", "integer values beyond ±2^53 are stored as float64", alters(rpc.TypeInteger, func(raw []byte) []byte {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n >= -1<<53 && n <= 1<<53 {
			return nil
		}
		return strconv.AppendFloat(nil, float64(n), 'f', 0, 64)
	})),
	breaks("DAT-005", "decimals of more than 15 significant digits are stored by way of a float64", alters(rpc.TypeDecimal, func(raw []byte) []byte {
		text := strings.Trim(string(raw), `"`)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || significant(text) <= 15 {
			return nil
		}
		return store.Quote(strconv.FormatFloat(v, 'f', -1, 64))
	})),
	crashes("DAT-006", "a number in a float field that overflows to infinity closes the connection without a response", rpc.TypeFloat, func(raw []byte) bool {
		v, _ := strconv.ParseFloat(string(raw), 64)
		return isNumber(raw) && math.IsInf(v, 0)
	}),

	// The meaning of a type is lost.
	breaks("DAT-007", "the 29 February of any year is stored as the day before", alters(rpc.TypeDate, func(raw []byte) []byte {
		if before, leap := bytes.CutSuffix(raw, []byte(`-02-29"`)); leap {
			return slices.Concat(before, []byte(`-02-28"`))
		}
		return nil
	})),
	breaks("DAT-008", "date_times in March to October are stored two hours earlier", alters(rpc.TypeDateTime, func(raw []byte) []byte {
		at, err := time.Parse(time.RFC3339Nano, strings.Trim(string(raw), `"`))
		if err != nil || at.Month() < time.March || at.Month() > time.October {
			return nil
		}
		return store.Quote(at.Add(-2 * time.Hour).Format(time.RFC3339Nano))
	})),
	breaks("DAT-009", `booleans are stored as the texts "true" and "false"`,
		alters(rpc.TypeBoolean, func(raw []byte) []byte { return store.Quote(string(raw)) })),
	breaks("DAT-010", "arrays are stored as one string with the items joined by commas", seams{value: func(_ *call, _ *record, cell *cell) {
		if cell.column.Array && cell.raw[0] == '[' {
			cell.raw = store.Quote(joined(cell.raw))
		}
	}}),

	breaks("DAT-011", "strings are trimmed", altersText(strings.TrimSpace)),
	breaks("DAT-011.2", "strings of digits are stored as numbers, without leading zeros", alters(rpc.TypeString, func(raw []byte) []byte {
		digits := raw[1 : len(raw)-1]
		if len(digits) == 0 || len(bytes.Trim(digits, "0123456789")) > 0 {
			return nil
		}
		if digits = bytes.TrimLeft(digits, "0"); len(digits) == 0 {
			return []byte("0")
		}
		return digits
	})),
	// A value ends the statement that it was pasted into, and no one catches that.
	breaks("DAT-011.3", "a string that contains '; ends the call with a bare status 500",
		paged(http.StatusInternalServerError, "text/plain; charset=utf-8", "Internal Server Error",
			func(b *batch) bool { return b.carries(rpc.TypeString, holds("';")) })),
	breaks("DAT-011.4", "the characters &, < and > are stored as HTML entities",
		altersText(strings.NewReplacer("&", html.EscapeString("&"), "<", html.EscapeString("<"), ">", html.EscapeString(">")).Replace)),
	breaks("DAT-011.5", "line ends of carriage return and line feed are stored as line feeds",
		altersText(func(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") })),
	breaks("DAT-011.6", "a line end at the end of a string is cut off",
		altersText(func(text string) string { return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r") })),
	breaks("DAT-011.7", "a backslash escape in a string, such as the two characters of \\n, is stored as what it stands for",
		altersText(strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\'`, `'`, `\/`, `/`).Replace)),
	breaks("DAT-011.8", "percent escapes in a string are stored decoded", altersText(func(text string) string {
		if decoded, err := url.PathUnescape(text); err == nil {
			return decoded
		}
		return text
	})),
	breaks("DAT-011.9", "a plus sign in a string is stored as a space",
		altersText(func(text string) string { return strings.ReplaceAll(text, "+", " ") })),
	breaks("DAT-012", "a request body of more than 100 KB and fewer than 1000 records is answered 413", batched(func(c *call, b *batch) {
		if len(c.body) > 100*1024 && b.Len() < 1000 {
			c.refuse(http.StatusRequestEntityTooLarge, rpc.CodeInvalidRequest, "request entity too large")
		}
	})),
	breaks("DAT-013", `a \u00a0 to \u00ff in a string value is stored as the six characters of the escape`, seams{value: func(_ *call, r *record, cell *cell) {
		if !cell.single(rpc.TypeString) {
			return
		}
		raw, _ := r.raw.Field(cell.column.APIName)
		if text, err := rawjson.StringText(literalEscapes(raw)); err == nil {
			cell.raw = store.Quote(text)
		}
	}}),

	// Floats are kept in less than their width.
	breaks("DAT-015", "floats within the range of single precision are stored in it",
		narrowed(func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 32) })),
	breaks("DAT-015.2", "floats within the range of single precision are stored with six significant digits",
		narrowed(func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) })),
}

func anyRecord(*record) bool { return true }

// single reports whether a cell holds one value of that type. Identifiers are
// left alone: a changed key would be the subject of other rules.
func (c *cell) single(typ string) bool {
	return c.column.Type == typ && !c.column.Array && !c.column.Identifier
}

// alters stores something else than a value of that type; null is no such value, and nil
// from change leaves the value as it is.
func alters(typ string, change func(raw []byte) []byte) seams {
	return seams{value: func(_ *call, _ *record, cell *cell) {
		if !cell.single(typ) || cell.raw[0] == 'n' {
			return
		}
		if changed := change(cell.raw); changed != nil {
			cell.raw = changed
		}
	}}
}

// altersText stores another text.
func altersText(change func(text string) string) seams {
	return alters(rpc.TypeString, func(raw []byte) []byte {
		text, err := rawjson.StringText(raw)
		if err != nil {
			return nil
		}
		return store.Quote(change(text))
	})
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

// crashes is a violation that closes the connection when a batch carries a
// value that the destination cannot handle.
func crashes(id, changes, typ string, found func(raw []byte) bool) violation {
	return breaks(id, changes, batched(func(c *call, b *batch) {
		if b.carries(typ, found) {
			c.cut()
		}
	}), Also{"HTTP-003", "the batch has no response, and no reply may stay away"})
}

// significant counts the digits of a decimal from the first that is not zero.
func significant(decimal string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(decimal), "e")
	return len(strings.TrimLeft(strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, mantissa), "0"))
}

// joined is the text of the items of an array, with commas between.
func joined(array []byte) string {
	items := itemsOf(array)
	texts := make([]string, len(items))
	for i, raw := range items {
		texts[i] = plainText(raw)
	}
	return strings.Join(texts, ",")
}

// plainText is the text of a string, and any other value as it is written.
func plainText(raw []byte) string {
	if text, err := rawjson.StringText(raw); err == nil {
		return text
	}
	return string(raw)
}

// holds reports whether a raw value is a string with that text in it.
func holds(part string) func(raw []byte) bool {
	return func(raw []byte) bool {
		text, err := rawjson.StringText(raw) // half a surrogate pair is no text
		return err == nil && strings.Contains(text, part)
	}
}

// escapes are the escapes of a JSON string; those of letters from \u00a0 to \u00ff match
// with more than two characters.
var escapes = regexp.MustCompile(`\\(u00[a-fA-F]|.)`)

// literalEscapes doubles the backslash of these, so that the escape itself becomes the text.
func literalEscapes(raw []byte) []byte {
	return escapes.ReplaceAllFunc(raw, func(escape []byte) []byte {
		if len(escape) > 2 {
			return append([]byte{'\\'}, escape...)
		}
		return escape
	})
}

// smallestNormal is the least number that single precision holds in its full
// width, 2^-126.
const smallestNormal = 0x1p-126

// narrowed stores what print makes of a float where that is another number. Numbers that
// single precision cannot hold are left alone: those are the subject of DAT-006.
func narrowed(print func(v float64) string) seams {
	return alters(rpc.TypeFloat, func(raw []byte) []byte {
		v, err := strconv.ParseFloat(string(raw), 64)
		if size := math.Abs(v); err != nil || size < smallestNormal || size > math.MaxFloat32 {
			return nil
		}
		text := print(v)
		if kept, err := strconv.ParseFloat(text, 64); err != nil || kept == v {
			return nil
		}
		return []byte(text)
	})
}
