package liquid

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/values"
)

// Values of templates are those of JSON, with numbers as json.Number, the library's
// int, float64, values.Range and values.SafeValue (text that JSON mode leaves as it
// is), and emptiness.

// emptiness is the value of empty and blank.
type emptiness struct{ blank bool }

// String implements fmt.Stringer: it prints nothing.
func (emptiness) String() string { return "" }

// object is a map as the library prints it, which is JSON.
type object map[string]any

// String implements fmt.Stringer.
func (o object) String() string { return toText(o) }

// ours has the maps of a value of a record as objects.
func ours(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(object, len(v))
		for key, item := range v {
			out[key] = ours(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = ours(item)
		}
		return out
	}
	return value
}

// nested is ours, once for each column, and "" for the record.
func (r *run) nested(column string, value any) any {
	switch value.(type) {
	case map[string]any, []any:
		if _, known := r.columns[column]; !known {
			set(&r.columns, column, ours(value))
		}
		return r.columns[column]
	}
	return value
}

// plain is a value of the library, without the mark of JSON mode and with the
// digits of a number.
func plain(value any) any {
	switch v := value.(type) {
	case values.SafeValue:
		return v.Value
	case float64:
		return json.Number(floatText(v))
	}
	return value
}

// boxed is a variable as the library sees it. It compares and looks into values as
// the published language does; the library would take numbers of JSON for texts,
// and would not report missing ones.
type boxed struct {
	v   any
	run *run // that the work is counted for; nil: a constant
}

// unknown is a variable that the template has not set on its way here.
type unknown string

// record is the one variable that a template is given (spec 2.7).
type record map[string]any

// recordName is its name.
const recordName = "record"

// UnknownColumn is the error of a column that does not exist, in the published
// words, by which clients know it.
func UnknownColumn(name string) error {
	return fmt.Errorf("Column being referenced in template can't be found in data source [%s]", name) //nolint:staticcheck // published
}

// unknownVariable has the published words.
func unknownVariable(name string) error { return fmt.Errorf("[expr] unknown variable `%s`", name) }

// fail leaves the library's evaluation with an error.
func fail(err error) { panic(expressions.FilterError{Err: err}) }

// Interface implements values.Value.
func (b boxed) Interface() any {
	switch v := b.v.(type) {
	case unknown:
		fail(unknownVariable(string(v)))
	case record:
		return b.run.nested("", map[string]any(v))
	}
	return b.v
}

// Int is an end of a range. Texts and fractions are cut to integers.
func (b boxed) Int() int { return toNumber(plain(b.Interface())).cut() }

// Test implements values.Value.
func (b boxed) Test() bool { return truthy(plain(b.Interface())) }

// pair returns the operands of a comparison, and accounts for the work.
func (b boxed) pair(other values.Value) (left, right any) {
	left, right = plain(b.Interface()), plain(other.Interface())
	if b.run != nil {
		if err := b.run.read(left); err != nil {
			fail(err)
		}
	}
	return left, right
}

// Equal knows empty and blank on either side.
func (b boxed) Equal(other values.Value) bool { return equal(b.pair(other)) }

// Less orders numbers and texts. nil, booleans, arrays and maps have no order,
// which is no error; a number and a text are one.
func (b boxed) Less(other values.Value) bool {
	left, right := b.pair(other)
	sign, ok := compare(left, right)
	if names := kindOf(left) + " with " + kindOf(right); names == "String with number" || names == "number with String" {
		fail(fmt.Errorf("comparison of %s failed", names))
	}
	return ok && sign < 0
}

// Contains: a part of a text, an item, a key. nil and false are in nothing.
func (b boxed) Contains(other values.Value) bool {
	all, right := b.pair(other)
	switch left := all.(type) {
	case string:
		return truthy(right) && strings.Contains(left, toText(right))
	case []any:
		return truthy(right) && slices.ContainsFunc(left, func(item any) bool { return equal(item, right) })
	case object:
		_, has := left[toText(right)]
		return has
	}
	return false
}

