package destination

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/matrixtest"
)

// everySeed visits the seeds of a large run: more checks than there are, more
// records than any of them sends, and three sets of values under each key.
func everySeed(visit func(check, record, version int, s seed)) {
	for check := range 256 {
		for record := range 200 {
			first := newSeed(&conformance.Check{Number: check}, record)
			for _, version := range []int{0, 1, witnessVersion} {
				visit(check, record, version, first.version(version))
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
		how   style
	}{
		{"a text", rpc.Field{APIName: "last_name", Type: rpc.TypeString}, styleGuess},
		{"a text in a field with a long name", rpc.Field{APIName: strings.Repeat("very_", 12) + "long", Type: rpc.TypeString}, styleGuess},
		{"an address", rpc.Field{APIName: "work_email", Type: rpc.TypeString}, styleGuess},
		{"a number to call", rpc.Field{APIName: "phone", Type: rpc.TypeString}, styleGuess},
		{"a page", rpc.Field{APIName: "website", Type: rpc.TypeString}, styleGuess},
		{"a UUID", rpc.Field{APIName: "guid", Type: rpc.TypeString}, styleGuess},
		{"a word", rpc.Field{APIName: "last_name", Type: rpc.TypeString}, styleWord},
		{"letters only", rpc.Field{APIName: "last_name", Type: rpc.TypeString}, styleSmall},
		{"an integer", rpc.Field{APIName: "age", Type: rpc.TypeInteger}, styleGuess},
		{"texts", rpc.Field{APIName: "tags", Type: rpc.TypeString, Array: true}, styleGuess},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			values, seen, again := newValuer("00ab12"), map[string]string{}, ""
			everySeed(func(check, record, version int, s seed) {
				raw := string(values.value(c.field, s, c.how))
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
	values := newValuer("00ab12")
	small, large := 0, 0
	everySeed(func(_, _, _ int, s seed) {
		n := values.number(s)
		if n >= 1<<numberBits {
			large++
		}
		if v := string(values.value(rpc.Field{Type: rpc.TypeInteger}, s, styleSmall)); len(v) > 2 || v == "0" {
			small++
		}
	})
	require.Zero(t, large)
	require.Zero(t, small, "small numbers are 1 to 99")
}

// TestRunsDoNotShareValues: what an earlier run left behind must not collide.
func TestRunsDoNotShareValues(t *testing.T) {
	f, s := rpc.Field{APIName: "last_name", Type: rpc.TypeString}, newSeed(&conformance.Check{Number: 3}, 5)
	require.NotEqual(t, newValuer("00ab12").value(f, s, styleGuess), newValuer("00ab13").value(f, s, styleGuess))
	require.Equal(t, newValuer("00ab12").value(f, s, styleGuess), newValuer("00ab12").value(f, s, styleGuess), "a run can be repeated")
}

// TestVersionsStayWithTheirRecord: a version is never the seed of another record.
func TestVersionsStayWithTheirRecord(t *testing.T) {
	s := newSeed(&conformance.Check{Number: 7}, 11)
	for n := range versions {
		require.Equal(t, s/versions, s.version(n)/versions)
		require.Equal(t, s.version(n), s.version(n+versions))
	}
	require.Equal(t, s, s.version(0))
	require.NotEqual(t, s/versions, newSeed(&conformance.Check{Number: 7}, 12)/versions)
	require.NotEqual(t, s/versions, newSeed(&conformance.Check{Number: 8}, 11)/versions)
}

// TestFixturesNameTheirRecord: {n} and {key} make the author's values differ.
func TestFixturesNameTheirRecord(t *testing.T) {
	values := newValuer("00ab12")
	one, two := newSeed(&conformance.Check{Number: 3}, 0), newSeed(&conformance.Check{Number: 3}, 1)
	n := fmt.Sprint(values.number(one))
	odd := `zz "so" \ é` + "\n"
	for _, c := range []struct {
		raw  string
		key  json.RawMessage
		want any
	}{
		{`"plain"`, quote("k"), "plain"},
		{`"order {n}"`, quote("k"), "order " + n},
		{`{n}`, quote("k"), float64(values.number(one))},
		{`"{key}@example.com"`, quote("k-1"), "k-1@example.com"},
		{`"{key}/{n}/{key}"`, quote("k"), "k/" + n + "/k"},
		{`"of {key}."`, quote(odd), "of " + odd + "."},
		{`"number {key}"`, json.RawMessage("9007199254740993"), "number 9007199254740993"},
		{`["{key}","{n}"]`, quote("k"), []any{"k", n}},
		{`{"a":"{key}"}`, quote("k"), map[string]any{"a": "k"}},
		{`"{other}"`, quote("k"), "{other}"},
	} {
		var got any
		raw := values.expand(c.raw, one, c.key)
		require.NoError(t, json.Unmarshal(raw, &got), "%s became %s", c.raw, raw)
		require.Equal(t, c.want, got, c.raw)
	}
	require.NotEqual(t, values.expand(`"{n}"`, one, quote("k")), values.expand(`"{n}"`, two, quote("k")))
	require.NotEqual(t, values.expand(`"{n}"`, one, quote("k")), values.expand(`"{n}"`, one.version(1), quote("k")), "a change is another value")
}
