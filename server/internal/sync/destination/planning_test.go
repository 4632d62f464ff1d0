package destination

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// goodField is a field of list_fields with all eight keys.
func goodField(name, typ string, identifier bool) string {
	return fmt.Sprintf(`{"field_api_name":%q,"label":%q,"identifier":%t,"required":%t,"createable":true,"updateable":true,"type":%q,"array":false}`,
		name, strings.ToUpper(name), identifier, identifier, typ)
}

// planning answers the three planning calls with raw results.
func planning(objects, fields, operations string) map[string]string {
	return map[string]string{
		"list_objects": `"result":` + objects, "list_fields": `"result":` + fields, "supported_operations": `"result":` + operations,
	}
}

const (
	oneObject  = `{"objects":[{"object_api_name":"restaurant","label":"Restaurants"}]}`
	everything = `{"operations":["upsert","insert","update","mirror"]}`
)

var goodFields = `{"fields":[` + goodField("id", "string", true) + `,` + goodField("size", "integer", false) + `]}`

func objectsOf(t *testing.T, answers map[string]string) ([]*api.DestinationObject, error) {
	t.Helper()
	return openURL(t, newGate(t, Options{}), server(t, endpoint(t, answers))).Objects(t.Context())
}

// One good object, property by property (spec 2.3, 2.5).
func TestMapping(t *testing.T) {
	list, err := objectsOf(t, planning(
		`{"objects":[{"object_api_name":"restaurant","label":"Restaurants","can_create_fields":"on_write"}]}`,
		goodFields, `{"operations":["upsert","mirror"]}`))
	require.NoError(t, err)
	require.Len(t, list, 1)
	o := list[0]
	types := everyType()
	rule := api.IdentifierRule{Required: true}
	require.Equal(t, &api.DestinationObject{
		Label: "Restaurants", FullName: "restaurant", SupportedOperations: []string{"upsert", "mirror"},
		PrimaryIdentifierMappingAttributes: &api.PrimaryIdentifiers{Upsert: rule, Mirror: rule},
		AllowCustomFields:                  true, SupportedCustomFieldTypes: &types, AllowCaseSensitiveFields: true,
		AdvancedConfigurationFields: []api.AdvancedField{}, CanBeSyncDestination: true, IsAudienceDestination: api.Ptr(false),
		ConfigurableFieldDefinitions: map[string]string{},
		Fields: []api.DestinationField{
			{Label: "ID", FullName: "id", Createable: true, Updateable: true, Operations: []string{"overwrite"},
				RequiredForMapping: true, CanBeUpsertKey: true, Type: "string"},
			{Label: "SIZE", FullName: "size", Createable: true, Updateable: true, Operations: []string{"overwrite"}, Type: "integer"},
		},
	}, o)
	require.Len(t, types, 14)
}

func TestKeysFollowOperations(t *testing.T) {
	cases := []struct {
		operations             string
		upsert, update, insert bool
	}{
		{`["upsert"]`, true, false, false},
		{`["mirror"]`, true, false, false},
		{`["update"]`, false, true, false},
		{`["insert"]`, false, false, true},
		{`["insert","update"]`, false, true, true},
	}
	for _, c := range cases {
		list, err := objectsOf(t, planning(oneObject, goodFields, `{"operations":`+c.operations+`}`))
		require.NoError(t, err)
		f := list[0].Field("id")
		require.Equal(t, []bool{c.upsert, c.update, c.insert}, []bool{f.CanBeUpsertKey, f.CanBeUpdateKey, f.CanBeInsertKey}, c.operations)
		require.False(t, list[0].Field("size").CanBeUpsertKey)
	}
}

