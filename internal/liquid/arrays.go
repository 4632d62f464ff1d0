package liquid

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osteele/liquid/values"
)

// arrayFilters work on lists; a single value counts as a list of one. Those of the
// library go through maps in any order, sort equal items in any order and compare
// numbers of JSON as texts.
var arrayFilters = map[string]filter{
	"first":        onValue(func(input any) any { return endOf(input, false) }),
	"last":         onValue(func(input any) any { return endOf(input, true) }),
	"size":         onValue(func(input any) any { return max(0, sizeOf(input)) }),
	"join":         {0, 1, join},
	"concat":       {1, 1, concat},
	"reverse":      onKeys(0, 0, func(items, _, _ []any) any { slices.Reverse(items); return items }),
	"sort":         {0, 1, sortBy(compareNilLast)},
	"sort_natural": {0, 1, sortBy(compareFolded)},
	"map":          onKeys(1, 1, func(_, keys, _ []any) any { return keys }),
	"uniq":         {0, 1, unique},
	"compact":      onKeys(0, 1, func(items, keys, _ []any) any { return choose(items, keys, func(key any) bool { return key != nil }) }),
	"where":        onKeys(1, 2, func(items, keys, args []any) any { return choose(items, keys, wanted(args)) }),
	"reject": onKeys(1, 2, func(items, keys, args []any) any {
		return choose(items, keys, func(key any) bool { return !wanted(args)(key) })
	}),
	"find": onKeys(1, 2, func(items, keys, args []any) any { return endOf(choose(items, keys, wanted(args)), false) }),
	"find_index": onKeys(1, 2, func(_, keys, args []any) any {
		at := slices.IndexFunc(keys, wanted(args))
		return map[bool]any{true: at}[at >= 0]
	}),
	"has":     onKeys(1, 2, func(_, keys, args []any) any { return slices.ContainsFunc(keys, wanted(args)) }),
	"default": {0, 2, defaultValue},
	"except":  {0, 1000, pickKeys("except", false)},
	"only":    {0, 1000, pickKeys("only", true)},
	"keys": {0, 0, func(_ *run, input any, _ []any) (any, error) {
		source, ok := input.(object)
		if !ok {
			return nil, errors.New("keys filter requires an object")
		}
		return list(slices.Sorted(maps.Keys(source))), nil
	}},
}

// onValue is a filter that looks at its input.
func onValue(apply func(input any) any) filter {
	return filter{apply: func(_ *run, input any, _ []any) (any, error) { return apply(input), nil }}
}

// onKeys is a filter of a list and of the property of each item that the first
// argument names, or the item itself.
func onKeys(least, most int, apply func(items, keys, args []any) any) filter {
	return filter{least, most, func(r *run, input any, args []any) (any, error) {
		items, keys, err := r.keyed(input, args)
		if err != nil {
			return nil, err
		}
		return apply(items, keys, args), nil
	}}
}

// keyed are the items of an input and their properties.
func (r *run) keyed(input any, args []any) (items, keys []any, err error) {
	items, err = r.items(input)
	name := argument(args, 0, nil)
	if name == nil || err != nil {
		return items, items, err
	}
	for _, item := range items {
		m, isMap := item.(object)
		if !isMap && item != nil {
			return nil, nil, fmt.Errorf("cannot select the property '%s'", shown(name))
		}
		keys = append(keys, m[toText(name)])
	}
	return items, keys, nil
}

// items are what filters of arrays go through, in a separate list: arrays with
// their inner arrays flattened, a map as one item, other values as an array of
// themselves.
func (r *run) items(input any) ([]any, error) {
	switch v := input.(type) {
	case nil:
		return []any{}, nil
	case []any:
		flat := flatten(make([]any, 0, len(v)), v)
		return flat, r.take(itemCost * len(flat))
	case values.Range:
		// Ranges are as long as their author likes: they count before they are made.
		if err := r.iterate(v.Len(), itemCost); err != nil || v.Len() < 0 {
			return []any{}, err
		}
		return v.AsArray(), nil
	}
	return []any{input}, nil
}

