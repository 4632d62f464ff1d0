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

// stores runs a test over both stores.
func stores(t *testing.T, fn func(t *testing.T, config Config)) {
	t.Run("memory", func(t *testing.T) { fn(t, Config{}) })
	t.Run("sqlite", func(t *testing.T) { fn(t, Config{Store: "sqlite:" + t.TempDir() + "/records.db"}) })
}

func TestRecordFailures(t *testing.T) {
	s := newSim(t, Config{})
	for name, c := range map[string]struct{ record, message string }{
		"no identifier":     {`{"last_name":"x"}`, `the record lacks its identifier "email"`},
		"null identifier":   {`{"email":null,"last_name":"x"}`, `the identifier "email" is null`},
		"number identifier": {`{"email":5,"last_name":"x"}`, `field "email" must be a string, not a number`},
		"required absent":   {`{"email":"a"}`, `required field "last_name" is missing`},
		"required null":     {`{"email":"a","last_name":null}`, `required field "last_name" is null`},
		"unknown field":     {`{"email":"a","last_name":"x","nope":"1"}`, `field "nope" does not exist`},
		"lone surrogate":    {`{"email":"a","last_name":"\ud800"}`, `field "last_name" is not Unicode text: decode string: lone surrogate in a string`},
		"string for int":    {`{"email":"a","last_name":"x","age":"5"}`, `field "age" must be an integer, not "5"`},
		"int too large":     {`{"email":"a","last_name":"x","age":9223372036854775808}`, `field "age" is out of the range of a 64-bit integer`},
		"int with fraction": {`{"email":"a","last_name":"x","age":1.0}`, `field "age" must be an integer, not a number with a fraction or exponent`},
		"float infinite":    {`{"email":"a","last_name":"x","score":1e400}`, `field "score" is out of the range of a float`},
		"float string":      {`{"email":"a","last_name":"x","score":"1"}`, `field "score" must be a number, not "1"`},
		"decimal number":    {`{"email":"a","last_name":"x","balance":1.5}`, `field "balance" must be a decimal in a string like "12.34", not a number with a fraction or exponent`},
		"decimal text":      {`{"email":"a","last_name":"x","balance":"1,5"}`, `field "balance" must be a decimal, not "1,5"`},
		"boolean":           {`{"email":"a","last_name":"x","subscribed":"true"}`, `field "subscribed" must be a boolean, not "true"`},
		"date":              {`{"email":"a","last_name":"x","birth_date":"2023-02-29"}`, `field "birth_date" must be a calendar date of the years 0001 to 9999, not "2023-02-29"`},
		"date_time zone":    {`{"email":"a","last_name":"x","last_seen_at":"2023-02-28T10:00:00+02:00"}`, `field "last_seen_at" must be a UTC time with Z at its end, not "2023-02-28T10:00:00+02:00"`},
		"scalar for array":  {`{"email":"a","last_name":"x","tags":"x"}`, `field "tags" must be an array of string, not a string`},
		"array for scalar":  {`{"email":"a","last_name":["x"]}`, `field "last_name" must be a string, not an array`},
		"array element":     {`{"email":"a","last_name":"x","lucky_numbers":[1,"2"]}`, `field "lucky_numbers" must be an integer, not "2"`},
		"object":            {`{"email":"a","last_name":{"a":1}}`, `field "last_name" must be a string, not an object`},
	} {
		t.Run(name, func(t *testing.T) {
			good := `{"email":"good-` + name + `","last_name":"x"}`
			require.Equal(t, []string{c.message, "ok"}, write(t, s, "contact", "upsert", c.record, good))
			require.Empty(t, stored(t, s, "contact", "email", `"a"`))
			require.Equal(t, good, stored(t, s, "contact", "email", `"good-`+name+`"`))
		})
	}
}

