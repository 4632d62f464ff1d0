package destsim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// stores runs a test over both stores.
func stores(t *testing.T, fn func(t *testing.T, config Config)) {
	t.Run("memory", func(t *testing.T) { fn(t, Config{}) })
	t.Run("sqlite", func(t *testing.T) { fn(t, Config{Store: "sqlite:" + t.TempDir() + "/records.db"}) })
}

func TestOperations(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		a := func(name string) string { return `{"email":"a","last_name":"` + name + `"}` }
		steps := []struct {
			operation string
			records   []string
			answers   []string
			stored    string
		}{
			{"update", []string{a("0")}, []string{"record not present"}, ``},
			{"delete", []string{`{"email":"a"}`}, []string{"ok"}, ``},
			{"insert", []string{a("1")}, []string{"ok"}, a("1")},
			{"insert", []string{a("2")}, []string{"record already present"}, a("1")},
			{"update", []string{`{"email":"a","age":9007199254740993}`}, []string{"ok"}, `{"last_name":"1","email":"a","age":9007199254740993}`},
			{"upsert", []string{a("3")}, []string{"ok"}, `{"age":9007199254740993,"email":"a","last_name":"3"}`},
			{"upsert", []string{`{"email":"a","age":null}`, `{"email":"a","last_name":null}`}, []string{"ok", `required field "last_name" is null`}, `{"last_name":"3","email":"a","age":null}`},
			{"delete", []string{`{"email":"a","last_name":5}`}, []string{"ok"}, ``},
			{"upsert", []string{a("4"), a("5")}, []string{"ok", "ok"}, a("5")},
			{"delete", []string{`{"email":"a"}`, `{"email":"b"}`}, []string{"ok", "ok"}, ``},
			{"insert", []string{a("6"), a("7")}, []string{"ok", "record already present"}, a("6")},
			{"upsert", nil, []string{}, a("6")},
		}
		for i, step := range steps {
			require.Equal(t, step.answers, write(t, s, "contact", step.operation, step.records...), "step %d", i)
			require.Equal(t, step.stored, stored(t, s, "contact", "email", `"a"`), "step %d", i)
		}
		require.Empty(t, stored(t, s, "event", "event_id", `"a"`), "objects do not share a table")
	})
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

// TestValues: what was accepted comes back exactly, strings as their text.
func TestValues(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		for _, c := range []struct{ field, sent, kept string }{
			{"last_name", `"\u00e9 \/ \u0000\u0001\u007f\t\"\\ \ud83d\ude00"`, `"é / \u0000\u0001` + "\x7f" + `\t\"\\ 😀"`},
			{"last_name", `"e` + "\u0301" + ` ﷽ ` + "\u200d\u202e" + `"`, `"e` + "\u0301" + ` ﷽ ` + "\u200d\u202e" + `"`},
			{"last_name", `""`, `""`},
			{"first_name", `null`, `null`},
			{"age", `-9223372036854775808`, `-9223372036854775808`},
			{"age", `9223372036854775807`, `9223372036854775807`},
			{"age", `-0`, `0`},
			{"score", `-0`, `-0`},
			{"score", `1.7976931348623157e308`, `1.7976931348623157e308`},
			{"score", `4.9E-324`, `4.9E-324`},
			{"balance", `"-12345678901234567890123456789012345678.0000"`, `"-12345678901234567890123456789012345678.0000"`},
			{"birth_date", `"0001-01-01"`, `"0001-01-01"`},
			{"birth_date", `"9999-12-31"`, `"9999-12-31"`},
			{"birth_date", `"2024-02-29"`, `"2024-02-29"`},
			{"last_seen_at", `"2021-03-29T16:32:23.123456Z"`, `"2021-03-29T16:32:23.123456Z"`},
			{"tags", ` [ "b" ,"a\u0062", null, "b" ] `, `["b","ab",null,"b"]`},
			{"tags", `[ ]`, `[]`},
			{"lucky_numbers", `[3,-1]`, `[3,-1]`},
			{"subscribed", `true`, `true`},
		} {
			record := `{"email":"k","last_name":"x","` + c.field + `":` + c.sent + `}`
			require.Equal(t, []string{"ok"}, write(t, s, "contact", "upsert", record), record)
			kept, ok := store.Member([]byte(stored(t, s, "contact", "email", `"k"`)), store.Quote(c.field))
			require.True(t, ok)
			require.Equal(t, c.kept, string(kept))
		}
	})
}

