package values

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// numberTransforms store a number in less than its declared type.
var numberTransforms = slices.Concat(
	[]Transform{
		onInteger("clamp", Clamped, "the limit of 16 bits", clampedTo(16), "-32769", "32768", "-9223372036854775808"),
		onInteger("clamp", Clamped, "the limit of 32 bits", clampedTo(32), "-2147483649", "2147483648"),
		onInteger("clamp", Clamped, "the limit of 32 bits without a sign", func(n int64) int64 { return max(0, min(n, math.MaxUint32)) }, "-32769", "4294967296"),
		onInteger("clamp", Overflown, "the value modulo 2^16", func(n int64) int64 { return int64(int16(n)) }, "32768"),
		onInteger("clamp", Overflown, "the value modulo 2^32", func(n int64) int64 { return int64(int32(n)) }, "2147483648", "9223372036854775807"),
		onInteger("clamp", Clamped, "the value without its sign", func(n int64) int64 { return max(n, -n) }, "-32769"),
		onInteger("round", Rounded, "rounded to the precision of a double", func(n int64) int64 { return ofFloat(float64(n)) }, "9007199254740993", "-9007199254740993"),
		onInteger("round", Rounded, "rounded to single precision", func(n int64) int64 { return ofFloat(float64(float32(n))) }, "16777217", "2147483647"),
		onRaw("cast", rpc.TypeInteger, Retyped, "it is a text", asWritten, "0"),
		onRaw("cast", rpc.TypeInteger, Null, "zero was taken for no value", falsy, "0"),

		onRaw("round", rpc.TypeDecimal, Rounded, "rounded to the precision of a double", mapText(viaFloat(64)), `"123456789012345.678"`, `"99999999999999.9999"`),
		onRaw("round", rpc.TypeDecimal, Rounded, "rounded to single precision", mapText(viaFloat(32)), `"16777217.1"`, `"1234567.89"`),
		onRaw("round", rpc.TypeDecimal, Rounded, "without its fraction", mapText(before(".")), `"1234.1234"`, `"-0.5"`),
		onRaw("clamp", rpc.TypeDecimal, Clamped, "the limit of eight digits before the point", mapText(clampDecimal), `"100000000"`, `"-100000000.5"`),
		onRaw("clamp", rpc.TypeDecimal, Clamped, "the value without its sign", mapText(func(s string) string { return strings.TrimPrefix(s, "-") }), `"-0.5"`),
		onRaw("locale", rpc.TypeDecimal, Reformatted, "with a comma for the point", mapText(replacing(".", ",")), `"1234.1234"`),
		onRaw("locale", rpc.TypeDecimal, Reformatted, "without its point", mapText(replacing(".", "")), `"1234.1234"`, `"1234.567"`),
		onRaw("locale", rpc.TypeDecimal, Reformatted, "with separators of thousands", mapText(thousands), `"1234.1234"`),

		onRaw("round", rpc.TypeFloat, Rounded, "rounded to single precision", mapFloat(func(f float64) float64 { return float64(float32(f)) }), "0.1", "16777217.0", "-1234567.890123"),
		onRaw("round", rpc.TypeFloat, Rounded, "rounded to 6 significant digits", rounded('g', 6), "1234567.5", "52.5200065"),
		onRaw("round", rpc.TypeFloat, Rounded, "rounded to 10 significant digits", rounded('g', 10), "-1234567.890123"),
		onRaw("round", rpc.TypeFloat, Rounded, "rounded to 15 significant digits", rounded('g', 15), "0.30000000000000004", "52.520006599999995"),
		onRaw("round", rpc.TypeFloat, Rounded, "rounded to 2 digits after the point", rounded('f', 2), "0.125"),
		onRaw("round", rpc.TypeFloat, Rounded, "rounded to 4 digits after the point", rounded('f', 4), "2.5e-8"),
		onRaw("round", rpc.TypeFloat, Rounded, "rounded to 6 digits after the point", rounded('f', 6), "2.5e-8"),
		onRaw("round", rpc.TypeFloat, Rounded, "rounded to a whole number", mapFloat(math.Round), "0.125", "-0.5"),
		onRaw("round", rpc.TypeFloat, Rounded, "without its fraction", mapFloat(math.Trunc), "-0.5"),
		onRaw("clamp", rpc.TypeFloat, Clamped, "the value without its sign", mapFloat(math.Abs), "-0.5"),
		onRaw("clamp", rpc.TypeFloat, Clamped, "the limit of 64-bit integers", mapFloat(func(f float64) float64 { return max(-math.MaxInt64, min(f, math.MaxInt64)) }), "1e21"),
		onRaw("cast", rpc.TypeFloat, Retyped, "it is a text", asWritten, "0.125"),
		onRaw("cast", rpc.TypeFloat, Null, "zero was taken for no value", falsy, "0.0"),
	},
	places(2, `"0.125"`, `"-0.005"`), places(4, `"0.12345"`, `"1234.12345"`), places(6, `"0.1234567"`), places(9, `"0.1234567891"`, `"-0.000000000000000001"`))

