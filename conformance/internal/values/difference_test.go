package values

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// TestClassify: the pairs of which a person knows at once what happened.
func TestClassify(t *testing.T) {
	beside := map[string]json.RawMessage{"f": Quote("mine"), "city": Quote("K\u00f6ln"), "ok": json.RawMessage("true")}
	records := []json.RawMessage{Quote("of the next one")}
	for _, c := range []struct {
		kind, sent, stored string // stored "": missing
		class              Class
		how                string
	}{
		{rpc.TypeString, `"mine"`, ``, Absent, "the field is missing"},
		{rpc.TypeString, `null`, ``, Equal, ""},
		{rpc.TypeString, `"mine"`, `null`, Dropped, "no value"},
		{rpc.TypeString, `null`, `"null"`, NullLost, "null became a text"},
		{rpc.TypeInteger, `null`, `0`, NullLost, "null became the zero value of the type"},
		{rpc.TypeString, `"mine"`, `""`, Constant, "an empty text"},
		{rpc.TypeString, `"mine"`, `"K\u00f6ln"`, OtherField, "the value of city"},
		{rpc.TypeString, `"mine"`, `"of the next one"`, OtherRecord, "the value of another record"},
		{rpc.TypeString, `"mine"`, `"old"`, Older, "as before"},
		{rpc.TypeString, `"abcdefghijklmnop"`, `"abcdefghij"`, Prefix, "cut after 10 characters of 16"},
		{rpc.TypeString, `"` + strings.Repeat("x", 300) + `"`, `"` + strings.Repeat("x", 255) + `"`, Prefix, "cut after 255 characters"},
		{rpc.TypeString, `"abcdefghijklmnop"`, `"abcdefg..."`, Prefix, "cut, with an ellipsis at its end"},
		{rpc.TypeString, `"secret"`, `"5ebe2294ecd0e0f08eab7690d2a6ee69"`, Hidden, "it looks like a hash"},
		{rpc.TypeString, `"secret"`, `"******"`, Hidden, "it is masked"},
		{rpc.TypeString, `"00042"`, `"42"`, Reformatted, "it was read as a number and written again"},
		{rpc.TypeString, `"00042"`, `42`, Retyped, "it was read as a number"},
		{rpc.TypeString, `"a 'b' c"`, `"a b c"`, Removed, "without its quotes"},
		{rpc.TypeString, `"mine"`, `"quite different"`, Other, ""},
		{rpc.TypeInteger, `9223372036854775807`, `2147483647`, Clamped, "the limit of 32 bits"},
		{rpc.TypeInteger, `9223372036854775807`, `99999999999`, Clamped, "the limit of a smaller type"},
		{rpc.TypeInteger, `9007199254740993`, `9007199254740992`, Rounded, "rounded to the precision of a double"},
		{rpc.TypeInteger, `5`, `"5"`, Retyped, "it is a text"},
		{rpc.TypeDecimal, `"1234.1234"`, `"1234.12"`, Rounded, "rounded to 2 digits after the point"},
		{rpc.TypeDecimal, `"1234.1234"`, `"1,234.1234"`, Reformatted, "with separators of thousands"},
		{rpc.TypeFloat, `3.456789`, `3.46`, Rounded, "rounded to 2 digits after the point"},
		{rpc.TypeFloat, `12345.678`, `12346.9`, Rounded, "rounded to 6 digits"},
		{rpc.TypeDate, `"2024-02-29"`, `"2024-02-28"`, Shifted, "the day before"},
		{rpc.TypeDate, `"2024-02-29"`, `"2024-03-04"`, Shifted, "4 days later"},
		{rpc.TypeDate, `"1821-03-04"`, `"2321-03-04"`, Century, "in the year 2321"},
		{rpc.TypeDateTime, `"2021-03-29T16:32:23Z"`, `"2021-03-29T13:32:23Z"`, Shifted, "3 hours earlier"},
		{rpc.TypeDateTime, `"2021-03-29T16:32:23Z"`, `"2021-03-29 16:32:23"`, Reformatted, "in the notation of a database"},
		{rpc.TypeDateTime, `"2021-03-29T16:32:23Z"`, `"1970-01-01T00:00:00Z"`, Constant, "the first day of a calendar"},
		{rpc.TypeBoolean, `false`, `null`, Null, "false was taken for no value"},
		{rpc.TypeBoolean, `true`, `1`, Retyped, "it is a number"},
		{TypeArray, `["a","b","c"]`, `["a","b"]`, Prefix, "cut after 2 items of 3"},
		{TypeArray, `["c","b","a"]`, `["a","b","c"]`, ItemsUnordered, "with its items sorted"},
		{TypeArray, `["a","b","a"]`, `["b","a"]`, ItemsUnordered, "its repetitions are gone"},
		{rpc.TypeInteger, `4295040000`, `72704`, Overflown, "the value modulo 2^32"},
		{rpc.TypeInteger, `70000`, `4464`, Overflown, "the value modulo 2^16"},
		{rpc.TypeInteger, `9007199254740993`, `1000000`, Clamped, "the limit of a smaller type"},
		{rpc.TypeDateTime, `"2040-02-29T12:00:00Z"`, `"1904-01-24T05:31:44Z"`, Overflown, "its seconds wrapped at 32 bits"},
		{rpc.TypeString, `"<b> & 'q'"`, `"&lt;b> &amp; &#39;q&#39;"`, Escaped, "with HTML entities"},
		{TypeArray, `["a","b"]`, `["a","B"]`, Case, "item 2: in upper case"},
		{TypeArray, `["a","b"]`, `{"a":"b"}`, Retyped, "it is no list"},
	} {
		p := Pair{Field: fieldOf(c.kind), Sent: json.RawMessage(c.sent), Beside: beside, Records: records}
		if c.stored != "" {
			p.Stored = json.RawMessage(c.stored)
		}
		if c.class == Older {
			p.Before = p.Stored
		}
		require.Equal(t, Difference{Class: c.class, How: c.how}, Classify(p), "%s as %s", c.sent, c.stored)
	}
}

