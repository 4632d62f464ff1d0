package mapping

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

// field and column are short forms of tests.
func field(name, typ string) api.DestinationField {
	return api.DestinationField{FullName: name, Label: name, Type: typ, Createable: true, Updateable: true}
}

func arrayField(name, typ string) api.DestinationField {
	f := field(name, typ)
	f.Array = true
	return f
}

func column(name string, kind api.Kind) api.Column { return api.Column{Name: name, Kind: kind} }

func from(typ, data string) api.MappingFrom {
	return api.MappingFrom{Type: typ, Data: json.RawMessage(data)}
}

func mapped(columnName, to string) api.Mapping {
	return api.Mapping{From: from(api.FromColumn, string(api.Raw(columnName))), To: to}
}

func identifier(columnName, to string) api.Mapping {
	m := mapped(columnName, to)
	m.IsPrimaryIdentifier = true
	return m
}

func template(text, to string) api.Mapping {
	return api.Mapping{From: from(api.FromLiquid, string(api.Raw(api.Template{Text: text}))), To: to}
}

var testEnv = Env{RunID: 602, SyncID: 309, DestinationType: api.TypeCustomAPI, Now: time.Date(2021, 3, 29, 0, 0, 0, 0, time.UTC)}

// compiled makes a plan or fails.
func compiledPlan(t testing.TB, c api.SyncConfig, o *api.DestinationObject, columns []api.Column, env Env) *Plan {
	t.Helper()
	p, problems := Compile(c, o, columns, env)
	require.Empty(t, problems)
	return p
}

func texts(values ...string) [][]byte {
	var row [][]byte
	for _, v := range values {
		row = append(row, []byte(v))
	}
	return row
}

