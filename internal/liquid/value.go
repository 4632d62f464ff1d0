package liquid

import (
	"encoding/json"
	"fmt"
	"maps"
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

// size is 0 for a range that runs backwards.
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
	// Through its own digits: 0.1 must not become 0.10000000149.
	case float32:
		f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'f', -1, 32), 64)
		return f
	case int8, int16, int32, uint, uint8, uint16, uint32, uint64:
		return numberValue(fmt.Sprint(v))
	}
	return value
}

// numberValue keeps integers whole and the digits of decimals; only an exponent
// makes a float.
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

// truthy: only nil and false are not; 0 and the empty text are.
func truthy(value any) bool { return value != nil && value != false }

func isUnicodeSpace(r rune) bool { return unicode.IsSpace(r) }

// firstOfMap is the pair with the first key.
func firstOfMap(m map[string]any) any {
	if len(m) == 0 {
		return nil
	}
	// Maps have no order of their own here.
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

// hasOrder reports whether < and its like mean anything to a value.
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
		// The common case, without big numbers.
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
