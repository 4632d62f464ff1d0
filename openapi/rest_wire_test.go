package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

// replyHeaders are the headers of a good reply.
func replyHeaders() http.Header {
	return http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Deprecation": {"@1672531200"}}
}

// TestRESTExamplesAreValid: each operation shows a request where it has one
// and a reply for each of its statuses, and each conforms to the document.
func TestRESTExamplesAreValid(t *testing.T) {
	for _, o := range Operations() {
		shown := map[int]bool{}
		for _, e := range o.Examples() {
			shown[e.Status] = true
			if e.Status == 0 {
				require.Empty(t, o.checkBody("application/json", e.Body), "%s %s", o.ID, e.Name)
			} else {
				require.NoError(t, o.CheckResponse(e.Status, replyHeaders(), e.Body), e.Name)
			}
		}
		require.Equal(t, o.HasBody, shown[0], o.ID)
		require.Equal(t, o.HasBody, o.RequestExample() != nil, "%s has no typical request", o.ID)
		for _, status := range o.Statuses {
			require.True(t, shown[status], "%s has no example of %d", o.ID, status)
		}
	}
}

// TestWhatWasReadCanBeSent: a client may send back a reply, with
// read-only fields (spec 2.6).
func TestWhatWasReadCanBeSent(t *testing.T) {
	for read, write := range map[string]string{
		"fetchSync": "updateSync", "fetchModel": "updateModel", "fetchTopic": "updateTopic", "fetchDataset": "updateDataset",
		"fetchWebhook": "updateWebhook", "createWebhook": "updateWebhook", "fetchInvitation": "updateInvitation",
		"fetchWorkspace": "updateWorkspace", "createWorkspace": "updateWorkspace", "fetchWorkspaceInvitation": "updateWorkspaceInvitation",
	} {
		for _, e := range findOperation(read).Examples() {
			if e.Status != http.StatusOK && e.Status != http.StatusCreated {
				continue
			}
			var reply struct{ Data json.RawMessage }
			require.NoError(t, json.Unmarshal(e.Body, &reply))
			require.Empty(t, findOperation(write).checkBody("", reply.Data), "%s %s", read, e.Name)
		}
	}
}

// wireTypes are the schemas of replies and what the service fills them from.
var wireTypes = map[string]any{
	"Pagination": api.Pagination{}, "Problem": api.Problem{},
	"Destination": api.Destination{}, "TestStep": api.TestStep{}, "DestinationObject": api.DestinationObject{},
	"IdentifierRule": api.IdentifierRule{}, "CustomFieldType": api.CustomFieldType{},
	"AdvancedConfigurationField": api.AdvancedField{}, "DestinationField": api.DestinationField{}, "Connector": api.Connector{},
	"ConfigurationFields": api.ConfigFields{}, "ConfigurationField": api.ConfigField{},
	"SourceType": api.SourceType{}, "Source": api.Source{}, "Table": api.Table{}, "Column": api.Column{},
	"Model": api.Model{}, "Dataset": api.Dataset{}, "Topic": api.Topic{}, "FilterSegment": api.FilterSegment{}, "Link": api.Link{},
	"Sync": api.Sync{}, "SyncRun": api.SyncRun{}, "Mapping": api.Mapping{}, "Mode": api.Mode{}, "Triggers": api.Triggers{},
	"Schedule": api.Schedule{}, "DestinationAttributes": api.DestinationAttributes{}, "SourceAttributes": api.SourceAttributes{},
	"MatchRateDetails": api.MatchRate{}, "HighWaterMarkAttributes": api.HighWaterMarkAttributes{}, "Template": api.Template{},
	"Webhook": api.Webhook{}, "Workspace": api.Workspace{}, "User": api.User{},
	"Invitation": api.Invitation{}, "WorkspaceInvitation": api.WorkspaceInvitation{},
}

// keys are the JSON names of a type, and those that are always there.
func keys(typ reflect.Type) (all, always []string) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			innerAll, innerAlways := keys(field.Type)
			all, always = append(all, innerAll...), append(always, innerAlways...)
		case name != "-":
			if all = append(all, name); options != "omitempty" {
				always = append(always, name)
			}
		}
	}
	return all, always
}

// TestSchemasAreTheWireTypes: a reply can hold no field that the document does
// not have, and the document promises none that no reply holds.
func TestSchemasAreTheWireTypes(t *testing.T) {
	for name, value := range wireTypes {
		schema := rest().doc.Components.Schemas[name].Value
		all, always := keys(reflect.TypeOf(value))
		require.ElementsMatch(t, all, slices.Collect(maps.Keys(schema.Properties)), name)
		switch name {
		case "Mode", "Schedule", "HighWaterMarkAttributes": // requests have them too, with less
			require.Subset(t, always, schema.Required, name)
		default:
			require.ElementsMatch(t, always, schema.Required, name)
		}
	}
}