// asWritten is a value as its JSON text, quoted.
func asWritten(raw json.RawMessage) json.RawMessage { return Quote(string(raw)) }

func onInteger(name string, class Class, says string, apply func(int64) int64, shows ...string) Transform {
	return onRaw(name, rpc.TypeInteger, class, says, func(raw json.RawMessage) json.RawMessage {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return raw
		}
		return json.RawMessage(strconv.FormatInt(apply(n), 10))
	}, shows...)
}

func clampedTo(bits int) func(int64) int64 {
	return func(n int64) int64 { return max(-1<<(bits-1), min(n, 1<<(bits-1)-1)) }
}

// ofFloat is a double as an integer, at the ends of the range too.
func ofFloat(f float64) int64 {
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}

// zeros are what a test for a value takes for none, the first moment of 1970 among them.
var zeros = []string{"0", "0.0", "false", `""`, "[]", `"1970-01-01"`, `"1970-01-01T00:00:00Z"`}

func falsy(raw json.RawMessage) json.RawMessage {
	if slices.Contains(zeros, string(raw)) {
		return json.RawMessage("null")
	}
	return raw
}

func viaFloat(bits int) func(string) string {
	return unlessFails(func(s string) (string, error) {
		f, err := strconv.ParseFloat(s, bits)
		return strconv.FormatFloat(f, 'f', -1, bits), err
	})
}

func mapFloat(apply func(float64) float64) func(json.RawMessage) json.RawMessage {
	return func(raw json.RawMessage) json.RawMessage {
		f, err := strconv.ParseFloat(string(raw), 64)
		out, outErr := json.Marshal(apply(f))
		if err != nil || outErr != nil {
			return raw
		}
		return out
	}
}

// rounded writes a number in a format of strconv with n digits, and reads it again.
func rounded(format byte, n int) func(json.RawMessage) json.RawMessage {
	return mapFloat(func(f float64) float64 {
		out, _ := strconv.ParseFloat(strconv.FormatFloat(f, format, n, 64), 64)
		return out
	})
}

// places are the transforms of a column with a fixed number of digits after the point.
func places(n int, shows ...string) []Transform {
	says := "to " + quantity.Count(n, "digit") + " after the point"
	return []Transform{
		onRaw("round", rpc.TypeDecimal, Rounded, "rounded "+says, mapText(func(s string) string {
			if r, ok := new(big.Rat).SetString(s); ok {
				return r.FloatString(n)
			}
			return s
		}), shows...),
		onRaw("round", rpc.TypeDecimal, Rounded, "cut "+says, mapText(func(s string) string {
			if whole, fraction, _ := strings.Cut(s, "."); len(fraction) > n {
				return whole + "." + fraction[:n]
			}
			return s
		}), shows...),
	}
}

func clampDecimal(s string) string {
	const most = 99999999.99
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) <= most {
		return s
	}
	return strconv.FormatFloat(math.Copysign(most, f), 'f', 2, 64)
}

