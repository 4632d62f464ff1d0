package liquid

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// errNoProperty stops a filter that meets an item without properties: its
// result is nil then.
var errNoProperty = errors.New("no properties")

// property of an item by name: maps by key; a text has the names it contains.
func property(item, name any) (any, error) {
	switch v := item.(type) {
	case map[string]any:
		key, _ := name.(string)
		return liquidValue(v[key]), nil
	case string:
		switch part := name.(type) {
		case string:
			if strings.Contains(v, part) {
				return part, nil
			}
			return nil, nil
		case int64:
			return characterAt(v, part), nil
		}
	case []any:
		if at, ok := name.(int64); ok {
			item, _, err := stepInto(v, at, false)
			return liquidValue(item), err
		}
	case int64, *big.Int:
		if at, ok := name.(int64); ok {
			return bitOf(toNumber(v).whole, at), nil
		}
	default:
		return nil, errNoProperty
	}
	return nil, fmt.Errorf("cannot select the property '%s'", shown(name))
}

// characterAt counts characters, from the end for a negative place.
func characterAt(s string, at int64) any {
	runes := []rune(s)
	if at < 0 {
		at += int64(len(runes))
	}
	if at < 0 || at >= int64(len(runes)) {
		return nil
	}
	return string(runes[at])
}

// bitOf is what an index means to an integer.
func bitOf(n *big.Int, at int64) any {
	if at < 0 || at > longestNumber {
		return int64(0)
	}
	return int64(n.Bit(int(at)))
}

// hasProperties reports whether an index means anything to a value.
func hasProperties(item any) bool {
	switch item.(type) {
	case map[string]any, string, []any, int64, *big.Int:
		return true
	}
	return false
}

// eachProperty gives the property of every item; missing tells that one item
// has none at all.
func eachProperty(list []any, name any) (properties []any, missing bool, err error) {
	properties = make([]any, len(list))
	for i, item := range list {
		properties[i], err = property(item, name)
		if errors.Is(err, errNoProperty) {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	return properties, false, nil
}

// mapProperty gives nil for an item without properties, where sort and where
// give up.
func mapProperty(r *run, input any, args []any) (any, error) {
	list, err := items(r, input)
	out := make([]any, len(list))
	for i, item := range list {
		var failed error
		if out[i], failed = property(item, args[0]); failed != nil && !errors.Is(failed, errNoProperty) {
			return nil, failed
		}
	}
	return out, err
}

// unique keeps the first of equal items.
func unique(r *run, input any, args []any) (any, error) {
	list, err := items(r, input)
	if err != nil || len(list) == 0 {
		return []any{}, err
	}
	keys := list
	if name := argument(args, 0, nil); name != nil && len(list) > 1 {
		var missing bool
		if keys, missing, err = eachProperty(list, name); err != nil || missing {
			return nil, err
		}
	}
	// By notation, as values such as maps cannot be keys of a map.
	seen := map[string]bool{}
	out := []any{}
	for i, item := range list {
		// 1 and 1.0 are not the same item, so the notation decides.
		if key := inspect(keys[i]); !seen[key] {
			seen[key] = true
			out = append(out, item)
		}
	}
	return out, nil
}

// compact drops nil items, or those whose property is nil.
func compact(r *run, input any, args []any) (any, error) {
	list, err := items(r, input)
	if err != nil || len(list) == 0 {
		return []any{}, err
	}
	keys := list
	if name := argument(args, 0, nil); name != nil {
		var missing bool
		if keys, missing, err = eachProperty(list, name); err != nil || missing {
			return nil, err
		}
	}
	out := []any{}
	for i, item := range list {
		if keys[i] != nil {
			out = append(out, item)
		}
	}
	return out, nil
}

// wanted tells for each item whether its property is the value asked for, or
// just true when none is.
func wanted(r *run, input any, args []any) (list []any, chosen []bool, err error) {
	if list, err = items(r, input); err != nil || len(list) == 0 {
		return nil, nil, err
	}
	keys, missing, err := eachProperty(list, args[0])
	if err != nil || missing {
		return nil, nil, err
	}
	value := argument(args, 1, nil)
	chosen = make([]bool, len(list))
	for i, key := range keys {
		if value == nil {
			chosen[i] = truthy(key)
		} else {
			chosen[i] = equalValues(key, value)
		}
	}
	return list, chosen, nil
}

// selectItems is where (keep) and reject.
func selectItems(keep bool) func(*run, any, []any) (any, error) {
	return func(r *run, input any, args []any) (any, error) {
		list, chosen, err := wanted(r, input, args)
		out := []any{}
		for i, item := range list {
			if chosen[i] == keep {
				out = append(out, item)
			}
		}
		// An item without properties makes the whole result nil; an empty list
		// stays one.
		if list == nil && input != nil && !equalValues(input, []any{}) {
			return nil, err
		}
		return out, err
	}
}

// findItem gives the first item asked for and its place, -1 for none.
func findItem(r *run, input any, args []any) (any, int64, error) {
	list, chosen, err := wanted(r, input, args)
	for i, is := range chosen {
		if is {
			return list[i], int64(i), nil
		}
	}
	return nil, -1, err
}
