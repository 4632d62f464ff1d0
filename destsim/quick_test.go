package destsim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// oddValues are raw values in all states, good and bad, for every type.
var oddValues = []string{
	`null`, `true`, `false`, `0`, `-0`, `7`, `-12`, `1.5`, `1e3`, `1E400`, `-0.0`, `123456789012345678`, `1234567890123456789`,
	`99999999999999999999`, `""`, `"a"`, `"A"`, `"é"`, `"\u00e9"`, `"\ud800"`, `"a\"b"`, `"12.50"`, `"12.5x"`, `"+1e5"`, `"."`,
	`"2021-02-29"`, `"2020-02-29"`, `"2020-2-29"`, `"2021-03-29T16:32:23Z"`, `"2021-03-29T16:32:23.5Z"`, `"2021-03-29T16:32:23+00:00"`,
	`"2021-03-29T"`, `[]`, `[ ]`, `["a"]`, `["a","b"]`, `["a", "b"]`, `[null,"a"]`, `[null ,1]`, `["\u0061"]`, `[["a"]]`, `{"a":1}`, `{}`,
	`"0123456789012345678901234567890123456789"`, `"a,b}"`,
}

// oddRecord is a record of a few fields, mostly in order, mostly tight.
func oddRecord(r *rand.Rand, names []string) string {
	var members []string
	for _, name := range names {
		if r.IntN(12) == 0 {
			continue
		}
		value := oddValues[r.IntN(len(oddValues))]
		switch {
		case name == names[0] && r.IntN(8) > 0:
			value = fmt.Sprintf(`"k%d"`, r.IntN(12))
		case r.IntN(3) > 0:
			value = map[string]string{
				"age": `30`, "score": `2.5`, "balance": `"1.50"`, "subscribed": `true`, "birth_date": `"1999-12-31"`,
				"last_seen_at": `"2021-03-29T16:32:23Z"`, "tags": `["x","y"]`, "numbers": `[1,2]`,
			}[name]
			if value == "" {
				value = fmt.Sprintf(`"v%d"`, r.IntN(1000))
			}
		}
		colon := ":"
		if r.IntN(20) == 0 {
			colon = []string{" :", ": ", "\n:\t"}[r.IntN(3)]
		}
		if r.IntN(40) == 0 {
			name = strings.Replace(name, "e", `\u0065`, 1)
		}
		members = append(members, `"`+name+`"`+colon+value)
	}
	if r.IntN(15) == 0 {
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	if r.IntN(20) == 0 && len(members) > 0 {
		members = append(members, members[r.IntN(len(members))])
	}
	return "{" + strings.Join(members, ",") + []string{"}", "}", "}", " }"}[r.IntN(4)]
}

// TestQuickBatchesAreBatches plays random batches through a simulator as it is
// and through one whose seams make every record go the long way: no byte of a
// reply, of a record or of the figures differs.
func TestQuickBatchesAreBatches(t *testing.T) {
	names := []string{"email", "last_name", "first_name", "age", "score", "balance", "subscribed", "birth_date", "last_seen_at", "tags"}
	for _, convention := range []string{"failure", "success", "success-with-message"} {
		config := Config{SkipConvention: convention}
		quick, long := newSim(t, config), newSim(t, config)
		long.chain().add(everySeam())
		r := rand.New(rand.NewPCG(1, 2))
		for n := range 400 {
			kept := names[:1+r.IntN(len(names))]
			var records []string
			for range r.IntN(20) {
				records = append(records, oddRecord(r, kept))
			}
			operation := []string{"upsert", "upsert", "insert", "update", "delete"}[r.IntN(5)]
			params := planOf(quick, "contact", operation, "email", append(records, `{"`+strings.Join(kept, `":1,"`)+`":1}`)...)
			a, b := invoke(quick, rpc.MethodSyncBatch, params), invoke(long, rpc.MethodSyncBatch, params)
			require.Equal(t, b, a, "%d: %s", n, params)
		}
		have, n, err := quick.Records("contact", 0, 1000)
		require.NoError(t, err)
		want, _, err := long.Records("contact", 0, 1000)
		require.NoError(t, err)
		require.Equal(t, want, have)
		require.Greater(t, n, 10)
		require.Equal(t, len(have), n)
		a, b := quick.Figures().Methods[0], long.Figures().Methods[0]
		require.Equal(t, []int64{b.Records, b.Succeeded, b.Failed}, []int64{a.Records, a.Succeeded, a.Failed})
		require.Greater(t, a.Failed, int64(100))
	}
}

// TestWantedAfterEveryChange: whatever byte of a good value is replaced, what is
// taken is JSON and canonical still; and no date or time that is one is missed.
func TestWantedAfterEveryChange(t *testing.T) {
	seeds := []string{
		`"2024-02-29"`, `"1900-02-28"`, `"2000-12-31"`, `"2021-03-29T16:32:23Z"`, `"2021-03-29T19:59:59.25Z"`, `"-12.50e3"`,
		`-120.75`, `true`, `null`, `["a","b"]`, `[1,null,-7]`, `["2024-02-29",null]`, `"a long text of é"`,
	}
	var fields []*field
	for _, typ := range rpc.FieldTypes() {
		for _, array := range []bool{false, true} {
			fields = append(fields, newField(FieldConfig{Name: "f", Type: typ, Array: array}))
		}
	}
	for _, seed := range seeds {
		for i := range seed {
			for c := range 256 {
				raw := []byte(seed)
				raw[i] = byte(c)
				for _, f := range fields {
					want := (&column{field: f}).want()
					end := want.Plain(raw, 0)
					if f.Type == rpc.TypeDate && !f.Array && len(raw) == 12 && raw[0] == '"' && raw[11] == '"' {
						day, err := time.Parse(time.DateOnly, string(raw[1:11]))
						require.Equal(t, err == nil && day.Year() > 0, end > 0, "%q", raw)
					}
					if end == 0 {
						continue
					}
					valid := rawjson.Valid(raw[:end]) == nil
					require.True(t, valid, "%s %q", f.Type, raw)
					value, problem := f.canonical(raw[:end])
					require.Empty(t, problem, "%s %q", f.Type, raw)
					require.Equal(t, string(raw[:end]), string(value))
				}
			}
		}
	}
}