// An endpoint's error about one object spoils that object, and its notes
// hold the reason.
func TestDeviations(t *testing.T) {
	field := goodField("id", "string", true)
	cases := []struct{ name, objects, fields, operations, want string }{
		{"no identifier", oneObject, `{"fields":[` + goodField("id", "string", false) + `]}`, everything, "no identifier"},
		{"no fields", oneObject, `{"fields":[]}`, everything, "no identifier"},
		{"fields missing", oneObject, `{}`, everything, "result.fields is missing"},
		{"fields null", oneObject, `{"fields":null}`, everything, "result.fields is missing"},
		{"fields an object", oneObject, `{"fields":{}}`, everything, "result.fields is missing or not an array"},
		{"identifier a float", oneObject, `{"fields":[` + goodField("id", "float", true) + `]}`, everything, "no identifier of type string or integer"},
		{"identifier an array", oneObject, `{"fields":[` + strings.Replace(field, `"array":false`, `"array":true`, 1) + `]}`, everything, "no identifier"},
		{"unknown type", oneObject, `{"fields":[` + field + `,` + goodField("x", "email", false) + `]}`, everything, `fields[1].type is "email"`},
		{"misspelt key", oneObject, `{"fields":[` + strings.Replace(field, `"identifier"`, `"identifir"`, 1) + `]}`, everything, "identifier is missing"},
		{"capital key", oneObject, `{"fields":[` + strings.Replace(field, `"array"`, `"Array"`, 1) + `]}`, everything, "array is missing"},
		{"number as label", oneObject, `{"fields":[` + strings.Replace(field, `"ID"`, `7`, 1) + `]}`, everything, "label is missing or not a string"},
		{"empty name", oneObject, `{"fields":[` + field + `,` + goodField("", "string", false) + `]}`, everything, "field_api_name is empty"},
		{"twice", oneObject, `{"fields":[` + field + `,` + field + `]}`, everything, `names the field "id" twice`},
		{"a string as field", oneObject, `{"fields":["id"]}`, everything, "fields[0] is not an object"},
		{"operations missing", oneObject, goodFields, `{}`, "result.operations is missing"},
		{"no operation", oneObject, goodFields, `{"operations":[]}`, "names none"},
		{"only delete", oneObject, goodFields, `{"operations":["delete"]}`, "names none"},
		{"unknown operation", oneObject, goodFields, `{"operations":["upsert","merge"]}`, `"merge"`},
		{"operation a number", oneObject, goodFields, `{"operations":[1]}`, "operations[0] is not a string"},
		{"object twice", `{"objects":[{"object_api_name":"a","label":"A"},{"object_api_name":"a","label":"B"}]}`, goodFields, everything, "names the object twice"},
		{"can_create_fields", `{"objects":[{"object_api_name":"a","label":"A","can_create_fields":"always"}]}`, goodFields, everything, "can_create_fields"},
		{"can_create_fields true", `{"objects":[{"object_api_name":"a","label":"A","can_create_fields":true}]}`, goodFields, everything, "can_create_fields"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			list, err := objectsOf(t, planning(c.objects, c.fields, c.operations))
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.False(t, list[0].CanBeSyncDestination)
			require.NotNil(t, list[0].PrimaryIdentifierMappingAttributes.Upsert.Notes)
			require.Contains(t, *list[0].PrimaryIdentifierMappingAttributes.Upsert.Notes, c.want)
		})
	}
}

// Harmless deviations of public endpoints.
func TestTolerated(t *testing.T) {
	cases := []struct{ name, objects, operations string }{
		{"null", `{"objects":[{"object_api_name":"a","label":"A","can_create_fields":null}]}`, everything},
		{"false", `{"objects":[{"object_api_name":"a","label":"A","can_create_fields":false}]}`, everything},
		{"empty", `{"objects":[{"object_api_name":"a","label":"","can_create_fields":""}]}`, everything},
		{"more keys", `{"objects":[{"object_api_name":"a","label":"A","colour":"red"}],"method":"list_objects"}`, everything},
		{"delete beside others", oneObject, `{"operations":["mirror","delete","mirror"]}`},
	}
	for _, c := range cases {
		list, err := objectsOf(t, planning(c.objects, goodFields, c.operations))
		require.NoError(t, err, c.name)
		require.True(t, list[0].CanBeSyncDestination, c.name)
		require.False(t, list[0].AllowCustomFields, c.name)
		require.Empty(t, *list[0].SupportedCustomFieldTypes, c.name)
	}
}

