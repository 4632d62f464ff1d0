package cell

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/internal/rawjson"
)

// TestAppendString: the text reads back, and is the one that keys compare in.
func TestAppendString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) })).Draw(t, "text"))
		got := AppendString(nil, text)
		require.True(t, utf8.Valid(got))
		require.Equal(t, got, AppendString(nil, []byte(text)))
		require.Equal(t, strings.ReplaceAll(string(got), rawjson.LostByte, "\ufffd"), string(AppendCanonical(nil, got)))
		require.Equal(t, !utf8.ValidString(text), strings.Contains(string(got), rawjson.LostByte))
		var back string
		require.NoError(t, json.Unmarshal(got, &back))
		require.Equal(t, string([]rune(text)), back, "%q", got)
	})
}

func TestAppendFloat(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", -1.5: "-1.5", 1e20: "100000000000000000000", 1e21: "1e+21", 1e-6: "0.000001", 1e-7: "1e-07", math.Inf(1): `"Infinity"`, math.Inf(-1): `"-Infinity"`, math.MaxFloat64: "1.7976931348623157e+308"} {
		require.Equal(t, want, string(AppendFloat(nil, v, 64)))
	}
	require.Equal(t, `"NaN"`, string(AppendFloat(nil, math.NaN(), 64)))
}

// TestDates compares days and times with package time.
func TestDates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds")
		nanos := rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")
		at := time.Unix(seconds, nanos).UTC()
		require.Equal(t, at.Format("2006-01-02T15:04:05"), string(AppendTimestamp(nil, seconds, 1)))
		require.Equal(t, at.Truncate(time.Millisecond).Format("2006-01-02T15:04:05.999999999"), string(AppendTimestamp(nil, seconds*1000+nanos/1e6, 1000)))
		if seconds > -9e9 && seconds < 9e9 {
			require.Equal(t, at.Format("2006-01-02T15:04:05.999999999"), string(AppendTimestamp(nil, seconds*1e9+nanos, 1e9)))
		}
	})
	require.Equal(t, "-0001-12-31", string(AppendDate(nil, -719529)))
	require.Equal(t, "+10000-01-01", string(AppendDate(nil, 2932897)))
}
