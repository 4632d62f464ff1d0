package mapping

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Values of templates are nil, bool, int64, *big.Int, float64, decimal, string,
// []any, map[string]any, time.Time, intRange, drop and rawText.

// decimal is a number with a fraction that came as text, digits as they were.
type decimal string

// rawText is text that JSON mode leaves as it is.
type rawText string

// intRange is (from..to), both included.
type intRange struct{ from, to int64 }

func (r intRange) size() int64 { return max(0, r.to-r.from+1) }

// drop is an object of the language itself, such as forloop.
type drop interface {
	property(name string) (any, bool)
}

// liquidValue brings a value of a record to one of the kinds above.
func liquidValue(value any) any {
	switch v := value.(type) {
	case nil, bool, int64, float64, string, []any, map[string]any, time.Time:
		return v
	case int:
		return int64(v)
	case []byte:
		return string(v)
	case json.Number:
		return numberValue(v.String())
	case float32:
		f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'f', -1, 32), 64)
		return f
	case int8, int16, int32, uint, uint8, uint16, uint32, uint64:
		return numberValue(fmt.Sprint(v))
	}
	return value
}

func numberValue(digits string) any {
	if n, ok := new(big.Int).SetString(digits, 10); ok {
		return shrink(n)
	}
	if strings.ContainsAny(digits, "eE") {
		f, _ := strconv.ParseFloat(digits, 64)
		return f
	}
	return decimal(digits)
}

// shrink keeps small integers as int64.
func shrink(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

func truthy(value any) bool { return value != nil && value != false }

func isUnicodeSpace(r rune) bool { return unicode.IsSpace(r) }

// toText is a value as the language prints it inside texts.
func toText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case rawText:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case *big.Int:
		return v.String()
	case float64:
		return floatText(v)
	case decimal:
		return string(v)
	case time.Time:
		return timeText(v)
	case intRange:
		return fmt.Sprintf("%d..%d", v.from, v.to)
	case emptiness:
		return ""
	case *forLoop:
		return "Liquid::ForloopDrop"
	case *tableLoop:
		return "Liquid::TablerowloopDrop"
	case []any, map[string]any:
		return inspect(v)
	}
	return fmt.Sprint(value)
}

// outputText is a value as an output prints it: arrays are joined.
func outputText(value any) string {
	items, ok := value.([]any)
	if !ok {
		return toText(value)
	}
	var b strings.Builder
	for _, item := range items {
		b.WriteString(outputText(liquidValue(item)))
	}
	return b.String()
}

func timeText(t time.Time) string {
	if t.Location() == time.UTC {
		return t.Format("2006-01-02 15:04:05 UTC")
	}
	return t.Format("2006-01-02 15:04:05 -0700")
}

// floatText always has a fraction, and an exponent from 1e15 and below 1e-4.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if size := math.Abs(f); size != 0 && (size >= 1e15 || size < 1e-4) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		return mantissa + "e" + exponent
	}
	digits := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(digits, ".") {
		digits += ".0"
	}
	return digits
}

// inspect is the notation of arrays and maps inside texts. Maps are in the
// order of their keys.
func inspect(value any) string {
	switch v := liquidValue(value).(type) {
	case nil:
		return "nil"
	case string:
		return inspectText(v)
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = inspect(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, inspectText(key)+"=>"+inspect(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return toText(v)
	}
}

func inspectText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '#' && i+1 < len(s) && strings.IndexByte("{$@", s[i+1]) >= 0:
			b.WriteString(`\#`)
		case r == 0x1b:
			b.WriteString(`\e`)
		case r >= '\a' && r <= '\r':
			b.WriteString(`\` + string("abtnvfr"[r-'\a']))
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02X`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// firstOfMap is the pair with the first key.
func firstOfMap(m map[string]any) any {
	if len(m) == 0 {
		return nil
	}
	key := slices.Min(slices.Collect(maps.Keys(m)))
	return []any{key, m[key]}
}

// sizeOf: characters of texts, items of arrays and maps; an integer has the
// size of its bytes in memory.
func sizeOf(value any) (int64, bool) {
	switch v := value.(type) {
	case string:
		return int64(len([]rune(v))), true
	case []any:
		return int64(len(v)), true
	case map[string]any:
		return int64(len(v)), true
	case intRange:
		return v.size(), true
	case int64:
		return 8, true
	case *big.Int:
		return int64(max(8, (v.BitLen()+7)/8)), true
	}
	return 0, false
}

// className names what a value is in errors of comparisons.
func className(value any) string {
	switch value.(type) {
	case nil:
		return "NilClass"
	case bool:
		return map[any]string{true: "TrueClass", false: "FalseClass"}[value]
	case int64, *big.Int:
		return "Integer"
	case float64, decimal:
		return "Float"
	case string, rawText:
		return "String"
	case []any:
		return "Array"
	case map[string]any:
		return "Hash"
	case time.Time:
		return "Time"
	}
	return "Object"
}

// comparedName is how errors name the right side: numbers by their digits.
func comparedName(value any) string {
	switch value.(type) {
	case int64, float64, decimal, bool, nil:
		return inspect(value)
	}
	return className(value)
}

func hasOrder(value any) bool {
	switch value.(type) {
	case int64, *big.Int, float64, decimal, string, rawText, time.Time:
		return true
	}
	return false
}

// compareValues orders numbers, texts and times; ok is false for a mixture.
func compareValues(a, b any) (sign int, ok bool) {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return strings.Compare(x, y), ok
	case time.Time:
		y, ok := b.(time.Time)
		return x.Compare(y), ok
	case int64:
		if y, ok := b.(int64); ok {
			return compareInts(x, y), true
		}
	}
	x, isX := exactNumber(a)
	y, isY := exactNumber(b)
	if !isX || !isY {
		return 0, false
	}
	return x.Cmp(y), true
}

func compareInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// equalValues: numbers by what they are worth, arrays and maps by content.
func equalValues(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case bool:
		return a == b
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, func(p, q any) bool { return equalValues(liquidValue(p), liquidValue(q)) })
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, func(p, q any) bool { return equalValues(liquidValue(p), liquidValue(q)) })
	case intRange:
		return a == b
	case drop:
		return false
	}
	sign, ok := compareValues(a, b)
	return ok && sign == 0
}