// Every kind of mapping (spec 2.7).
func TestRecordMappings(t *testing.T) {
	no := false
	object := &api.DestinationObject{FullName: "restaurant", Fields: []api.DestinationField{
		field("id", api.TypeInteger), field("name", api.TypeString), field("price", api.TypeDecimal),
		field("open", api.TypeBoolean), arrayField("tags", api.TypeString), field("a.b", api.TypeString),
		field("address", api.TypeString), field("run", api.TypeString), field("when", api.TypeDateTime),
		{FullName: "owner", Type: api.TypeString, LookupObject: "person"},
	}}
	columns := []api.Column{
		column("id", api.KindInteger), column("name", api.KindString), column("n", api.KindInteger), column("tags", api.KindArray),
	}
	lookup := mapped("n", "owner")
	lookup.LookupObject, lookup.LookupField = api.Ptr("person"), api.Ptr("number")
	dropNull := mapped("name", "name")
	dropNull.SyncNullValues = &no
	membership := func(to string) api.Mapping {
		return api.Mapping{From: from(api.FromSegmentMembership, `{"identify_by":"name"}`), To: to}
	}
	cases := []struct {
		name    string
		mapping api.Mapping
		row     [][]byte // id, then what the mapping reads
		want    string
	}{
		{"column", mapped("name", "name"), texts(`1`, `"Ashley's"`), `"name":"Ashley's"`},
		{"null column", mapped("name", "name"), texts(`1`, `null`), `"name":null`},
		{"null is not sent", dropNull, texts(`1`, `null`), ``},
		{"not null is sent", dropNull, texts(`1`, `"x"`), `"name":"x"`},
		{"text", api.Mapping{From: from(api.FromConstant, `{"value":"a \"b\"","basic_type":"text"}`), To: "name"}, texts(`1`), `"name":"a \"b\""`},
		{"number as decimal", api.Mapping{From: from(api.FromConstant, `{"value":12.50,"basic_type":"number"}`), To: "price"}, texts(`1`), `"price":"12.50"`},
		{"boolean", api.Mapping{From: from(api.FromConstant, `{"value":true,"basic_type":"boolean"}`), To: "open"}, texts(`1`), `"open":true`},
		{"date_time", api.Mapping{From: from(api.FromConstant, `{"value":"2021-03-29","basic_type":"date_time"}`), To: "when"}, texts(`1`), `"when":"2021-03-29T00:00:00Z"`},
		{"text that is an array", api.Mapping{From: from(api.FromConstant, `{"value":"[\"a\",1]","basic_type":"text"}`), To: "tags"}, texts(`1`), `"tags":["a","1"]`},
		{"run", api.Mapping{From: from(api.FromSyncMetadata, `"sync_run_id"`), To: "run"}, texts(`1`), `"run":"602"`},
		{"sync", api.Mapping{From: from(api.FromSyncMetadata, `"sync_id"`), To: "price"}, texts(`1`), `"price":"309"`},
		{"segments as text", membership("name"), texts(`1`, `"|7|9"`), `"name":"Best, Young \"x\""`},
		{"segments as a list", membership("tags"), texts(`1`, `"|9|7|8"`), `"tags":["Best","Young \"x\""]`},
		{"no segment as text", membership("name"), texts(`1`, `""`), `"name":null`},
		{"no segment as a list", membership("tags"), texts(`1`, `""`), `"tags":[]`},
		{"template", template(`{{ record['name'] | upcase }}-{{ record["n"] }}`, "name"), texts(`1`, `5`, `"x"`), `"name":"X-5"`},
		{"template bare", api.Mapping{From: from(api.FromLiquid, `"{{ record['n'] | plus: 1 }}"`), To: "name"}, texts(`1`, `5`), `"name":"6"`},
		{"template of a number", template(`{{ record['n'] | times: 2 }}`, "price"), texts(`1`, `5`), `"price":"10"`},
		{"template of nothing", template(` {{ record['n'] }} `, "price"), texts(`1`, `null`), `"price":null`},
		{"template of empty text", template(`{{ record['n'] }}`, "name"), texts(`1`, `null`), `"name":""`},
		{"template in JSON mode", template(`["{{ record['name'] }}", "b"]`, "tags"), texts(`1`, `"a\"\n"`), `"tags":["a\"\n","b"]`},
		{"template in YAML", template("- {{ record['name'] }}\n- b", "tags"), texts(`1`, `"a"`), `"tags":["a","b"]`},
		{"template of all", template(`{{ record | keys | join: "," }}`, "name"), texts(`1`, `"x"`, `5`, `[]`), `"name":"id,n,name,tags"`},
		{"now", template(`{{ "now" | date: "%Y-%m-%d" }}`, "when"), texts(`1`), `"when":"2021-03-29T00:00:00Z"`},
		{"a name with a dot", mapped("name", "a.b"), texts(`1`, `"x"`), `"a.b":"x"`},
		{"lookup", lookup, texts(`1`, `5`), `"owner":5`},
		{"array", mapped("tags", "tags"), texts(`1`, `[ "a" , 1.50 , null , true ]`), `"tags":["a","1.50",null,"true"]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env := testEnv
			env.Segments = []Segment{{7, "Best"}, {9, `Young "x"`}}
			p := compiledPlan(t, api.SyncConfig{
				Operation: api.OperationUpsert, Mappings: []api.Mapping{identifier("id", "id"), c.mapping},
			}, object, columns, env)
			require.Len(t, p.Columns(), len(c.row))
			record, key, invalid := p.AppendRecord([]byte("before"), c.row)
			require.Empty(t, invalid)
			require.Equal(t, "1", string(key))
			want := `before{"id":1`
			if c.want != "" {
				want += "," + c.want
			}
			require.Equal(t, want+"}", string(record))
			require.Equal(t, "id", p.Identifier())
			require.Equal(t, `{"id":1}`, string(p.AppendDelete(nil, key)))
		})
	}
}

// Identifiers: NULL, in their one form, and in which order.
func TestRecordKeys(t *testing.T) {
	cases := []struct {
		name       string
		kind       api.Kind
		typ        string
		raw        string
		key        string
		invalid    string
		ordered    bool
		fromOthers api.Mapping
	}{
		{name: "integer", kind: api.KindInteger, typ: api.TypeInteger, raw: `42`, key: `42`, ordered: true},
		{name: "integer as text", kind: api.KindInteger, typ: api.TypeString, raw: `42`, key: `"42"`, ordered: true},
		{name: "text", kind: api.KindString, typ: api.TypeString, raw: `"é\n"`, key: `"é\n"`, ordered: true},
		{name: "text with needless escapes", kind: api.KindString, typ: api.TypeString, raw: `"\u00e9\/"`, key: `"é/"`, ordered: true},
		{name: "text as integer", kind: api.KindString, typ: api.TypeInteger, raw: `"007"`, key: `7`},
		{name: "anything", kind: api.KindAny, typ: api.TypeString, raw: `7`, key: `"7"`},
		{name: "empty text is a value", kind: api.KindString, typ: api.TypeString, raw: `""`, key: `""`, ordered: true},
		{name: "null", kind: api.KindString, typ: api.TypeString, raw: `null`, invalid: InvalidNull, ordered: true},
		{name: "no integer", kind: api.KindString, typ: api.TypeInteger, raw: `"x"`, invalid: `field "id": cast to integer: "x" is not a number`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{field("id", c.typ), field("v", api.TypeInteger)}}
			p := compiledPlan(t, api.SyncConfig{Operation: api.OperationUpsert, Mappings: []api.Mapping{mapped("v", "v"), identifier("id", "id")}},
				object, []api.Column{column("id", c.kind), column("v", api.KindAny)}, testEnv)
			require.Equal(t, c.ordered, p.KeyColumn() == "id")
			for _, v := range []string{`1`, `"not a number"`} {
				record, key, invalid := p.AppendRecord(nil, texts(v, c.raw))
				if c.invalid != "" {
					require.Nil(t, key)
					if v == `1` || c.invalid == InvalidNull {
						require.Equal(t, c.invalid, invalid)
					}
					continue
				}
				require.Equal(t, c.key, string(key))
				if v == `1` {
					require.Equal(t, `{"v":1,"id":`+c.key+`}`, string(record), "what is sent is what is compared")
				}
			}
		})
	}
}

// A template may be the identifier; an empty output is NULL unless it is
// text.
func TestTemplateAsIdentifier(t *testing.T) {
	m := template(`{{ record["a"] }}-{{ record["b"] }}`, "id")
	m.IsPrimaryIdentifier = true
	object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{field("id", api.TypeString)}}
	p := compiledPlan(t, api.SyncConfig{Operation: api.OperationUpsert, Mappings: []api.Mapping{m}}, object,
		[]api.Column{column("a", api.KindInteger), column("b", api.KindString)}, testEnv)
	require.Empty(t, p.KeyColumn())
	record, key, invalid := p.AppendRecord(nil, texts(`1`, `"\u0022"`))
	require.Empty(t, invalid)
	require.Equal(t, `"1-\""`, string(key))
	require.Equal(t, `{"id":"1-\""}`, string(record))

	m = template(`{% if record["a"] > 1 %}{{ record["a"] | divided_by: 0 }}{% endif %}`, "id")
	m.IsPrimaryIdentifier = true
	object.Fields[0].Type = api.TypeInteger
	p = compiledPlan(t, api.SyncConfig{Operation: api.OperationUpsert, Mappings: []api.Mapping{m}}, object,
		[]api.Column{column("a", api.KindInteger)}, testEnv)
	_, _, invalid = p.AppendRecord(nil, texts(`1`))
	require.Equal(t, InvalidNull, invalid)
	_, _, invalid = p.AppendRecord(nil, texts(`2`))
	require.Equal(t, `field "id": Liquid error: divided by 0`, invalid)
}

// Nested names (spec 2.7): flat keys on a custom destination, objects in files,
// objects as text for fields of emulated types.
func TestNestedNames(t *testing.T) {
	no := false
	last := mapped("city", "address.geo.none")
	last.SyncNullValues = &no
	config := api.SyncConfig{Operation: api.OperationInsert, Mappings: []api.Mapping{
		identifier("id", "id"), mapped("city", "address.city"), mapped("id", "other"), mapped("geo", "address.geo.point"), last,
		mapped("id", "..odd"),
	}}
	columns := []api.Column{column("id", api.KindInteger), column("city", api.KindString), column("geo", api.KindObject)}
	row := texts(`1`, `null`, `{"x": 1}`)
	object := func(extra ...api.DestinationField) *api.DestinationObject {
		return &api.DestinationObject{FullName: "o", AllowCustomFields: true, Fields: append(extra, field("id", api.TypeInteger))}
	}
	cases := []struct {
		typ, want string
		fields    []string
	}{
		{api.TypeCustomAPI, `{"id":1,"address.city":null,"other":1,"address.geo.point":"{\"x\":1}","..odd":1}`, []string{"id", "address.city", "other", "address.geo.point", "address.geo.none", "..odd"}},
		{api.TypeLocalFiles, `{"id":1,"address":{"city":null,"geo":{"point":{"x": 1}}},"other":1,"..odd":1}`, []string{"id", "address", "other", "..odd"}},
		{"salesforce", `{"id":1,"address":"{\"city\":null,\"geo\":{\"point\":{\"x\": 1}}}","other":1,"..odd":1}`, []string{"id", "address", "other", "..odd"}},
	}
	for _, c := range cases {
		env := testEnv
		env.DestinationType = c.typ
		p := compiledPlan(t, config, object(), columns, env)
		record, key, invalid := p.AppendRecord(nil, row)
		require.Empty(t, invalid)
		require.Equal(t, c.want, string(record), c.typ)
		require.True(t, json.Valid(record))
		require.Equal(t, "1", string(key))
		var names []string
		for _, f := range p.Fields() {
			names = append(names, f.FullName)
		}
		require.Equal(t, c.fields, names, c.typ)
	}
	// Values that the destination never declared are not sent.
	for typ, message := range map[string]string{
		api.TypeCustomAPI: `the object "o" has no field "address.city"`, "salesforce": `"address" is an integer and holds no object`,
	} {
		closed := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{field("address", api.TypeInteger), field("id", api.TypeInteger)}}
		_, problems := Compile(api.SyncConfig{
			Operation: api.OperationInsert, Mappings: []api.Mapping{identifier("id", "id"), mapped("city", "address.city")},
		}, closed, columns, Env{DestinationType: typ})
		require.Len(t, problems, 1)
		require.Contains(t, problems[0].String(), message)
	}
	env := testEnv
	p := compiledPlan(t, config, object(field("address.city", api.TypeString), field("address", api.TypeString)), columns, env)
	record, _, _ := p.AppendRecord(nil, row)
	require.Contains(t, string(record), `"address.city":null`)
}

// sync_all_properties adds the columns that are not mapped, under each
// normalization, with the type of the column (spec 2.6).
func TestAllProperties(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", AllowCustomFields: true, Fields: []api.DestinationField{field("id", api.TypeInteger)}}
	columns := []api.Column{
		column("id", api.KindInteger), column("firstName", api.KindString), column("created", api.KindDateTime),
		column("blob", api.KindObject), column("tags", api.KindArray), column("score", api.KindFloat),
	}
	row := texts(`1`, `"Ann"`, `"2021-03-29T16:32:23Z"`, `{"a":1}`, `["x",2]`, `0.30000000000000004`)
	config := func(normalization string, mappings ...api.Mapping) api.SyncConfig {
		return api.SyncConfig{
			Operation: api.OperationUpsert, Mappings: append([]api.Mapping{identifier("id", "id")}, mappings...),
			FieldBehavior: api.Ptr(api.BehaviorAllProperties), FieldNormalization: &normalization,
		}
	}
	for normalization, name := range map[string]string{
		StartCase: "First Name", LowerCase: "first name", UpperCase: "FIRST NAME", CamelCase: "firstName", SnakeCase: "first_name", SourceNames: "firstName",
	} {
		p := compiledPlan(t, config(normalization), object, columns, testEnv)
		record, _, invalid := p.AppendRecord(nil, row)
		require.Empty(t, invalid)
		n := func(s string) string { return NormalizeName(s, normalization) }
		require.Equal(t, fmt.Sprintf(`{"id":1,%q:"Ann",%q:"2021-03-29T16:32:23Z",%q:"{\"a\":1}",%q:["x","2"],%q:0.30000000000000004}`,
			name, n("created"), n("blob"), n("tags"), n("score")), string(record), normalization)
		require.Equal(t, api.TypeDateTime, p.Fields()[2].Type)
		require.True(t, p.Fields()[2].New)
		require.False(t, p.Fields()[0].New)
	}
	p := compiledPlan(t, config(SnakeCase, mapped("firstName", "called")), object, columns[:2], testEnv)
	require.Len(t, p.Fields(), 2, "a column that the client has mapped is not added again")

	_, problems := Compile(config(LowerCase), object, append(columns, column("first_name", api.KindString)), testEnv)
	require.Equal(t, []api.Problem{{Field: "field_normalization", Message: `the columns "firstName" and "first_name" both become the field "first name": choose another normalization, or map one of them`}}, problems)

	none := []api.CustomFieldType{{Type: api.TypeString}}
	object.SupportedCustomFieldTypes = &none
	p = compiledPlan(t, config(SourceNames), object, columns, testEnv)
	record, _, invalid := p.AppendRecord(nil, row)
	require.Empty(t, invalid)
	require.Contains(t, string(record), `"tags":"[\"x\",2]","score":"0.30000000000000004"`)
}

// A column that has no field, and cannot get one, is left out; so is one that the
// client has not accepted.
func TestAllPropertiesThatCanBe(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{field("id", api.TypeInteger), field("name", api.TypeString)}}
	columns := []api.Column{column("id", api.KindInteger), column("name", api.KindString), column("city", api.KindString)}
	config := api.SyncConfig{
		Operation: api.OperationUpsert, Mappings: []api.Mapping{identifier("id", "id")}, FieldBehavior: api.Ptr(api.BehaviorAllProperties),
	}
	written := func() string {
		record, _, invalid := compiledPlan(t, config, object, columns, testEnv).AppendRecord(nil, texts(`1`, `"Ann"`, `"Graz"`))
		require.Empty(t, invalid)
		require.Len(t, Generated(&config, object, columns), bytes.Count(record, []byte(`":`))-1)
		return string(record)
	}
	require.Equal(t, `{"id":1,"name":"Ann"}`, written())
	object.AllowCustomFields = true
	require.Equal(t, `{"id":1,"name":"Ann","city":"Graz"}`, written())
	columns[1].Unmapped = true
	columns = append(columns[:1:1], columns[2], columns[1])
	require.Equal(t, `{"id":1,"city":"Ann"}`, written())
}

// field_order (spec 2.6): by name where the object has an order, unless the
// client wants that of the mappings.
func TestFieldOrder(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{field("b", api.TypeInteger), field("c", api.TypeInteger), field("a", api.TypeInteger)}}
	config := api.SyncConfig{Operation: api.OperationUpsert, Mappings: []api.Mapping{identifier("x", "b"), mapped("x", "c"), mapped("x", "a")}}
	config.Mappings[0].Position, config.Mappings[1].Position, config.Mappings[2].Position = api.Ptr(int64(1)), api.Ptr(int64(0)), api.Ptr(int64(2))
	order := func(ordering bool, fieldOrder *string) string {
		object.SupportsFieldOrdering, config.FieldOrder = ordering, fieldOrder
		record, _, _ := compiledPlan(t, config, object, []api.Column{column("x", api.KindInteger)}, testEnv).AppendRecord(nil, texts(`1`))
		return string(record)
	}
	require.Equal(t, `{"c":1,"b":1,"a":1}`, order(false, nil))
	require.Equal(t, `{"a":1,"b":1,"c":1}`, order(true, nil))
	require.Equal(t, `{"a":1,"b":1,"c":1}`, order(true, api.Ptr(api.OrderAlphabetical)))
	require.Equal(t, `{"c":1,"b":1,"a":1}`, order(true, api.Ptr(api.OrderMapping)))
}

// Changes since the sync was configured.
func TestCompileProblems(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{field("id", api.TypeInteger)}}
	columns := []api.Column{column("id", api.KindInteger), column("name", api.KindString)}
	cases := []struct {
		mapping api.Mapping
		want    api.Problem
	}{
		{mapped("nam", "id"), api.Problem{Field: "mappings[0].from.data", Message: `the source has no column "nam"` + didYouMean("nam", []string{"id", "name"})}},
		{template(`{{ record["NAMEE"] }}`, "id"), api.Problem{Field: "mappings[0].from.data", Message: `Column being referenced in template can't be found in data source [NAMEE]`}},
		{template(`{{ record["name" }}`, "id"), api.Problem{Field: "mappings[0].from.data", Message: `Liquid syntax error: Expected close_square but found end_of_string in "{{ record["name" }}"`}},
		{mapped("id", "idd"), api.Problem{Field: "mappings[0].to", Message: `the object "o" has no field "idd"` + didYouMean("idd", []string{"id"})}},
		{api.Mapping{From: from(api.FromConstant, `{"value":"x","basic_type":"text"}`), To: "id"}, api.Problem{Field: "mappings[0].from.data", Message: `does not fit the field "id": cast to integer: "x" is not a number`}},
		{api.Mapping{From: from(api.FromCompoundKey, `1`), To: "id"}, api.Problem{Field: "mappings[0].from.type", Message: `values of type "compound_key" cannot be made`}},
		{api.Mapping{From: from(api.FromSyncMetadata, `"x"`), To: "id"}, api.Problem{Field: "mappings[0].from.data", Message: "must be a string, sync_run_id or sync_id"}},
	}
	for _, c := range cases {
		p, problems := Compile(api.SyncConfig{Operation: api.OperationUpsert, Mappings: []api.Mapping{c.mapping}}, object, columns, testEnv)
		require.Nil(t, p)
		require.Len(t, problems, 1)
		require.Equal(t, c.want.Field, problems[0].Field)
		require.Contains(t, problems[0].Message, c.want.Message)
	}
	_, problems := Compile(api.SyncConfig{}, nil, nil, testEnv)
	require.Len(t, problems, 1)
}

