package source

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/server/api"
)

func TestOneStatement(t *testing.T) {
	for text, want := range map[string][2]string{
		"SELECT 1":                         {"SELECT 1", ""},
		" SELECT 1 ; -- x":                 {" SELECT 1", ""},
		"SELECT ';' ;;":                    {"SELECT ';'", ""},
		`SELECT "a;""b" FROM [c;] /* ; */`: {`SELECT "a;""b" FROM [c;]`, ""},
		"SELECT 'it''s; fine', `x;``y`":    {"SELECT 'it''s; fine', `x;``y`", ""},
		"SELECT 1; SELECT 2":               {"", "must be one statement"},
		"SELECT 1;/**/x":                   {"", "must be one statement"},
		"-- only a comment":                {"", "is empty"},
		"/* open":                          {"", "is empty"},
		"SELECT 'open ; x":                 {"SELECT 'open ; x", ""},
		"SELECT [open ; x":                 {"SELECT [open ; x", ""},
		"SELECT \x00":                      {"", "NUL"},
	} {
		body, problem, _ := oneStatement(text)
		if want[1] == "" {
			require.Empty(t, problem, text)
			require.Equal(t, want[0], body)
		} else {
			require.Contains(t, problem, want[1], text)
		}
	}
}

// FuzzNextToken: tokens cover any text without gap or end.
func FuzzNextToken(f *testing.F) {
	for _, seed := range []string{"SELECT 'a''b' -- x\n FROM \"t\"", "/*", "'", "[", "`a.b`.c", "\xff\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i := 0; i < len(text); {
			token := nextToken(text, i)
			require.Equal(t, i, token.start)
			require.Greater(t, token.end, i)
			require.LessOrEqual(t, token.end, len(text))
			_ = unquoted(text[token.start:token.end])
			i = token.end
		}
		w := &warehouse{catalog: "c", dialect: builtIn.types["snowflake"].dialect}
		_, places := w.rewrite(nil, text, true)
		last := 0
		for i := range len(text) {
			at := original(places, i)
			require.GreaterOrEqual(t, at, last)
			last = at
		}
	})
}

func TestDeclaredKind(t *testing.T) {
	for declared, want := range map[string]api.Kind{
		"INTEGER": api.KindInteger, "bigint": api.KindInteger, "UNSIGNED BIG INT": api.KindInteger, "INT64": api.KindInteger, "bigserial": api.KindInteger,
		"NUMBER(38,0)": api.KindInteger, "NUMBER(38, 2)": api.KindDecimal, "NUMERIC": api.KindDecimal, "decimal(10)": api.KindDecimal, "MONEY": api.KindDecimal, "NUM": api.KindDecimal,
		"REAL": api.KindFloat, "DOUBLE PRECISION": api.KindFloat, "FLOAT64": api.KindFloat,
		"VARCHAR(20)": api.KindString, "text": api.KindString, "STRING": api.KindString, "UUID": api.KindString, "TIME": api.KindString, "INTERVAL": api.KindString, "POINT": api.KindString,
		"BOOLEAN": api.KindBoolean, "bool": api.KindBoolean, "BIT": api.KindBoolean,
		"DATE": api.KindDate, "DATETIME": api.KindDateTime, "timestamp with time zone": api.KindDateTime, "TIMESTAMP_NTZ(9)": api.KindDateTime,
		"JSON": api.KindObject, "jsonb": api.KindObject, "VARIANT": api.KindObject, "STRUCT<a INT64>": api.KindObject,
		"ARRAY<INT64>": api.KindArray, "text[]": api.KindArray,
		"BLOB": api.KindBinary, "VARBINARY(10)": api.KindBinary, "BYTES": api.KindBinary, "bytea": api.KindBinary,
		"": api.KindAny, "ANY": api.KindAny, "something": api.KindAny,
	} {
		require.Equal(t, want, declaredKind(declared), declared)
	}
}

// TestAppendString: the text reads back, and is the one that keys compare in.
func TestAppendString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) })).Draw(t, "text"))
		got := appendString(nil, text)
		require.True(t, utf8.Valid(got))
		require.Equal(t, got, appendString(nil, []byte(text)))
		require.Equal(t, strings.ReplaceAll(string(got), api.LostByte, "\ufffd"), string(appendCanonical(nil, got)))
		require.Equal(t, !utf8.ValidString(text), strings.Contains(string(got), api.LostByte))
		var back string
		require.NoError(t, json.Unmarshal(got, &back))
		require.Equal(t, string([]rune(text)), back, "%q", got)
	})
}

func TestAppendFloat(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", -1.5: "-1.5", 1e20: "100000000000000000000", 1e21: "1e+21", 1e-6: "0.000001", 1e-7: "1e-07", math.Inf(1): `"Infinity"`, math.Inf(-1): `"-Infinity"`, math.MaxFloat64: "1.7976931348623157e+308"} {
		require.Equal(t, want, string(appendFloat(nil, v, 64)))
	}
	require.Equal(t, `"NaN"`, string(appendFloat(nil, math.NaN(), 64)))
}

// TestDates compares days and times with package time.
func TestDates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds")
		nanos := rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")
		at := time.Unix(seconds, nanos).UTC()
		require.Equal(t, at.Format("2006-01-02T15:04:05"), string(appendTimestamp(nil, seconds, 1)))
		require.Equal(t, at.Truncate(time.Millisecond).Format("2006-01-02T15:04:05.999999999"), string(appendTimestamp(nil, seconds*1000+nanos/1e6, 1000)))
		if seconds > -9e9 && seconds < 9e9 {
			require.Equal(t, at.Format("2006-01-02T15:04:05.999999999"), string(appendTimestamp(nil, seconds*1e9+nanos, 1e9)))
		}
	})
	require.Equal(t, "-0001-12-31", string(appendDate(nil, -719529)))
	require.Equal(t, "+10000-01-01", string(appendDate(nil, 2932897)))
}

func TestTwosComplement(t *testing.T) {
	for want, b := range map[int64][]byte{0: {0}, 5: {5}, -1: {0xff}, -128: {0x80}, 256: {1, 0}, -256: {0xff, 0}} {
		require.Zero(t, big.NewInt(want).Cmp(twosComplement(b)), b)
	}
	require.Equal(t, "0", twosComplement(nil).String())
}

func TestFloat16(t *testing.T) {
	for want, bits := range map[float64]uint16{1: 0x3c00, -2: 0xc000, 65504: 0x7bff, math.Ldexp(1, -24): 1, 0: 0, math.Inf(1): 0x7c00, math.Inf(-1): 0xfc00} {
		require.InDelta(t, 0, map[bool]float64{true: 0, false: 1}[float16([]byte{byte(bits), byte(bits >> 8)}) == want], 0, "%x", bits)
	}
	require.True(t, math.IsNaN(float16([]byte{1, 0x7c})))
}