// Without the right keys in list_objects, or when a call fails, there is a
// planning error that names the call (spec 7.2.1, 7.2.2).
func TestPlanningErrors(t *testing.T) {
	cases := []struct{ name, method, answer, want string }{
		{"no objects key", "list_objects", `"result":{}`, "call list_objects: unknown error: result.objects is missing"},
		{"empty", "list_objects", `"result":{"objects":[]}`, "at least one object"},
		{"not an array", "list_objects", `"result":{"objects":"x"}`, "not an array"},
		{"no name", "list_objects", `"result":{"objects":[{"label":"A"}]}`, "objects[0].object_api_name is missing"},
		{"no label", "list_objects", `"result":{"objects":[{"object_api_name":"a"}]}`, "objects[0].label is missing"},
		{"not an object", "list_objects", `"result":{"objects":[7]}`, "objects[0] is not an object"},
		{"too many", "list_objects", `"result":{"objects":[` + strings.TrimSuffix(strings.Repeat("{},", maxObjects+1), ",") + `]}`, "at most"},
		{"error of list_objects", "list_objects", `"error":{"code":-32001,"message":"no schema"}`, "call list_objects: rpc error -32001: no schema"},
		{"error of list_fields", "list_fields", `"error":{"code":-32603,"message":"boom"}`, `call list_fields of object "restaurant": rpc error -32603: boom`},
		{"error of supported_operations", "supported_operations", `"error":{"code":-32603,"message":"boom"}`, `call supported_operations of object "restaurant": rpc error -32603: boom`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			answers := planning(oneObject, goodFields, everything)
			answers[c.method] = c.answer
			list, err := objectsOf(t, answers)
			require.Nil(t, list)
			require.ErrorContains(t, err, c.want)
			failed := failedCall(t, err)
			require.Equal(t, c.method, failed.Method)
		})
	}
}

// Schema calls run in parallel and never more than planningCalls at once; each
// gets exactly what the protocol specifies.
func TestPlanningIsParallelAndBounded(t *testing.T) {
	const objects = 30
	var names []string
	for i := range objects {
		names = append(names, fmt.Sprintf(`{"object_api_name":"o%d","label":"O%d"}`, i, i))
	}
	answers := planning(`{"objects":[`+strings.Join(names, ",")+`]}`, goodFields, everything)
	answer := endpoint(t, answers)
	var now, most atomic.Int64
	var mu sync.Mutex
	bodies := map[string]int{}
	full := make(chan struct{})
	var once sync.Once
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		var q rpc.Request
		require.NoError(t, json.NewDecoder(r.Body).Decode(&q))
		if q.Method != "list_objects" {
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			if n == planningCalls {
				once.Do(func() { close(full) })
			}
			<-full // all wait until as many as allowed are here
			defer now.Add(-1)
			mu.Lock()
			bodies[q.Method+" "+string(q.Params)]++
			mu.Unlock()
		}
		text, _ := json.Marshal(q)
		r.Body = readCloser(text)
		answer(w, r)
	})
	list, err := openURL(t, newGate(t, Options{}), url).Objects(t.Context())
	require.NoError(t, err)
	require.Len(t, list, objects)
	for i, o := range list {
		require.Equal(t, fmt.Sprintf("o%d", i), o.FullName)
		require.Equal(t, 1, bodies[fmt.Sprintf(`list_fields {"object":{"object_api_name":"o%d","label":"O%d"}}`, i, i)])
	}
	require.Len(t, bodies, 2*objects)
	require.EqualValues(t, planningCalls, most.Load())
}

// The presets of a real simulator map without a deviation.
func TestRealSimulator(t *testing.T) {
	for _, preset := range destsim.Presets() {
		sim := simulator(t, destsim.Config{Preset: preset})
		list, err := openURL(t, newGate(t, Options{}), server(t, sim.ServeHTTP)).Objects(t.Context())
		require.NoError(t, err, preset)
		require.NotEmpty(t, list, preset)
		for _, o := range list {
			require.True(t, o.CanBeSyncDestination, "%s %s", preset, o.FullName)
			require.NotEmpty(t, o.Fields)
		}
	}
}