// An object that needs no identifier identifies records by their content.
func TestGeneratedKeys(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{field("v", api.TypeInteger)}}
	columns := []api.Column{column("v", api.KindInteger)}
	env := testEnv
	env.HiddenIdentifier = "unique_id"
	config := api.SyncConfig{Operation: api.OperationAppend, Mappings: []api.Mapping{mapped("v", "v")}}
	p := compiledPlan(t, config, object, columns, env)
	require.True(t, p.Generated())
	require.Equal(t, "unique_id", p.Identifier())
	require.True(t, p.Fields()[0].ActiveIdentifier && p.Fields()[0].Hidden)
	one, key, _ := p.AppendRecord([]byte("x"), texts(`1`))
	require.Equal(t, fmt.Sprintf(`x{"unique_id":%s,"v":1}`, key), string(one))
	require.Len(t, key, 42)
	again, sameKey, _ := p.AppendRecord(nil, texts(`1`))
	require.Equal(t, string(one[1:]), string(again))
	require.Equal(t, key, sameKey)
	_, other, _ := p.AppendRecord(nil, texts(`2`))
	require.NotEqual(t, key, other)
	require.Equal(t, `{"unique_id":`+string(key)+`}`, string(p.AppendDelete(nil, key)))

	// A key that the client maps goes where the destination keeps it.
	config.Mappings = append(config.Mappings, identifier("v", AppendKey))
	p = compiledPlan(t, config, object, columns, env)
	require.False(t, p.Generated())
	record, key, _ := p.AppendRecord(nil, texts(`1`))
	require.Equal(t, `{"v":1,"unique_id":"1"}`, string(record))
	require.Equal(t, `"1"`, string(key))
}