// flatten lays arrays within arrays open, at any depth.
func flatten(out, in []any) []any {
	for _, item := range in {
		if inner, ok := item.([]any); ok {
			out = flatten(out, inner)
		} else {
			out = append(out, item)
		}
	}
	return out
}

// join puts a space between items by default.
func join(r *run, input any, args []any) (any, error) {
	items, err := r.items(input)
	between := toText(argument(args, 0, " "))
	if err := errors.Join(err, r.repeated(len(items), between)); err != nil {
		return nil, err
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = toText(item)
	}
	return strings.Join(texts, between), nil
}

// concat refuses anything but an array: a text is probably meant for append.
func concat(r *run, input any, args []any) (any, error) {
	more, ok := args[0].([]any)
	if !ok {
		return nil, errors.New("concat filter requires an array argument")
	}
	items, err := r.items(input)
	return append(items, more...), err
}

// choose keeps the items whose key is wanted.
func choose(items, keys []any, want func(key any) bool) []any {
	out := []any{}
	for i, key := range keys {
		if want(key) {
			out = append(out, items[i])
		}
	}
	return out
}

// wanted reports whether a property has the requested value, or is just true where none is
// requested.
func wanted(args []any) func(key any) bool {
	value := argument(args, 1, nil)
	return func(key any) bool { return value == nil && truthy(key) || value != nil && equal(key, value) }
}

// unique keeps the first of equal items: 1 and 1.0 are not the same, so the
// notation decides.
func unique(r *run, input any, args []any) (any, error) {
	items, keys, err := r.keyed(input, args)
	seen := map[string]bool{}
	return choose(items, keys, func(key any) bool {
		notation := toText([]any{key})
		defer func() { seen[notation] = true }()
		return !seen[notation]
	}), err
}

// sortBy keeps equal items in their order.
func sortBy(compare func(a, b any) (int, bool)) func(*run, any, []any) (any, error) {
	return func(r *run, input any, args []any) (any, error) {
		items, keys, err := r.keyed(input, args)
		// Pairs are sorted, so that the keys are looked up once.
		pairs := make([][2]any, len(items))
		for i := range items {
			pairs[i] = [2]any{keys[i], items[i]}
		}
		slices.SortStableFunc(pairs, func(a, b [2]any) int {
			sign, ok := compare(a[0], b[0])
			if !ok {
				err = errors.New("cannot sort values of incompatible types")
			}
			return sign
		})
		for i, pair := range pairs {
			items[i] = pair[1]
		}
		return items, err
	}
}

// compareNilLast refuses a mixture of kinds: no order of them would be meant.
func compareNilLast(a, b any) (int, bool) {
	if a == nil || b == nil {
		return map[bool]int{true: 1}[a == nil] - map[bool]int{true: 1}[b == nil], true
	}
	return compare(a, b)
}

// compareFolded compares as texts, without the case of letters.
func compareFolded(a, b any) (int, bool) {
	if a == nil || b == nil {
		return compareNilLast(a, b)
	}
	return strings.Compare(strings.ToLower(toText(a)), strings.ToLower(toText(b))), true
}

// defaultValue replaces nil, false and empty values; with allow_false: true false
// stays.
func defaultValue(_ *run, input any, args []any) (any, error) {
	options, _ := argument(args, 1, nil).(map[string]any)
	if isEmpty(input, false) || input == nil || input == false && !truthy(options["allow_false"]) {
		return argument(args, 0, ""), nil
	}
	return input, nil
}

// pickKeys keeps or drops keys of a map, given one by one, as an array, or as the
// keys of a map.
func pickKeys(name string, keep bool) func(*run, any, []any) (any, error) {
	return func(_ *run, input any, args []any) (any, error) {
		source, ok := input.(object)
		if !ok {
			return nil, fmt.Errorf("%s filter requires an object", name)
		}
		named := map[string]bool{}
		for _, arg := range flatten(nil, args) {
			m, isMap := arg.(object)
			for key := range m {
				named[key] = true
			}
			if !isMap {
				named[toText(arg)] = true
			}
		}
		out := object{}
		for key, value := range source {
			if named[key] == keep {
				out[key] = value
			}
		}
		return out, nil
	}
}
