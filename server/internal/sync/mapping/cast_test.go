package mapping

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/server/api"
)

func TestCast(t *testing.T) {
	moment := time.Date(2021, 3, 29, 18, 32, 23, 0, time.FixedZone("", 7200))
	huge, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
	n := func(digits string) json.Number { return json.Number(digits) }
	for _, c := range []struct {
		value any
		to    string
		want  any
		err   string
	}{
		{nil, "integer", nil, ""},
		{true, "boolean", true, ""},
		{"TRUE", "boolean", true, ""},
		{" f ", "boolean", false, ""},
		{int64(1), "boolean", true, ""},
		{n("0"), "boolean", false, ""},
		{int64(2), "boolean", nil, "cast to boolean: 2 is neither true nor false"},
		{"yes", "boolean", nil, "neither"},
		{"", "boolean", nil, "neither"},

		{int64(5), "integer", n("5"), ""},
		{"5", "integer", n("5"), ""},
		{" +5 ", "integer", n("5"), ""},
		{"007", "integer", n("7"), ""},
		{"-0", "integer", n("0"), ""},
		{5.0, "integer", n("5"), ""},
		{"5.000", "integer", n("5"), ""},
		{5.5, "integer", nil, "5.5 is not a whole number"},
		{"5.5", "integer", nil, "not a whole number"},
		{n("1e3"), "integer", n("1000"), ""},
		{n("12e-1"), "integer", nil, "1.2 is not a whole number"},
		{n("9007199254740993"), "integer", n("9007199254740993"), ""},
		{int64(math.MinInt64), "integer", n("-9223372036854775808"), ""},
		{uint64(math.MaxUint64), "integer", n("18446744073709551615"), ""},
		{huge, "integer", n("-123456789012345678901234567890"), ""},
		{true, "integer", n("1"), ""},
		{"", "integer", nil, `"" is not a number`},
		{"5x", "integer", nil, "not a number"},
		{"0x10", "integer", nil, "not a number"},
		{"1_000", "integer", nil, "not a number"},
		{math.NaN(), "integer", nil, "NaN is no number"},
		{math.Inf(1), "decimal", nil, "no number"},
		{n("1e1000000000"), "integer", nil, "more than 10000 digits"},
		{time.Now(), "integer", nil, "not a number"},
		{[]any{}, "integer", nil, "an array is not a number"},

		{2.5, "float", n("2.5"), ""},
		{int64(2), "float", n("2"), ""},
		{"1e-7", "float", n("1e-07"), ""},
		{n("9007199254740992"), "float", n("9007199254740992"), ""},
		{n("9007199254740993"), "float", nil, "more digits than a float keeps"},
		{n("0.1"), "float", n("0.1"), ""},
		{n("0.1000"), "float", n("0.1"), ""},
		{n("0.12345678901234567890"), "float", nil, "more digits than a float keeps"},
		{n("1e400"), "float", nil, "out of the range"},
		{true, "float", nil, "not a number"},

		{n("1234.1234"), "decimal", "1234.1234", ""},
		{n("0.10"), "decimal", "0.10", ""},
		{int64(7), "decimal", "7", ""},
		{0.1, "decimal", "0.1", ""},
		{"12345678901234567890.123456789", "decimal", "12345678901234567890.123456789", ""},
		{n("-1.5E+2"), "decimal", "-150", ""},
		{n("15e-3"), "decimal", "0.015", ""},
		{"007", "decimal", "7", ""},
		{"1.", "decimal", "1", ""},

		{"2021-03-29", "date", "2021-03-29", ""},
		{"2021-03-29T00:00:00Z", "date", "2021-03-29", ""},
		{moment, "date", nil, "2021-03-29T16:32:23Z has a time of day"},
		{"29.3.2021", "date", nil, "is not a time such as"},
		{"2021-02-30", "date", nil, "is not a time such as"},
		{"2020-02-29", "date", "2020-02-29", ""},
		{"2021-03-29T24:00:00Z", "date_time", nil, "is not a time"},
		{"2021-03-29T16:32:23.50Z", "date_time", "2021-03-29T16:32:23.5Z", ""},
		{int64(5), "date", nil, "5 is not a time"},
		{moment, "date_time", "2021-03-29T16:32:23Z", ""},
		{"2021-03-29", "date_time", "2021-03-29T00:00:00Z", ""},
		{"2021-03-29 16:32:23", "date_time", "2021-03-29T16:32:23Z", ""},
		{"2021-03-29 16:32:23 UTC", "date_time", "2021-03-29T16:32:23Z", ""},
		{"2021-03-29 16:32:23 +0200", "date_time", "2021-03-29T14:32:23Z", ""},
		{"2021-03-29T16:32:23.123456789+02:00", "date_time", "2021-03-29T14:32:23.123456789Z", ""},
		{"now", "date_time", nil, "is not a time"},

		{"x", "string", "x", ""},
		{"", "string", "", ""},
		{"a\xff", "string", nil, "not valid UTF-8"},
		{[]byte("abc"), "string", "abc", ""},
		{[]byte{0xff, 0}, "string", "/wA=", ""},
		{int64(5), "string", "5", ""},
		{2.50, "string", "2.5", ""},
		{n("2.50"), "string", "2.50", ""},
		{false, "string", "false", ""},
		{moment, "string", "2021-03-29T16:32:23Z", ""},
		{map[string]any{"a": []any{n("1"), "<b>"}}, "string", `{"a":[1,"<b>"]}`, ""},
		{"x", "json", nil, "unknown type"},
	} {
		got, err := Cast(c.value, c.to, false)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, "%v to %s", c.value, c.to)
			continue
		}
		require.NoError(t, err, "%v to %s", c.value, c.to)
		require.Equal(t, c.want, got, "%v to %s", c.value, c.to)
	}
}