// TestRequestsFitTheWireTypes: requests have the fields of the types that they are decoded
// into, beyond which a client may only send read-only fields.
func TestRequestsFitTheWireTypes(t *testing.T) {
	for name, value := range map[string]any{"SyncWrite": api.SyncConfig{}, "SyncUpdate": api.SyncConfig{}, "MappingWrite": api.Mapping{}} {
		schema := rest().doc.Components.Schemas[name].Value
		all, _ := keys(reflect.TypeOf(value))
		var writable []string
		for key, property := range schema.Properties {
			if !property.Value.ReadOnly && key != "validate_only" {
				writable = append(writable, key)
			}
		}
		require.ElementsMatch(t, all, writable, name)
	}
	connection := func(schema, key string) []string {
		s := rest().doc.Components.Schemas[schema].Value.Properties[key].Value
		return slices.Collect(maps.Keys(s.Properties))
	}
	for _, kind := range []string{"Create", "Update"} {
		all, _ := keys(reflect.TypeFor[api.ServiceConnection]())
		require.ElementsMatch(t, all, connection("Destination"+kind, "service_connection"))
		all, _ = keys(reflect.TypeFor[api.SourceConnection]())
		require.ElementsMatch(t, all, connection("Source"+kind, "connection"))
	}
}

// TestEnumsAreTheConstants: every word that the service knows is a word of the
// document, at its place.
func TestEnumsAreTheConstants(t *testing.T) {
	schemas := rest().doc.Components.Schemas
	enum := func(name string, path ...string) []string {
		s := schemas[name].Value
		for _, key := range path {
			if key == "[]" {
				s = s.Items.Value
			} else {
				s = s.Properties[key].Value
			}
		}
		return words(s.Enum)
	}
	kinds := func(name string) []string {
		return slices.Collect(maps.Keys(schemas[name].Value.Discriminator.Mapping))
	}
	for _, tc := range []struct {
		document, constants []string
	}{
		{enum("SyncOperation"), []string{api.OperationAppend, api.OperationInsert, api.OperationMirror, api.OperationUpdate, api.OperationUpsert}},
		{enum("SyncStatus"), []string{
			api.SyncReady, api.SyncUpToDate, api.SyncFailing,
			strings.ToLower(api.SyncReady), strings.ToLower(api.SyncUpToDate), strings.ToLower(api.SyncFailing),
		}},
		{enum("FieldBehavior"), []string{api.BehaviorAllProperties, api.BehaviorSpecificProperties}},
		{enum("FieldNormalization"), []string{"start_case", "lower_case", "upper_case", "camel_case", "snake_case", "match_source_names"}},
		{enum("FieldOrder"), []string{api.OrderAlphabetical, api.OrderMapping}},
		{enum("SyncBehaviorFamily"), []string{api.FamilyActivateEvents, api.FamilyMapRecords}},
		{enum("HistoricalSyncOperation"), []string{api.HistorySkip, api.HistoryBackfill}},
		{enum("MirrorStrategy"), []string{api.MirrorDeletes, api.MirrorNulls, api.MirrorSwap}},
		{enum("Mode", "type"), []string{api.ModeTriggered, api.ModeLive}},
		{enum("Schedule", "frequency"), []string{
			api.FrequencyNever, api.FrequencyContinuous, api.FrequencyQuarterHourly, api.FrequencyHourly,
			api.FrequencyDaily, api.FrequencyWeekly, api.FrequencyExpression,
		}},
		{enum("FlatFrequency"), enum("Schedule", "frequency")},
		{enum("FlatDay"), enum("Schedule", "day")},
		{kinds("SourceObject"), []string{api.ObjectTable, api.ObjectDataset, api.ObjectModel, api.ObjectTopic, api.ObjectSegment, api.ObjectFilterSegment}},
		{kinds("MappingFrom"), []string{
			api.FromColumn, api.FromConstant, api.FromLiquid, api.FromSyncMetadata, api.FromSegmentMembership, api.FromCompoundKey,
		}},
		{kinds("MappingFromWrite"), kinds("MappingFrom")},
		{kinds("Alert"), []string{
			api.AlertFailure, api.AlertInvalidRecordPercent, api.AlertFullSyncTrigger,
			api.AlertRecordCountDeviation, api.AlertRuntime, api.AlertStatus,
		}},
		{enum("AlertSendFor"), []string{api.SendFirstTime, api.SendEveryTime}},
		{enum("SyncRun", "status"), []string{api.RunQueued, api.RunWorking, api.RunCompleted, api.RunFailed, api.RunSkipped}},
		{enum("TestStep", "status"), []string{api.StepPassed, api.StepFailed, api.StepSkipped}},
		{enum("FieldType"), []string{
			api.TypeBoolean, api.TypeDecimal, api.TypeFloat, api.TypeInteger, api.TypeDate, api.TypeDateTime, api.TypeString,
		}},
		{enum("SyncEngine"), []string{api.EngineBasic, api.EngineAdvanced}},
		{enum("OrganizationRole"), []string{api.RoleAdmin, api.RoleMember}},
		{enum("WorkspaceRole"), []string{api.RoleOwner, api.RoleEditor, api.RoleOperator, api.RoleViewer}},
		{enum("User", "role"), slices.Concat(enum("OrganizationRole"), enum("WorkspaceRole"))},
		{enum("WebhookEvents", "[]"), api.WebhookEvents},
		{enum("Deleted", "status"), []string{api.StatusDeleted}},
	} {
		require.ElementsMatch(t, tc.constants, tc.document)
	}
	require.Contains(t, rest().doc.Components.Schemas["DestinationCredentials"].Value.Description, api.TypeCustomAPI)
	require.Contains(t, rest().doc.Components.Schemas["DestinationCredentials"].Value.Description, api.TypeLocalFiles)
}

