package liquid

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// ownFilters are the service's own and date.
var ownFilters = map[string]filter{
	"date":   {1, 1, date},
	"json":   {apply: toJSON},
	"except": {0, manyArguments, pickKeys(false)},
	"only":   {0, manyArguments, pickKeys(true)},
	"keys":   {apply: keysOf},
	"raw":    {apply: func(_ *run, input any, _ []any) (any, error) { return rawText(outputText(input)), nil }},
	"base64": onText(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
	"sha256": onText(func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:])
	}),
}

// More than any template has.
const manyArguments = 1000

// toJSON writes any value as JSON. What it writes is complete, so JSON mode
// does not escape it again.
func toJSON(_ *run, input any, _ []any) (any, error) {
	text, err := marshalPlain(plainValue(input))
	if err != nil {
		return nil, err
	}
	return rawText(text), nil
}

// plainValue turns the values of templates into those of JSON.
func plainValue(value any) any {
	switch v := liquidValue(value).(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plainValue(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = plainValue(item)
		}
		return out
	// Numbers go out with the digits that they came with.
	case decimal:
		return json.Number(v)
	case float64:
		return json.Number(floatText(v))
	case *big.Int:
		return json.Number(v.String())
	case nil, bool, int64, string:
		return v
	default:
		return toText(v)
	}
}

// pickKeys keeps or drops keys of a map, given one by one, as an array, or as
// the keys of a map.
func pickKeys(keep bool) func(*run, any, []any) (any, error) {
	return func(_ *run, input any, args []any) (any, error) {
		source, ok := input.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s filter requires an object", map[bool]string{true: "only", false: "except"}[keep])
		}
		// All forms of arguments may be mixed.
		named := map[string]bool{}
		for _, arg := range args {
			switch v := arg.(type) {
			case map[string]any:
				for key := range v {
					named[key] = true
				}
			case []any:
				for _, item := range flatten(nil, v) {
					named[toText(item)] = true
				}
			default:
				named[toText(arg)] = true
			}
		}
		out := map[string]any{}
		for key, value := range source {
			if named[key] == keep {
				out[key] = value
			}
		}
		return out, nil
	}
}

// keysOf gives the keys in their order, which a record has not.
func keysOf(_ *run, input any, _ []any) (any, error) {
	source, ok := input.(map[string]any)
	if !ok {
		return nil, errors.New("keys filter requires an object")
	}
	out := make([]any, 0, len(source))
	for _, key := range slices.Sorted(maps.Keys(source)) {
		out = append(out, key)
	}
	return out, nil
}