func TestCastArray(t *testing.T) {
	got, err := Cast([]any{int64(1), "2", nil}, api.TypeInteger, true)
	require.NoError(t, err)
	require.Equal(t, []any{json.Number("1"), json.Number("2"), nil}, got)

	got, err = Cast(`["a", 9007199254740993]`, api.TypeString, true)
	require.NoError(t, err)
	require.Equal(t, []any{"a", "9007199254740993"}, got)

	for value, part := range map[any]string{"a": "is not an array", `{"a":1}`: "is not an array", int64(5): "5 is not an array", `[1,"x"]`: "item 1: cast to integer"} {
		_, err := Cast(value, api.TypeInteger, true)
		require.ErrorContains(t, err, part)
	}
}

// A cast value keeps its meaning, and casting again changes nothing.
func TestCastKeepsNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?(e-?[0-9]{1,2})?`).Draw(t, "digits")
		to := rapid.SampledFrom([]string{api.TypeInteger, api.TypeFloat, api.TypeDecimal}).Draw(t, "type")
		exact, ok := new(big.Rat).SetString(digits)
		require.True(t, ok)
		got, err := Cast(json.Number(digits), to, false)
		if err != nil {
			require.NotEqual(t, api.TypeDecimal, to, "a decimal holds every number")
			if to == api.TypeInteger {
				require.False(t, exact.IsInt())
			}
			return
		}
		text, err := json.Marshal(got)
		require.NoError(t, err)
		plain := strings.Trim(string(text), `"`)
		back, ok := new(big.Rat).SetString(plain)
		require.True(t, ok, plain)
		require.Zero(t, exact.Cmp(back), "%s became %s", digits, plain)
		again, err := Cast(got, to, false)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func TestCastKeepsMoments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds")
		offset := rapid.IntRange(-14*3600, 14*3600).Draw(t, "offset") / 60 * 60
		moment := time.Unix(seconds, rapid.Int64Range(0, 999999999).Draw(t, "nanos")).In(time.FixedZone("", offset))
		for _, value := range []any{moment, moment.UTC().Format(time.RFC3339Nano)} {
			got, err := Cast(value, api.TypeDateTime, false)
			require.NoError(t, err)
			back, err := time.Parse(time.RFC3339Nano, got.(string))
			require.NoError(t, err)
			require.True(t, back.Equal(moment))
			require.True(t, strings.HasSuffix(got.(string), "Z"))
		}
	})
}

// Any value to any type: a result of the type or an error, never both.
func FuzzCast(f *testing.F) {
	for _, seed := range []string{`1`, `"x"`, `[1,2]`, `{"a":null}`, `1e400`, `true`, `"2021-03-29"`} {
		f.Add(seed, "string", false)
	}
	f.Fuzz(func(t *testing.T, text, to string, array bool) {
		value, err := decodeValue([]byte(text))
		if err != nil {
			value = text
		}
		for _, fieldType := range append([]string{to}, wireTypes...) {
			got, err := Cast(value, fieldType, array)
			if err != nil {
				require.Nil(t, got)
				continue
			}
			_, err = json.Marshal(got)
			require.NoError(t, err)
		}
	})
}