// The number of the run changes no record, though it is in it.
func TestCompared(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{field("id", api.TypeInteger), field("run", api.TypeInteger), field("v", api.TypeString)}}
	config := api.SyncConfig{Operation: api.OperationUpsert, Mappings: []api.Mapping{
		identifier("id", "id"), {From: from(api.FromSyncMetadata, `"sync_run_id"`), To: "run"}, mapped("v", "v"),
	}}
	columns := []api.Column{column("id", api.KindInteger), column("v", api.KindString)}
	compared := func(run int64, v string) string {
		env := testEnv
		env.RunID = run
		p := compiledPlan(t, config, object, columns, env)
		record, _, _ := p.AppendRecord(nil, texts(`1`, v))
		require.Contains(t, string(record), fmt.Sprintf(`"run":%d`, run))
		return string(p.Compared(record))
	}
	require.Equal(t, compared(1, `"x"`), compared(2222, `"x"`))
	require.NotEqual(t, compared(1, `"x"`), compared(1, `"y"`))
	config.Mappings = append(config.Mappings[:1], config.Mappings[2:]...)
	record := []byte(`{"id":1}`)
	require.Equal(t, record, compiledPlan(t, config, object, columns, testEnv).Compared(record))
}

func TestFingerprint(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{field("id", api.TypeInteger), field("v", api.TypeString)}}
	columns := []api.Column{column("id", api.KindInteger), column("v", api.KindString)}
	print := func(change func(c *api.SyncConfig, o *api.DestinationObject, e *Env)) [16]byte {
		c := api.SyncConfig{Operation: api.OperationUpsert, Mappings: []api.Mapping{identifier("id", "id"), mapped("v", "v")}}
		o, env := *object, testEnv
		o.Fields = append([]api.DestinationField{}, object.Fields...)
		if change != nil {
			change(&c, &o, &env)
		}
		return compiledPlan(t, c, &o, columns, env).Fingerprint()
	}
	base := print(nil)
	require.Equal(t, base, print(func(_ *api.SyncConfig, _ *api.DestinationObject, e *Env) { e.RunID, e.Now = 1, time.Now() }))
	require.Equal(t, base, print(func(c *api.SyncConfig, _ *api.DestinationObject, _ *Env) { c.Label = api.Ptr("x") }))
	seen := map[[16]byte]bool{base: true}
	for i, change := range []func(c *api.SyncConfig, o *api.DestinationObject, e *Env){
		func(c *api.SyncConfig, _ *api.DestinationObject, _ *Env) { c.Mappings = c.Mappings[:1] },
		func(c *api.SyncConfig, _ *api.DestinationObject, _ *Env) { c.Mappings[1] = mapped("id", "v") },
		func(c *api.SyncConfig, _ *api.DestinationObject, _ *Env) {
			c.Mappings[1] = template(`{{ record["v"] }}`, "v")
		},
		func(c *api.SyncConfig, _ *api.DestinationObject, _ *Env) {
			c.Mappings[1] = template(`{{ record["v"] }}.`, "v")
		},
		func(c *api.SyncConfig, _ *api.DestinationObject, _ *Env) {
			c.Mappings[1].SyncNullValues = api.Ptr(false)
		},
		func(c *api.SyncConfig, _ *api.DestinationObject, _ *Env) {
			c.Mappings[0].IsPrimaryIdentifier, c.Mappings[1].IsPrimaryIdentifier = false, true
		},
		func(_ *api.SyncConfig, o *api.DestinationObject, _ *Env) { o.Fields[0].Type = api.TypeString },
	} {
		p := print(change)
		require.False(t, seen[p], "change %d", i)
		seen[p] = true
	}
}

