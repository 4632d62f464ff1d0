package liquid

import (
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
	// The published names: templates print them by mistake, and should look the
	// same here.
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
	// Maps are shown in their notation, arrays are not.
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

// timeText is how times stand in texts; date gives them another form.
func timeText(t time.Time) string {
	// By its name, not as +0000.
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
		// 1e+20 is written 1.0e+20.
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

// inspectText quotes a text, with the escapes of the published language.
func inspectText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		// Only before what would start an interpolation there.
		case r == '#' && i+1 < len(s) && strings.IndexByte("{$@", s[i+1]) >= 0:
			b.WriteString(`\#`)
		case r == 0x1b:
			b.WriteString(`\e`)
		case r >= '\a' && r <= '\r':
			b.WriteString(`\` + string("abtnvfr"[r-'\a']))
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02X`, r)
		// What cannot be seen is written by its number.
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
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