func thousands(s string) string {
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

// booleanTransforms store a boolean as something else.
var booleanTransforms = []Transform{
	onRaw("cast", rpc.TypeBoolean, Retyped, "it is a text", asWritten, "true", "false"),
	onRaw("cast", rpc.TypeBoolean, Retyped, "it is a number", mapRaw(replacing("true", "1", "false", "0")), "true", "false"),
	onRaw("cast", rpc.TypeBoolean, Null, "false was taken for no value", falsy, "false"),
	onRaw("cast", rpc.TypeBoolean, Constant, "true, whatever was sent: any text is true", mapRaw(replacing("false", "true")), "false"),
	onRaw("cast", rpc.TypeBoolean, Constant, "false, whatever was sent", mapRaw(replacing("true", "false")), "true"),
}

// alone is a list of one text.
var alone = regexp.MustCompile(`^\[("[^",]*")\]$`)

// arrayTransforms store a list of texts as something else, or tidy it up.
var arrayTransforms = []Transform{
	onItems("items", Retyped, "one text with the items joined by commas", func(items []string) any { return strings.Join(items, ",") }, `[]`, `["one"]`, `["a,b","c"]`),
	onItems("items", Retyped, "one text of JSON", func(items []string) any { out, _ := json.Marshal(items); return string(out) }, `[]`, `["one"]`),
	onRaw("items", TypeArray, Retyped, "its only item", mapRaw(func(s string) string { return alone.ReplaceAllString(s, "$1") }), `["one"]`),
	onRaw("items", TypeArray, Null, "an empty list was taken for no value", falsy, `[]`),
	onItems("items", Items, "with its items joined and split again at commas", func(items []string) any { return strings.Split(strings.Join(items, ","), ",") }, `["a,b","c"]`, `[]`),
	onItems("items", ItemsUnordered, "with its items sorted", func(items []string) any { out := slices.Clone(items); slices.Sort(out); return out }, `["c","b","a"]`),
	onItems("items", ItemsUnordered, "with its items in reverse order", func(items []string) any { out := slices.Clone(items); slices.Reverse(out); return out }, `["c","b","a"]`),
	onItems("items", ItemsUnordered, "with each item once", func(items []string) any { return once(items) }, `["b","a","b"]`),
	onItems("items", ItemsUnordered, "as the keys of an object: each once, numbers first", func(items []string) any {
		return slices.SortedStableFunc(slices.Values(once(items)), func(a, b string) int { return cmp.Compare(placeOf(a), placeOf(b)) })
	}, `["x","10","9","x"]`),
	onItems("items", EmptyItems, "without its empty items", func(items []string) any {
		return slices.DeleteFunc(slices.Clone(items), func(s string) bool { return s == "" })
	}, `["","b"]`),
	onItems("items", Items, "with its first item only", func(items []string) any { return items[:min(1, len(items))] }, `["c","b","a"]`),
	onItems("items", Items, "with its last item only", func(items []string) any { return items[max(0, len(items)-1):] }, `["c","b","a"]`),
	onRaw("items", TypeArray, Null, `with its item "NULL" taken for no value`, mapRaw(replacing(`"NULL"`, "null")), `["NULL","b"]`),
	onItems("items", Items, "with the braces, quotes and backslashes of its items gone", eachItem(replacing("{", "", "}", "", `"`, "", `\`, "")), `["{a}","say \"b\"","c\\d"]`),
	onItems("items", Trimmed, "the spaces around its items are gone", eachItem(strings.TrimSpace), `[" a ","b"]`),
}

// once are the items without their repetitions.
func once(items []string) []string {
	out := []string{}
	for _, s := range items {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// placeOf is where an object of JavaScript has a key: numbers first, in order.
func placeOf(key string) int {
	if n, err := strconv.Atoi(key); err == nil {
		return n
	}
	return math.MaxInt
}

func onItems(name string, class Class, says string, apply func([]string) any, shows ...string) Transform {
	return onRaw(name, TypeArray, class, says, func(raw json.RawMessage) json.RawMessage {
		var items []string
		if json.Unmarshal(raw, &items) != nil || items == nil {
			return raw
		}
		made := apply(items)
		if text, is := made.(string); is {
			return Quote(text)
		}
		out, _ := json.Marshal(made) // texts and nulls always have a JSON form
		return out
	}, shows...)
}

func eachItem(change func(string) string) func([]string) any {
	return func(items []string) any {
		out := make([]string, len(items))
		for i, s := range items {
			out[i] = change(s)
		}
		return out
	}
}