// TestAdded: what was there before shows in a value that was not put in its place.
func TestAdded(t *testing.T) {
	for _, c := range [][5]string{
		{TypeArray, `["a","b"]`, `["x","y","z"]`, `["x","y","z","a","b"]`, "its items are added to those from before"},
		{TypeArray, `["a","b"]`, `["x","y","z"]`, `["a","b","z"]`, "what the list before was longer is still there"},
		{rpc.TypeInteger, `7`, `-30`, `-23`, "the sum of the old value and the one that was sent"},
		{rpc.TypeFloat, `0.1`, `0.2`, `0.30000000000000004`, "the sum of the old value and the one that was sent"},
		{rpc.TypeString, `"new"`, `"old"`, `"old, new"`, "the old value, and behind it the one that was sent"},
	} {
		p := Pair{Field: fieldOf(c[0]), Sent: json.RawMessage(c[1]), Before: json.RawMessage(c[2]), Stored: json.RawMessage(c[3])}
		require.Equal(t, Difference{Class: Added, How: c[4]}, Classify(p))
	}
}

// TestOfAll: values of one field show together what single ones do not.
func TestOfAll(t *testing.T) {
	for _, c := range [][5]string{
		{`"a"`, `"OTHER"`, `"b"`, `"OTHER"`, "constant"}, {`"a"`, `null`, `"b"`, `null`, "dropped"}, {`"a"`, `"x"`, `"b"`, `"y"`, ""}, {`"a"`, `"x"`, `"a"`, `"x"`, ""},
	} {
		f, raw := fieldOf(rpc.TypeString), func(i int) json.RawMessage { return json.RawMessage(c[i]) }
		require.Equal(t, Class(c[4]), OfAll([]Pair{{Field: f, Sent: raw(0), Stored: raw(1)}, {Field: f, Sent: raw(2), Stored: raw(3)}}).Class)
	}
}

// TestApart: two texts that differ are never shown alike.
func TestApart(t *testing.T) {
	long := strings.Repeat("abcdefghij", 30)
	for _, pair := range [][2]string{
		{"a", "b"}, {long, long[:255]}, {long + "x", long + "y"}, {"x" + long, "y" + long}, {long, ""}, {long[:150] + "x" + long, long[:150] + "y" + long},
	} {
		a, b := Apart(Quote(pair[0]), Quote(pair[1]))
		require.NotEqual(t, a, b)
		require.LessOrEqual(t, len([]rune(a)), 140)
		require.LessOrEqual(t, len([]rune(b)), 140)
	}
}