func TestTwoIdentifiers(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		by := func(active, operation string, records ...string) []string {
			return words(t, invoke(s, rpc.MethodSyncBatch, planOf(s, "order", operation, active, records...)))
		}
		require.Equal(t, []string{"ok", "ok"}, by("order_number", "upsert", `{"order_number":"A","order_id":1}`, `{"order_number":"B","order_id":2}`))
		require.Equal(t, []string{"ok"}, by("order_id", "update", `{"order_id":1,"order_number":"C"}`))
		require.Empty(t, stored(t, s, "order", "order_number", `"A"`))
		require.Equal(t, `{"order_id":1,"order_number":"C"}`, stored(t, s, "order", "order_number", `"C"`))
		require.Equal(t, `{"order_id":1,"order_number":"C"}`, stored(t, s, "order", "order_id", `1`))
		taken := `field "order_number" has a value that belongs to another record`
		require.Equal(t, []string{taken, "ok"}, by("order_id", "upsert", `{"order_id":1,"order_number":"B"}`, `{"order_id":3,"order_number":"D"}`))
		require.Equal(t, []string{`required field "order_number" is missing`}, by("order_id", "insert", `{"order_id":9}`))
		require.Equal(t, []string{"ok"}, by("order_id", "delete", `{"order_id":1}`))
		require.Equal(t, []string{"ok"}, by("order_number", "insert", `{"order_id":1,"order_number":"C"}`))
		require.Empty(t, stored(t, s, "order", "order_id", `"1"`), "a string is not the integer")
	})
}

func TestFlagsAndLength(t *testing.T) {
	no := false
	s := newSim(t, Config{Objects: []ObjectConfig{{Name: "o", Operations: []string{"upsert"}, Fields: []FieldConfig{
		{Name: "id", Type: "integer", Identifier: true, Updateable: &no},
		{Name: "once", Type: "string", Updateable: &no},
		{Name: "later", Type: "string", Createable: &no},
		{Name: "short", Type: "string", MaxLength: 2, Unique: true},
	}}}})
	require.Equal(t, []string{`field "later" cannot be set when a record is created`}, write(t, s, "o", "upsert", `{"id":1,"later":"x"}`))
	require.Equal(t, []string{"ok", "ok", `field "once" cannot be changed`},
		write(t, s, "o", "upsert", `{"id":1,"once":"x"}`, `{"id":1,"later":"x"}`, `{"id":1,"once":"x"}`))
	require.Equal(t, []string{"ok", `field "short" has 3 characters, at most 2 fit`, `field "short" has a value that belongs to another record`, "ok", "ok"},
		write(t, s, "o", "upsert", `{"id":2,"short":"éé"}`, `{"id":2,"short":"abc"}`, `{"id":3,"short":"éé"}`, `{"id":3,"short":null}`, `{"id":4,"short":null}`))
}

func TestCreateFieldsOnWrite(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		require.Equal(t, []string{"ok"}, write(t, s, "event", "upsert", `{"event_id":"1","colour":"red"}`))
		require.Equal(t, `{"event_id":"1","colour":"red"}`, sorted(stored(t, s, "event", "event_id", `"1"`)))
		require.Contains(t, invoke(s, rpc.MethodListFields, `{"object":{"object_api_name":"event","label":""}}`), `"field_api_name":"colour"`)
		require.Equal(t, []string{`field "colour" must be a string, not a number`}, write(t, s, "event", "upsert", `{"event_id":"2","colour":5}`))
		if config.Store != "" {
			require.NoError(t, s.Close())
			s = newSim(t, config)
			require.Contains(t, invoke(s, rpc.MethodListFields, `{"object":{"object_api_name":"event","label":""}}`), `"field_api_name":"colour"`)
			require.NotEmpty(t, stored(t, s, "event", "event_id", `"1"`))
		}
		require.NoError(t, s.Reset())
		require.NotContains(t, invoke(s, rpc.MethodListFields, `{"object":{"object_api_name":"event","label":""}}`), `"field_api_name":"colour"`)
		require.Empty(t, stored(t, s, "event", "event_id", `"1"`))
	})
}

// sorted puts the identifier first, since a plan is a map.
func sorted(data string) string {
	if data == `{"colour":"red","event_id":"1"}` {
		return `{"event_id":"1","colour":"red"}`
	}
	return data
}

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

// TestWantedAfterEveryChange: whatever byte of a good value is replaced, accepted values are
// still canonical JSON; and no date or time that is one is missed.
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