// Whatever an endpoint answers, there is an error or objects that hold
// together, and never a panic.
func FuzzPlanningReplies(f *testing.F) {
	f.Add(oneObject, goodFields, everything)
	f.Add(`{"objects":[{"object_api_name":"a","label":null}]}`, `{"fields":[[]]}`, `{"operations":[null]}`)
	f.Add(`[]`, `null`, `7`)
	f.Add(`{"objects":[{"object_api_name":"a","label":"a","can_create_fields":{}}]}`, `{"fields":[{}]}`, `{"operations":{}}`)
	f.Fuzz(func(t *testing.T, objects, fields, operations string) {
		list, problem := decodeObjects(json.RawMessage(objects))
		require.Equal(t, problem != "", list == nil)
		c := &caller{clean: newRedactor(nil)}
		names := map[string]bool{}
		for i := range list {
			o := &list[i]
			o.readFields(json.RawMessage(fields), roomy())
			o.readOperations(json.RawMessage(operations))
			d := c.describe(o)
			require.False(t, names[d.FullName])
			names[d.FullName] = true
			checkObject(t, d)
		}
	})
}

// checkObject asserts the invariants of every described object.
func checkObject(t *testing.T, d *api.DestinationObject) {
	t.Helper()
	text, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(text), `"fields":null`)
	require.NotContains(t, string(text), `"supported_operations":null`)
	key := false
	seen := map[string]bool{}
	for _, field := range d.Fields {
		require.NotEmpty(t, field.FullName)
		require.False(t, seen[field.FullName])
		seen[field.FullName] = true
		require.Contains(t, rpc.FieldTypes(), field.Type)
		isKey := field.CanBeUpsertKey || field.CanBeUpdateKey || field.CanBeInsertKey
		require.False(t, isKey && field.Array)
		key = key || isKey
	}
	if d.CanBeSyncDestination {
		require.True(t, key)
		require.NotEmpty(t, d.SupportedOperations)
	}
	for _, op := range d.SupportedOperations {
		require.Contains(t, []string{"upsert", "insert", "update", "mirror"}, op)
	}
}

// roomy is room for any fields.
func roomy() *atomic.Int64 {
	var room atomic.Int64
	room.Store(maxDescribed)
	return &room
}

// TestPlanningRepliesAreBounded: elements of two bytes take no more memory than the
// bytes read, and the fields of all objects together have a bound.
func TestPlanningRepliesAreBounded(t *testing.T) {
	million := "[" + strings.Repeat("{},", 1_000_000) + "{}]"
	members := "{" + strings.Repeat(`"a":1,`, 10) + `"objects":` + million + "}"
	var many strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&many, `"m%d":1,`, i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, problem := decodeObjects(json.RawMessage(members))
	require.Equal(t, "result.objects holds more than 2000 objects; at most so many are read", problem)
	_, problem = decodeObjects(json.RawMessage("{" + many.String() + `"objects":[]}`))
	require.Equal(t, "result is not an object", problem)
	var o wireObject
	o.readFields(json.RawMessage(`{"fields":`+million+`}`), roomy())
	o.readOperations(json.RawMessage(`{"operations":` + million + `}`))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	require.Contains(t, *o.why(), "more than 5000 fields")
	require.Len(t, o.deviations, maxDeviations)

	field := `{"field_api_name":"%d","label":"` + strings.Repeat("x", 1000) + `","type":"string","identifier":false,"required":false,"createable":true,"updateable":true,"array":false}`
	var fields []string
	for i := range 100 {
		fields = append(fields, fmt.Sprintf(field, i))
	}
	var room atomic.Int64
	room.Store(50_000)
	o = wireObject{}
	o.readFields(json.RawMessage(`{"fields":[`+strings.Join(fields, ",")+`]}`), &room)
	require.Len(t, o.fields, 43)
	require.Contains(t, *o.why(), "the fields of all objects take more than 16777216 bytes")
}