// IndexValue is value[key].
func (b boxed) IndexValue(key values.Value) values.Value { return b.step(key.Interface(), false) }

// PropertyValue is value.key.
func (b boxed) PropertyValue(key values.Value) values.Value { return b.step(key.Interface(), true) }

// step goes into a value. A command, which is written with a dot, also works on
// values that have no such key.
func (b boxed) step(key any, command bool) values.Value {
	name, _ := key.(string)
	if columns, isRecord := b.v.(record); isRecord && (!command || name != "size") {
		item, ok := columns[name]
		if !ok {
			fail(UnknownColumn(shown(key)))
		}
		return boxed{b.run.nested(name, item), b.run}
	}
	value := plain(b.Interface())
	isEnd, isSize := command && (name == "first" || name == "last"), command && name == "size"
	switch v := value.(type) {
	case object:
		if item, ok := v[name]; ok {
			return boxed{item, b.run}
		}
	case []any:
		if kindOf(key) == "number" {
			return boxed{itemAt(v, toNumber(key).cut()), b.run}
		}
	default:
		isEnd = false
	}
	size := sizeOf(value)
	switch {
	case isEnd:
		return boxed{endOf(value, name == "last"), b.run}
	case isSize && size >= 0:
		return boxed{size, nil}
	}
	fail(unknownVariable(shown(key)))
	return nil
}

// itemAt counts from the end for a negative place, and gives nil beyond both ends.
func itemAt(list []any, at int) any {
	if at < 0 {
		at += len(list)
	}
	if at < 0 || at >= len(list) {
		return nil
	}
	return list[at]
}

// endOf is the first or the last item, and the first pair of a map by its key.
func endOf(value any, last bool) any {
	switch v := value.(type) {
	case []any:
		return itemAt(v, map[bool]int{true: -1}[last])
	case object:
		if len(v) > 0 && !last {
			key := slices.Min(slices.Collect(maps.Keys(v)))
			return []any{key, v[key]}
		}
	case values.Range:
		return v.Index(map[bool]int{true: v.Len() - 1}[last])
	}
	return nil
}

// truthy: only nil and false are not; 0 and the empty text are.
func truthy(value any) bool { return value != nil && value != false }

// sizeOf: characters of texts, items of arrays and maps, and 8 for an integer, as
// published; -1 for other values.
func sizeOf(value any) int {
	switch v := value.(type) {
	case string:
		return len([]rune(v))
	case []any:
		return len(v)
	case object:
		return len(v)
	case values.Range:
		return max(0, v.Len())
	case int, json.Number:
		if toNumber(v).whole {
			return 8
		}
	}
	return -1
}

// isEmpty: a text, array or map without content, and nothing else; blank is also
// nil, false and a text of white space.
func isEmpty(value any, blank bool) bool {
	if text, isText := value.(string); isText && blank {
		value = strings.TrimSpace(text)
	}
	switch value.(type) {
	case string, []any, object:
		return sizeOf(value) == 0
	}
	return blank && !truthy(value)
}

// kindOf names a value that has an order.
func kindOf(value any) string {
	switch value.(type) {
	case int, float64, json.Number:
		return "number"
	case string:
		return "String"
	}
	return ""
}

// compare orders numbers and texts; ok is false for all else.
func compare(a, b any) (sign int, ok bool) {
	switch kind := kindOf(a); {
	case kind == "" || kind != kindOf(b):
		return 0, false
	case kind == "String":
		return strings.Compare(a.(string), b.(string)), true
	}
	return toNumber(a).Cmp(toNumber(b).Rat), true
}

// equal: numbers by value, arrays and maps by content.
func equal(a, b any) bool {
	if e, ok := b.(emptiness); ok {
		a, b = e, a
	}
	switch x := a.(type) {
	case emptiness:
		return isEmpty(b, x.blank)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	case object:
		y, ok := b.(object)
		return ok && maps.EqualFunc(x, y, equal)
	case nil, bool, values.Range:
		return a == b
	}
	sign, ok := compare(a, b)
	return ok && sign == 0
}
