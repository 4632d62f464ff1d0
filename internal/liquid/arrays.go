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
// numbers that came as text as texts.
var arrayFilters = map[string]filter{
	"join":         {0, 1, join},
	"first":        {apply: func(_ *run, input any, _ []any) (any, error) { return endOf(input, false), nil }},
	"last":         {apply: func(_ *run, input any, _ []any) (any, error) { return endOf(input, true), nil }},
	"size":         {apply: func(_ *run, input any, _ []any) (any, error) { return max(0, sizeOf(input)), nil }},
	"reverse":      {apply: reverse},
	"concat":       {1, 1, concat},
	"sort":         {0, 1, sortBy(compareNilLast)},
	"sort_natural": {0, 1, sortBy(compareFolded)},
	"map": {1, 1, func(r *run, input any, args []any) (any, error) {
		_, keys, err := r.keyed(input, args)
		return keys, err
	}},
	"uniq":       {0, 1, unique},
	"compact":    {0, 1, choose(func(key any, _ []any) bool { return key != nil })},
	"where":      {1, 2, choose(wanted)},
	"reject":     {1, 2, choose(func(key any, args []any) bool { return !wanted(key, args) })},
	"find":       {1, 2, find(func(list []any, at int) any { return endOf(list[max(at, 0):max(at, 0)+min(at+1, 1)], false) })},
	"find_index": {1, 2, find(func(_ []any, at int) any { return map[bool]any{true: at}[at >= 0] })},
	"has":        {1, 2, find(func(_ []any, at int) any { return at >= 0 })},
	"default":    {0, 2, defaultValue},
	"except":     {0, 1000, pickKeys("except", false)},
	"only":       {0, 1000, pickKeys("only", true)},
	"keys":       {0, 0, keys},
}

// items are what filters of arrays go through, in a list of their own: arrays with
// their inner arrays laid open, a map as one item, other values as an array of
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

// keyed are the items of an input, and of each the property that the first argument
// names, or the item itself.
func (r *run) keyed(input any, args []any) (list, keys []any, err error) {
	list, err = r.items(input)
	if name := argument(args, 0, nil); name != nil && err == nil {
		keys = make([]any, len(list))
		for i, item := range list {
			m, isMap := item.(object)
			if !isMap && item != nil {
				return nil, nil, fmt.Errorf("cannot select the property '%s'", shown(name))
			}
			keys[i] = m[toText(name)]
		}
		return list, keys, nil
	}
	return list, list, err
}

// join puts a space between items unless told otherwise.
func join(r *run, input any, args []any) (any, error) {
	list, err := r.items(input)
	if err != nil {
		return nil, err
	}
	between := toText(argument(args, 0, " "))
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = toText(item)
	}
	if err := r.repeated(len(list), between); err != nil {
		return nil, err
	}
	return strings.Join(texts, between), nil
}

func reverse(r *run, input any, _ []any) (any, error) {
	list, err := r.items(input)
	slices.Reverse(list)
	return list, err
}

// concat refuses what is no array: a text is probably meant for append.
func concat(r *run, input any, args []any) (any, error) {
	more, ok := args[0].([]any)
	if !ok {
		return nil, errors.New("concat filter requires an array argument")
	}
	list, err := r.items(input)
	return append(list, more...), err
}

// choose keeps the items whose key is wanted.
func choose(want func(key any, args []any) bool) func(*run, any, []any) (any, error) {
	return func(r *run, input any, args []any) (any, error) {
		list, keys, err := r.keyed(input, args)
		out := []any{}
		for i, key := range keys {
			if want(key, args) {
				out = append(out, list[i])
			}
		}
		return out, err
	}
}

// wanted tells whether a property is the value asked for, or just true when none
// is.
func wanted(key any, args []any) bool {
	if value := argument(args, 1, nil); value != nil {
		return equal(key, value)
	}
	return truthy(key)
}

// find makes its result of the place of the first item that is wanted, -1 for none.
func find(result func(list []any, at int) any) func(*run, any, []any) (any, error) {
	return func(r *run, input any, args []any) (any, error) {
		list, keys, err := r.keyed(input, args)
		return result(list, slices.IndexFunc(keys, func(key any) bool { return wanted(key, args) })), err
	}
}

// unique keeps the first of equal items: 1 and 1.0 are not the same, so the
// notation decides.
func unique(r *run, input any, args []any) (any, error) {
	seen := map[string]bool{}
	return choose(func(key any, _ []any) bool {
		notation := toText([]any{key})
		defer func() { seen[notation] = true }()
		return !seen[notation]
	})(r, input, args)
}

// sortBy keeps equal items in their order.
func sortBy(compare func(a, b any) (int, bool)) func(*run, any, []any) (any, error) {
	return func(r *run, input any, args []any) (any, error) {
		list, keys, err := r.keyed(input, args)
		// Pairs are sorted, so that the keys are computed once.
		pairs := make([][2]any, len(list))
		for i := range list {
			pairs[i] = [2]any{keys[i], list[i]}
		}
		slices.SortStableFunc(pairs, func(a, b [2]any) int {
			sign, ok := compare(a[0], b[0])
			if !ok {
				err = errors.New("cannot sort values of incompatible types")
			}
			return sign
		})
		out := make([]any, len(list))
		for i, pair := range pairs {
			out[i] = pair[1]
		}
		return out, err
	}
}

// compareNilLast refuses a mixture of kinds: no order of them would be meant.
func compareNilLast(a, b any) (int, bool) {
	switch {
	case a == nil && b == nil:
		return 0, true
	case a == nil:
		return 1, true
	case b == nil:
		return -1, true
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

// defaultValue replaces nil, false and what is empty; with allow_false: true false
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

// keys are those of a map, in their order.
func keys(_ *run, input any, _ []any) (any, error) {
	source, ok := input.(object)
	if !ok {
		return nil, errors.New("keys filter requires an object")
	}
	return list(slices.Sorted(maps.Keys(source))), nil
}
