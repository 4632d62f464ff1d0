package liquid

import (
	"errors"
	"slices"
	"strings"
)

// arrayFilters work on lists; a single value counts as a list of one.
var arrayFilters = map[string]filter{
	"join":         {0, 1, join},
	"first":        {apply: func(_ *run, input any, _ []any) (any, error) { return endOf(input, false), nil }},
	"last":         {apply: func(_ *run, input any, _ []any) (any, error) { return endOf(input, true), nil }},
	"size":         {apply: func(_ *run, input any, _ []any) (any, error) { size, _ := sizeOf(input); return size, nil }},
	"reverse":      {apply: reverse},
	"concat":       {1, 1, concat},
	"sort":         {0, 1, sortBy(compareNilLast)},
	"sort_natural": {0, 1, sortBy(compareFolded)},
	"map":          {1, 1, mapProperty},
	"uniq":         {0, 1, unique},
	"compact":      {0, 1, compact},
	"where":        {1, 2, selectItems(true)},
	"reject":       {1, 2, selectItems(false)},
	"find": {1, 2, func(r *run, input any, args []any) (any, error) {
		item, _, err := findItem(r, input, args)
		return item, err
	}},
	"find_index": {1, 2, func(r *run, input any, args []any) (any, error) {
		_, at, err := findItem(r, input, args)
		if at < 0 {
			return nil, err
		}
		return at, err
	}},
	"has": {1, 2, func(r *run, input any, args []any) (any, error) {
		_, at, err := findItem(r, input, args)
		return at >= 0, err
	}},
	"default": {0, 2, defaultValue},
}

// items are what filters of arrays go through: arrays with their inner arrays
// laid open, a map as one item, other values as an array of themselves.
func items(r *run, input any) ([]any, error) {
	switch v := input.(type) {
	case nil:
		return nil, nil
	case []any:
		flat := flatten(nil, v)
		return flat, r.spendOn(flat)
	case intRange:
		// Ranges are as long as their author likes: they count before they are
		// made.
		if err := r.iterate(v.size()); err != nil {
			return nil, err
		}
		out := make([]any, 0, v.size())
		for n := v.from; n <= v.to; n++ {
			out = append(out, n)
		}
		return out, nil
	}
	return []any{input}, nil
}

// flatten lays arrays within arrays open, at any depth.
func flatten(out, in []any) []any {
	for _, item := range in {
		if inner, ok := item.([]any); ok {
			out = flatten(out, inner)
		} else {
			out = append(out, liquidValue(item))
		}
	}
	return out
}

// join puts a space between items unless told otherwise.
func join(r *run, input any, args []any) (any, error) {
	list, err := items(r, input)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = toText(item)
	}
	return strings.Join(texts, toText(argument(args, 0, " "))), nil
}

// endOf is the first or the last item. Maps have a first pair and, as in the
// published language, no last one.
func endOf(input any, last bool) any {
	switch v := input.(type) {
	case []any:
		return arrayCommand(v, map[bool]string{true: "last", false: "first"}[last])
	case map[string]any:
		if !last {
			return firstOfMap(v)
		}
	case intRange:
		if last {
			return v.to
		}
		return v.from
	}
	return nil
}

// reverse turns a copy round: the array may be a variable.
func reverse(r *run, input any, _ []any) (any, error) {
	list, err := items(r, input)
	list = slices.Clone(list)
	slices.Reverse(list)
	return list, err
}

// concat refuses what is no array: a text is probably meant for append.
func concat(r *run, input any, args []any) (any, error) {
	more, ok := args[0].([]any)
	if !ok {
		return nil, errors.New("concat filter requires an array argument")
	}
	list, err := items(r, input)
	return append(slices.Clone(list), more...), err
}

var errMixed = errors.New("cannot sort values of incompatible types")

// sortBy keeps equal items in their order.
func sortBy(compare func(a, b any) (int, error)) func(*run, any, []any) (any, error) {
	return func(r *run, input any, args []any) (any, error) {
		list, err := items(r, input)
		if err != nil || len(list) == 0 {
			return []any{}, err
		}
		keys := list
		if name := argument(args, 0, nil); name != nil {
			for _, item := range list {
				// As in the published language the result is nil then, not an
				// error.
				if !hasProperties(item) {
					return nil, nil
				}
			}
			// A single item is in order whatever its property is.
			if len(list) > 1 {
				if keys, _, err = eachProperty(list, name); err != nil {
					return nil, err
				}
			}
		}
		// Places are sorted instead of items, so that the keys are computed
		// once.
		order := make([]int, len(list))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			sign, failed := compare(keys[a], keys[b])
			if failed != nil {
				err = failed
			}
			return sign
		})
		out := make([]any, len(list))
		for i, at := range order {
			out[i] = list[at]
		}
		return out, err
	}
}

// compareNilLast refuses a mixture of kinds: no order of them would be meant.
func compareNilLast(a, b any) (int, error) {
	if a == nil || b == nil {
		return nilLast(a, b), nil
	}
	sign, ok := compareValues(a, b)
	if !ok && !equalValues(a, b) {
		return 0, errMixed
	}
	return sign, nil
}

// nilLast puts nil behind everything.
func nilLast(a, b any) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	}
	return -1
}

// compareFolded compares as texts, without the case of ASCII letters.
func compareFolded(a, b any) (int, error) {
	if a == nil || b == nil {
		return nilLast(a, b), nil
	}
	return strings.Compare(foldASCII(toText(a)), foldASCII(toText(b))), nil
}

// foldASCII leaves other letters alone, as the published language does.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// defaultValue replaces nil, false and what is empty; with allow_false: true
// false stays.
func defaultValue(_ *run, input any, args []any) (any, error) {
	standard := argument(args, 0, "")
	options, _ := argument(args, 1, nil).(map[string]any)
	missing := !truthy(input)
	if truthy(options["allow_false"]) {
		missing = input == nil
	}
	if missing || (emptiness{}).matches(input) {
		return standard, nil
	}
	return input, nil
}