// TestLimits of spec 8, 2.6 and published behaviour.
func TestLimits(t *testing.T) {
	schemas := rest().doc.Components.Schemas
	between := func(s *openapi3.Schema, low, high float64) {
		t.Helper()
		require.Equal(t, []float64{low, high}, []float64{*s.Min, *s.Max})
	}
	between(schemas["FailedRecordThreshold"].Value, 0, 100)
	require.EqualValues(t, 75, schemas["FailedRecordThreshold"].Value.Default)
	require.Equal(t, true, schemas["FailedRunNotifications"].Value.Default)
	between(schemas["Schedule"].Value.Properties["hour"].Value, 0, 24)
	between(schemas["Schedule"].Value.Properties["minute"].Value, 0, 59)
	between(schemas["InvalidRecordPercentAlert"].Value.Properties["options"].Value.Properties["threshold"].Value, 0, 100)
	between(schemas["MatchRateDetails"].Value.Properties["match_rate"].Value, 0, 1)
	between(schemas["Pagination"].Value.Properties["per_page"].Value, 1, 100)
	parameters := rest().doc.Components.Parameters
	require.EqualValues(t, 1, parameters["Page"].Value.Schema.Value.Default)
	require.EqualValues(t, 25, parameters["PerPage"].Value.Schema.Value.Default)
	require.Equal(t, "desc", parameters["Order"].Value.Schema.Value.Default)
}

func TestDecodeJSON(t *testing.T) {
	text := ` { "a" : [ 1 , -2.5e+3, true , false , null , "x\u00e9\n" ] , "b" : { } , "c" : [ ] , "é" : "ü" } ` + "\r\n\t"
	value, repeated, err := decodeJSON([]byte(text), false)
	require.NoError(t, err)
	require.Empty(t, repeated)
	require.Equal(t, map[string]any{
		"a": []any{json.Number("1"), json.Number("-2.5e+3"), true, false, nil, "xé\n"},
		"b": map[string]any{}, "c": []any{}, "é": "ü",
	}, value)

	value, _, err = decodeJSON([]byte(`[1,1.0,1e2,-9223372036854775808,9223372036854775808]`), true)
	require.NoError(t, err)
	require.Equal(t, []any{json.Number("1"), inexact("1.0"), inexact("1e2"), json.Number("-9223372036854775808"), inexact("9223372036854775808")}, value)

	value, repeated, err = decodeJSON([]byte(`{"a":1,"b":[{"c":1,"c":2}],"a":3}`), false)
	require.NoError(t, err)
	require.Equal(t, json.Number("3"), value.(map[string]any)["a"])
	require.Equal(t, []string{"b[0].c", "a"}, []string{repeated[0].field, repeated[1].field})

	most := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	_, _, err = decodeJSON([]byte(most), false)
	require.NoError(t, err)
}

// FuzzDecodeJSON: our reader takes what encoding/json takes, as the same value,
// but for depth and bytes that are no UTF-8.
func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"\ud83d\ude00",null,true]}`, `{"a":1,"a":2}`, `[[[]]]`, `"\u0000"`, `-0`, `01`, `1e`, "\"\xff\"", `{"a":}`, ` 1 `, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, _, err := decodeJSON(text, false)
		var want any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		valid := json.Valid(text) && utf8.Valid(text)
		switch {
		case err == nil:
			require.True(t, json.Valid(text), "%q", text)
			require.NoError(t, decoder.Decode(&want))
			require.Equal(t, want, value)
		case valid:
			require.ErrorContains(t, err, "nests more than")
		}
		if err != nil {
			line, column := rawjson.Place(text, err.(*syntaxError).offset)
			require.Positive(t, line)
			require.Positive(t, column)
		}
	})
}
