package values

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/matrixtest"
)

// everySeed visits the seeds of a large run: more checks than there are, more
// records than any of them sends, and three sets of values under each key.
func everySeed(visit func(check, record, version int, s Seed)) {
	for check := range 256 {
		for record := range 200 {
			first := NewSeed(check, record)
			for _, version := range []int{0, 1, 127} {
				visit(check, record, version, first.Version(version))
			}
		}
	}
}

// TestValuesNeverRepeat: a unique column of the destination must never be the
// reason of a refusal.
func TestValuesNeverRepeat(t *testing.T) {
	matrixtest.Long(t)
	cases := []struct {
		name  string
		field rpc.Field
		how   Style
	}{
		{"a text", rpc.Field{APIName: "last_name", Type: rpc.TypeString}, Guess},
		{"a text in a field with a long name", rpc.Field{APIName: strings.Repeat("very_", 12) + "long", Type: rpc.TypeString}, Guess},
		{"an address", rpc.Field{APIName: "work_email", Type: rpc.TypeString}, Guess},
		{"a number to call", rpc.Field{APIName: "phone", Type: rpc.TypeString}, Guess},
		{"a page", rpc.Field{APIName: "website", Type: rpc.TypeString}, Guess},
		{"a UUID", rpc.Field{APIName: "guid", Type: rpc.TypeString}, Guess},
		{"a word", rpc.Field{APIName: "last_name", Type: rpc.TypeString}, Word},
		{"letters only", rpc.Field{APIName: "last_name", Type: rpc.TypeString}, Small},
		{"an integer", rpc.Field{APIName: "age", Type: rpc.TypeInteger}, Guess},
		{"texts", rpc.Field{APIName: "tags", Type: rpc.TypeString, Array: true}, Guess},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			values, seen, again := NewMaker("00ab12"), map[string]string{}, ""
			everySeed(func(check, record, version int, s Seed) {
				raw := string(values.Value(c.field, s, c.how))
				where := fmt.Sprintf("check %d, record %d, version %d", check, record, version)
				if other, is := seen[raw]; is && again == "" {
					again = fmt.Sprintf("%s is the value of %s and of %s", raw, other, where)
				}
				seen[raw] = where
			})
			require.Empty(t, again)
		})
	}
}

// TestOrdinaryNumbersFitOrdinaryColumns of 32 bits.
func TestOrdinaryNumbersFitOrdinaryColumns(t *testing.T) {
	values := NewMaker("00ab12")
	small, large := 0, 0
	everySeed(func(_, _, _ int, s Seed) {
		n := values.Number(s)
		if n >= 1<<numberBits {
			large++
		}
		if v := string(values.Value(rpc.Field{Type: rpc.TypeInteger}, s, Small)); len(v) > 2 || v == "0" {
			small++
		}
	})
	require.Zero(t, large)
	require.Zero(t, small, "small numbers are 1 to 99")
}

// TestRunsDoNotShareValues: what an earlier run left behind must not collide.
func TestRunsDoNotShareValues(t *testing.T) {
	f, s := rpc.Field{APIName: "last_name", Type: rpc.TypeString}, NewSeed(3, 5)
	require.NotEqual(t, NewMaker("00ab12").Value(f, s, Guess), NewMaker("00ab13").Value(f, s, Guess))
	require.Equal(t, NewMaker("00ab12").Value(f, s, Guess), NewMaker("00ab12").Value(f, s, Guess), "a run can be repeated")
}

// TestVersionsStayWithTheirRecord: a version is never the Seed of another record.
func TestVersionsStayWithTheirRecord(t *testing.T) {
	s := NewSeed(7, 11)
	for n := range versions {
		require.Equal(t, s/versions, s.Version(n)/versions)
		require.Equal(t, s.Version(n), s.Version(n+versions))
	}
	require.Equal(t, s, s.Version(0))
	require.NotEqual(t, s/versions, NewSeed(7, 12)/versions)
	require.NotEqual(t, s/versions, NewSeed(8, 11)/versions)
}

