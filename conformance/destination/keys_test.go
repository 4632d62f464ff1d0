package destination

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
)

func keysOf(t *testing.T, o conformance.Options) *keys {
	t.Helper()
	k, err := newKeys(withDefaults(o))
	require.NoError(t, err)
	return k
}

func TestStringKeys(t *testing.T) {
	k := keysOf(t, conformance.Options{RunID: "7f3a"})
	require.Equal(t, "zz-conf-7f3a-RES-002-1", k.text("RES-002"))
	require.Equal(t, "zz-conf-7f3a-RES-002-2", k.text("RES-002"))
	require.Equal(t, "zz-conf-7f3a-SEM-001-1", k.text("SEM-001"))

	k = keysOf(t, conformance.Options{RunID: "7f3a", KeyTemplate: "zz-{run}-{check}-{n}@example.com"})
	require.Equal(t, "zz-7f3a-RES-002-1@example.com", k.text("RES-002"))

	// Without {check} the number alone keeps the keys of all checks apart.
	k = keysOf(t, conformance.Options{RunID: "7f3a", KeyTemplate: "{n}-{run}"})
	require.Equal(t, "1-7f3a", k.text("RES-002"))
	require.Equal(t, "2-7f3a", k.text("SEM-001"))
}

func TestKeysOfTwoRunsDiffer(t *testing.T) {
	a, b := withDefaults(conformance.Options{Seed: 1}), withDefaults(conformance.Options{Seed: 2})
	require.NotEqual(t, a.RunID, b.RunID)
	require.NotEqual(t, keysOf(t, a).text("RES-002"), keysOf(t, b).text("RES-002"))
	require.Equal(t, a.RunID, withDefaults(conformance.Options{Seed: 1}).RunID, "the run id comes from the seed")
}

func TestKeyTemplates(t *testing.T) {
	cases := []struct {
		template string
		want     string // "" when it is good
	}{
		{"zz-{run}-{n}", ""},
		{"é-{run}-{n}", ""},
		{"\"{run}\\{n}\n", ""},
		{"zz-{run}", "needs {run} and {n}"},
		{"zz-{n}", "needs {run} and {n}"},
		{"zz", "needs {run} and {n}"},
		{"\xff-{run}-{n}", "is not UTF-8"},
	}
	for _, c := range cases {
		s, err := newSession(Target{Handler: newSmall()}, conformance.Options{KeyTemplate: c.template})
		if c.want != "" {
			requireUsage(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		s.close()
		require.True(t, json.Valid(quote(s.keys.text("RES-002"))))
	}
}

func TestIntegerKeys(t *testing.T) {
	k := keysOf(t, conformance.Options{KeyFrom: 5, KeyTo: 6})
	for _, want := range []int64{5, 6} {
		n, err := k.integer()
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	_, err := k.integer()
	require.Equal(t, conformance.NotRun, statusOf(err))
	require.Equal(t, "--key-range", deciderOf(err))
	require.Contains(t, reasonOf(err), "5:6 is used up")

	one := keysOf(t, conformance.Options{KeyFrom: -3, KeyTo: -3})
	n, err := one.integer()
	require.NoError(t, err)
	require.EqualValues(t, -3, n)

	own := keysOf(t, conformance.Options{RunID: "7f3a"})
	n, err = own.integer()
	require.NoError(t, err)
	require.Greater(t, n, int64(1)<<32)
	require.Less(t, own.to, int64(1)<<53)
	require.NotEqual(t, own.from, keysOf(t, conformance.Options{RunID: "7f3b"}).from, "two runs do not share a range")
}

// TestKeyRangeIsUsedUp: no key outside the closed range is ever sent; what
// would need one is NOT_RUN.
func TestKeyRangeIsUsedUp(t *testing.T) {
	e := newSmall()
	e.fields[0].Type = rpc.TypeInteger
	opts := conformance.Options{Write: true, Objects: []string{"contact"}, KeyFrom: 100, KeyTo: 104 + trialOfSmall, Serial: true, SkipConvention: conformance.SkipFailure}
	there := strings.ReplaceAll(writeCheck, "is stored exactly", "is in the destination") // which witnesses show
	r := judged(t, e, there+strings.ReplaceAll(there, "WRI-001", "WRI-002"), opts)
	require.Equal(t, conformance.Pass, resultOf(t, r, "WRI-001").Status, resultOf(t, r, "WRI-001").Reason)
	got := resultOf(t, r, "WRI-002")
	require.Equal(t, conformance.NotRun, got.Status)
	require.Equal(t, "--key-range", got.Decider)
	require.NotEmpty(t, e.deleted)
	for _, key := range e.deleted {
		n, err := strconv.Atoi(key)
		require.NoError(t, err)
		require.True(t, n >= 100 && n <= 104+trialOfSmall, key)
	}
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
		values, start := newValuer("run"), newSeed(&conformance.Check{Number: 3}, 5)
		for v := range 120 {
			raw := values.value(f, start.version(v), styleGuess)
			require.True(t, json.Valid(raw) && valid[typ](string(raw)), "%s %d: %s", typ, v, raw)
			same, _ := hook.SameValue(f, raw, raw)
			require.True(t, same)
			if typ != rpc.TypeBoolean {
				same, _ = hook.SameValue(f, raw, values.value(f, start.version(v+1), styleGuess))
				require.False(t, same, "%s: variants %d and %d are alike", typ, v, v+1)
			}
		}
		f.Array = true
		var items []json.RawMessage
		require.NoError(t, json.Unmarshal(values.value(f, start, styleGuess), &items))
		require.Len(t, items, 2)
	}
	values := newValuer("run")
	a, b := values.value(rpc.Field{APIName: "a", Type: rpc.TypeString}, 1, styleGuess), values.value(rpc.Field{APIName: "b", Type: rpc.TypeString}, 1, styleGuess)
	require.NotEqual(t, a, b, "fields of one record are told apart")
}

func TestQuoteKeepsTextAsItIs(t *testing.T) {
	for _, text := range []string{"", "<a&b>", "\u2028", `"\`, "é", "\x00"} {
		var back string
		require.NoError(t, json.Unmarshal(quote(text), &back))
		require.Equal(t, text, back)
	}
	require.Equal(t, `"<a&b>"`, string(quote("<a&b>")))
}
