package exchange

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Object goes down in a decoded object; nil where there is none.
func Object(in any, path ...string) map[string]any {
	for _, name := range path {
		m, _ := in.(map[string]any)
		in = m[name]
	}
	m, _ := in.(map[string]any)
	return m
}

// JSON is a value of a body as JSON.
func JSON(v any) string {
	text, _ := json.Marshal(v) // it came out of JSON
	return string(text)
}

// Text is a value of a body as a string, as a careless serializer writes it.
func Text(v any) string { return fmt.Sprint(v) }

// Inside is an object within an object of a body; an empty one where there is
// none, so that it can be changed without a look.
func Inside(m map[string]any, path ...string) map[string]any {
	for _, name := range path {
		next, ok := m[name].(map[string]any)
		if !ok {
			return map[string]any{}
		}
		m = next
	}
	return m
}

// Number reads a number, also one that a violation has set; 0 for anything else.
func Number(v any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	return n
}

// Int reads an integer of a body; false: it is none.
func Int(v any) (int64, bool) {
	n, ok := v.(interface{ Int64() (int64, error) })
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

// IntOf is an integer of a body, 0 for anything else.
func IntOf(v any) int64 {
	n, _ := Int(v)
	return n
}

// EachObject changes every object of a list.
func EachObject(list any, change func(map[string]any)) {
	all, _ := list.([]any)
	for _, one := range all {
		if object, ok := one.(map[string]any); ok {
			change(object)
		}
	}
}