// Plain columns cost no memory.
func TestPlainColumnsAllocateNothing(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{
		field("id", api.TypeInteger), field("s", api.TypeString), field("d", api.TypeDecimal), field("f", api.TypeFloat), field("t", api.TypeDateTime),
		arrayField("a", api.TypeString),
	}}
	var config api.SyncConfig
	var columns []api.Column
	for i, f := range object.Fields {
		m := mapped(f.FullName, f.FullName)
		m.IsPrimaryIdentifier = i == 0
		config.Mappings = append(config.Mappings, m)
		columns = append(columns, column(f.FullName, api.KindAny))
	}
	p := compiledPlan(t, config, object, columns, testEnv)
	row := texts(`12`, `"text"`, `1.50`, `1.5`, `"2021-03-31T16:32:23.123Z"`, `["a", "b"]`)
	buf := make([]byte, 0, 1000)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf, _, _ = p.AppendRecord(buf[:0], row) }))
}

// Whatever a row holds, the record is valid JSON whose values are those that
// Cast gives, or the row is invalid for the reason that Cast gives.
func TestRecordIsWhatCastGives(t *testing.T) {
	value := rapid.OneOf(
		rapid.Just(any(nil)), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Float64Range(-1e12, 1e12), func(f float64) any { return f }),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE]-?[0-9]{1,2})?`), func(s string) any { return json.Number(s) }),
		rapid.Map(rapid.StringMatching(`20[0-9]{2}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]{1,9})?Z)?`), func(s string) any { return s }),
	)
	rapid.Check(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom(wireTypes).Draw(rt, "type")
		array := rapid.Bool().Draw(rt, "array")
		raw, err := marshalPlain(value.Draw(rt, "value"))
		require.NoError(rt, err)
		if array {
			items, err := marshalPlain(rapid.SliceOfN(value, 0, 4).Draw(rt, "items"))
			require.NoError(rt, err)
			raw = items
		}
		decoded, err := decodeValue(raw)
		require.NoError(rt, err)
		want, wantErr := Cast(decoded, typ, array)
		object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{{FullName: "v", Type: typ, Array: array}}}
		p := compiledPlan(t, api.SyncConfig{Mappings: []api.Mapping{mapped("v", "v")}}, object, []api.Column{column("v", api.KindAny)}, testEnv)
		record, _, invalid := p.AppendRecord(nil, [][]byte{raw})
		require.Equal(rt, wantErr != nil, invalid != "", "%s: %v, %s", raw, wantErr, invalid)
		if wantErr != nil {
			require.Equal(rt, fmt.Sprintf("field %q: %v", "v", wantErr), invalid)
			return
		}
		got, err := decodeValue(record)
		require.NoError(rt, err, "%s", record)
		require.Equal(rt, plainFloats(want), plainFloats(got.(map[string]any)["v"]), "%s as %s", raw, typ)
	})
}

// plainFloats makes numbers comparable that differ only in how zeros and
// exponents are written.
func plainFloats(value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainFloats(v[i])
		}
		return out
	case json.Number:
		f, err := castFloat(v.String())
		if err == nil {
			return f
		}
	}
	return value
}

// Text that a source could not read as UTF-8 is not sent in another form,
// wherever it occurs; the character that it reads as is a text like any other.
func TestDamagedText(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", Fields: []api.DestinationField{
		field("id", api.TypeString), field("v", api.TypeString), field("t", api.TypeString),
	}}
	columns := []api.Column{column("id", api.KindString), column("v", api.KindString)}
	template := api.Mapping{From: api.MappingFrom{Type: api.FromLiquid, Data: api.Raw("{{ record['v'] }}")}, To: "t"}
	lost := `"a` + rawjson.LostByte + `b"`
	for name, c := range map[string]struct {
		mappings []api.Mapping
		row      [][]byte
		key      string
		invalid  string
	}{
		"value":      {[]api.Mapping{identifier("id", "id"), mapped("v", "v")}, texts(`"k"`, lost), `"k"`, `field "v": the text is not valid UTF-8`},
		"identifier": {[]api.Mapping{identifier("id", "id"), mapped("v", "v")}, texts(lost, `"x"`), "", `field "id": the text is not valid UTF-8`},
		"both":       {[]api.Mapping{mapped("v", "v"), identifier("id", "id")}, texts(lost, lost), "", "the text is not valid UTF-8"},
		"template":   {[]api.Mapping{identifier("id", "id"), template}, texts(`"k"`, lost), `"k"`, "the text is not valid UTF-8"},
		"not mapped": {[]api.Mapping{identifier("id", "id")}, texts(`"k"`, lost), `"k"`, ""},
		"character":  {[]api.Mapping{identifier("id", "id"), mapped("v", "v")}, texts(`"k"`, "\"\ufffd\""), `"k"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiledPlan(t, api.SyncConfig{Operation: api.OperationUpsert, Mappings: c.mappings}, object, columns, testEnv)
			row := make([][]byte, len(p.Columns()))
			for i, at := range p.Columns() {
				row[i] = c.row[map[string]int{"id": 0, "v": 1}[at]]
			}
			_, key, invalid := p.AppendRecord(nil, row)
			require.Equal(t, c.key, string(key))
			require.Contains(t, invalid, c.invalid)
			require.Equal(t, c.invalid == "", invalid == "")
		})
	}
}

