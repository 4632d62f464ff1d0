package source

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

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