// TestFixturesNameTheirRecord: {n} and {key} make the author's values differ.
func TestFixturesNameTheirRecord(t *testing.T) {
	values := NewMaker("00ab12")
	one, two := NewSeed(3, 0), NewSeed(3, 1)
	n := fmt.Sprint(values.Number(one))
	odd := `zz "so" \ é` + "\n"
	for _, c := range []struct {
		raw  string
		key  json.RawMessage
		want any
	}{
		{`"plain"`, Quote("k"), "plain"},
		{`"order {n}"`, Quote("k"), "order " + n},
		{`{n}`, Quote("k"), float64(values.Number(one))},
		{`"{key}@example.com"`, Quote("k-1"), "k-1@example.com"},
		{`"{key}/{n}/{key}"`, Quote("k"), "k/" + n + "/k"},
		{`"of {key}."`, Quote(odd), "of " + odd + "."},
		{`"number {key}"`, json.RawMessage("9007199254740993"), "number 9007199254740993"},
		{`["{key}","{n}"]`, Quote("k"), []any{"k", n}},
		{`{"a":"{key}"}`, Quote("k"), map[string]any{"a": "k"}},
		{`"{other}"`, Quote("k"), "{other}"},
	} {
		var got any
		raw := values.Expand(c.raw, one, c.key)
		require.NoError(t, json.Unmarshal(raw, &got), "%s became %s", c.raw, raw)
		require.Equal(t, c.want, got, c.raw)
	}
	require.NotEqual(t, values.Expand(`"{n}"`, one, Quote("k")), values.Expand(`"{n}"`, two, Quote("k")))
	require.NotEqual(t, values.Expand(`"{n}"`, one, Quote("k")), values.Expand(`"{n}"`, one.Version(1), Quote("k")), "a change is another value")
}

func TestValuesAreOfTheirType(t *testing.T) {
	valid := map[string]func(text string) bool{
		rpc.TypeBoolean:  func(s string) bool { return s == "true" || s == "false" },
		rpc.TypeInteger:  func(s string) bool { _, err := strconv.ParseInt(s, 10, 64); return err == nil },
		rpc.TypeFloat:    func(s string) bool { _, err := strconv.ParseFloat(s, 64); return err == nil },
		rpc.TypeDecimal:  func(s string) bool { return s[0] == '"' },
		rpc.TypeDate:     func(s string) bool { return len(s) == len(`"2021-03-29"`) },
		rpc.TypeDateTime: func(s string) bool { return len(s) == len(`"2021-03-29T16:32:23Z"`) },
		rpc.TypeString:   func(s string) bool { return s[0] == '"' },
	}
	for _, typ := range rpc.FieldTypes() {
		f := rpc.Field{APIName: "phone", Type: typ} // of which only a text has a format
		values, start := NewMaker("run"), NewSeed(3, 5)
		for v := range 120 {
			raw := values.Value(f, start.Version(v), Guess)
			require.True(t, json.Valid(raw) && valid[typ](string(raw)), "%s %d: %s", typ, v, raw)
			same, _ := hook.SameValue(f, raw, raw)
			require.True(t, same)
			if typ != rpc.TypeBoolean {
				same, _ = hook.SameValue(f, raw, values.Value(f, start.Version(v+1), Guess))
				require.False(t, same, "%s: variants %d and %d are alike", typ, v, v+1)
			}
		}
		f.Array = true
		var items []json.RawMessage
		require.NoError(t, json.Unmarshal(values.Value(f, start, Guess), &items))
		require.Len(t, items, 2)
	}
	values := NewMaker("run")
	a, b := values.Value(rpc.Field{APIName: "a", Type: rpc.TypeString}, 1, Guess), values.Value(rpc.Field{APIName: "b", Type: rpc.TypeString}, 1, Guess)
	require.NotEqual(t, a, b, "fields of one record are told apart")
}

func TestQuoteKeepsTextAsItIs(t *testing.T) {
	for _, text := range []string{"", "<a&b>", "\u2028", `"\`, "é", "\x00"} {
		var back string
		require.NoError(t, json.Unmarshal(Quote(text), &back))
		require.Equal(t, text, back)
	}
	require.Equal(t, `"<a&b>"`, string(Quote("<a&b>")))
}