// TestIdentifierText: identifiers are echoed raw and matched by their text.
func TestIdentifierText(t *testing.T) {
	s := newSim(t, Config{})
	params := planOf(s, "contact", "upsert", "email", `{"email":"\u00e9","last_name":"x"}`, `{"email": "e\u0301","last_name":"x"}`, `{"email":"É","last_name":"x"}`, `{"last_name":"x"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":"id-1","result":{"record_results":[{"identifier":"\u00e9","success":true},{"identifier":"e\u0301","success":true},{"identifier":"É","success":true},{"identifier":null,"success":false,"error_message":"the record lacks its identifier \"email\""}]}}`,
		invoke(s, rpc.MethodSyncBatch, params))
	require.Equal(t, `{"email":"é","last_name":"x"}`, stored(t, s, "contact", "email", `"é"`))
	require.Equal(t, `{"email":"é","last_name":"x"}`, stored(t, s, "contact", "email", `"\u00E9"`))
	require.NotEmpty(t, stored(t, s, "contact", "email", "\"e\u0301\""))
	require.Empty(t, stored(t, s, "contact", "email", `"e"`))
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

func TestPlanErrors(t *testing.T) {
	s := newSim(t, Config{Preset: "default"})
	contact := planOf(s, "contact", "upsert", "email", `{"email":"a","last_name":"x"}`)
	for name, c := range map[string]struct{ params, message string }{
		"mirror is no batch":    {planOf(s, "contact", "mirror", "email"), `object "contact" does not accept batches with the operation "mirror"`},
		"unknown operation":     {planOf(s, "contact", "append", "email"), `object "contact" does not accept batches with the operation "append"`},
		"not advertised":        {planOf(s, "event", "update", "event_id"), `object "event" does not accept batches with the operation "update"`},
		"delete without mirror": {planOf(s, "event", "delete", "event_id"), `object "event" does not accept batches with the operation "delete"`},
		"not an identifier":     {planOf(s, "contact", "upsert", "last_name"), `field "last_name" is not an identifier of object "contact"`},
		"unknown identifier":    {planOf(s, "event", "upsert", "nope"), `field "nope" is not an identifier of object "event"`},
		"no identifier":         {`{"sync_plan":{"object":{"object_api_name":"contact","label":""},"operation":"upsert","schema":{}},"records":[]}`, `sync_plan.schema must have exactly one active identifier`},
		"unknown object":        {`{"sync_plan":{"object":{"object_api_name":"x","label":""},"operation":"upsert","schema":{}},"records":[]}`, `unknown object "x"`},
		"records is an object":  {`{"sync_plan":{},"records":{}}`, `records is not an array`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, []string{"rpc error -32602: invalid params: " + c.message}, words(t, invoke(s, rpc.MethodSyncBatch, c.params)))
		})
	}
	require.Equal(t, []string{"ok"}, words(t, invoke(s, rpc.MethodSyncBatch, contact)))
}

func TestMirrorAcceptsUpsertAndDelete(t *testing.T) {
	s := newSim(t, Config{Objects: []ObjectConfig{{Name: "m", Operations: []string{"mirror"}, Fields: []FieldConfig{identifier("id", "", "string")}}}})
	require.Equal(t, []string{"ok"}, write(t, s, "m", "upsert", `{"id":"1"}`))
	require.Equal(t, `{"id":"1"}`, stored(t, s, "m", "id", `"1"`))
	require.Equal(t, []string{"ok"}, write(t, s, "m", "delete", `{"id":"1"}`))
	require.Empty(t, stored(t, s, "m", "id", `"1"`))
	require.Contains(t, write(t, s, "m", "insert", `{"id":"1"}`)[0], "-32602")
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

func TestSkipConvention(t *testing.T) {
	for convention, answer := range map[string]string{"": alreadyPresent, "failure": alreadyPresent, "success": "ok", "success-with-message": alreadyPresent} {
		s := newSim(t, Config{SkipConvention: convention})
		write(t, s, "contact", "insert", `{"email":"a","last_name":"x"}`)
		require.Equal(t, []string{answer}, write(t, s, "contact", "insert", `{"email":"a","last_name":"y"}`))
		reply := invoke(s, rpc.MethodSyncBatch, planOf(s, "contact", "update", "email", `{"email":"b","last_name":"y"}`))
		require.Equal(t, convention == "success" || convention == "success-with-message", strings.Contains(reply, `"success":true`), reply)
		require.Equal(t, `{"email":"a","last_name":"x"}`, stored(t, s, "contact", "email", `"a"`))
	}
}