// A field that is created has the type that the mapping or its column gives it.
func TestCreatedFields(t *testing.T) {
	object := &api.DestinationObject{FullName: "o", AllowCustomFields: true, Fields: []api.DestinationField{field("id", api.TypeInteger)}}
	for name, c := range map[string]struct {
		change func(*api.Mapping)
		typ    string
		array  bool
		record string
	}{
		"by its column":          {func(*api.Mapping) {}, api.TypeInteger, false, `{"id":1,"fresh":7}`},
		"field_type":             {func(m *api.Mapping) { m.FieldType = api.Ptr(api.TypeString) }, api.TypeString, false, `{"id":1,"fresh":"7"}`},
		"follow_source_type":     {func(m *api.Mapping) { m.FieldType, m.FollowSourceType = api.Ptr(api.TypeString), true }, api.TypeInteger, false, `{"id":1,"fresh":7}`},
		"array_field":            {func(m *api.Mapping) { m.ArrayField = true }, api.TypeInteger, true, `{"id":1,"fresh":[7]}`},
		"array_field of a type":  {func(m *api.Mapping) { m.FieldType, m.ArrayField = api.Ptr(api.TypeString), true }, api.TypeString, true, `{"id":1,"fresh":["7"]}`},
		"not of one that exists": {func(m *api.Mapping) { m.To, m.FieldType = "there", api.Ptr(api.TypeString) }, api.TypeFloat, false, `{"id":1,"there":7}`},
	} {
		m := mapped("n", "fresh")
		m.GenerateField = true
		c.change(&m)
		object.Fields = append(object.Fields[:1], field("there", api.TypeFloat))
		p := compiledPlan(t, api.SyncConfig{Operation: api.OperationUpsert, Mappings: []api.Mapping{identifier("id", "id"), m}}, object,
			[]api.Column{column("id", api.KindInteger), column("n", api.KindInteger)}, testEnv)
		require.Equal(t, c.typ, p.Fields()[1].Type, name)
		require.Equal(t, c.array, p.Fields()[1].Array, name)
		value := `7`
		if c.array {
			value = `[7]`
		}
		record, _, invalid := p.AppendRecord(nil, texts(`1`, value))
		require.Empty(t, invalid, name)
		require.Equal(t, c.record, string(record), name)
	}
}
