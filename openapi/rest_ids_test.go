package openapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// TestNumberIDs: texts of digits at the places of ids become numbers, and
// nothing else changes.
func TestNumberIDs(t *testing.T) {
	const object = `"object":{"type":"dataset","id":61}`
	for _, tc := range []struct{ id, body, want string }{
		{"createSync", syncWith(`"connection_id":12`, `"connection_id":"12"`), syncWith("", "")},
		{"createSync", syncWith(object, `"object":{"type":"dataset","id":"061"}`), syncWith("", "")},
		{"createSync", syncWith(object, `"object":{"type":"model","id":"9223372036854775807","name":"7"}`), syncWith(object, `"object":{"type":"model","id":9223372036854775807,"name":"7"}`)},
		{"createSync", syncWith(`"operation"`, `"filter_segment_id":"300","operation"`), syncWith(`"operation"`, `"filter_segment_id":300,"operation"`)},
		{"createSync", syncWith(`"operation"`, `"triggers":{"sync_sequence":{"sync_id":"5"},"dbt_cloud":{"project_id":"1","job_id":"2"}},"operation"`), syncWith(`"operation"`, `"triggers":{"sync_sequence":{"sync_id":5},"dbt_cloud":{"project_id":"1","job_id":"2"}},"operation"`)},
		{"createSync", syncWith(`"to":"name"`, `"to":"name","position":"3"`), syncWith(`"to":"name"`, `"to":"name","position":"3"`)},
		{"createSync", syncWith(`"connection_id":12`, `"connection_id":"9223372036854775808"`), syncWith(`"connection_id":12`, `"connection_id":"9223372036854775808"`)},
		{"createSync", syncWith(`"connection_id":12`, `"connection_id":"-12"`), syncWith(`"connection_id":12`, `"connection_id":"-12"`)},
		{"createDataset", `{"name":"1","source_id":"7","query":"SELECT 1","id":"5"}`, `{"name":"1","source_id":7,"query":"SELECT 1","id":"5"}`},
		{"createInvitation", `{"email":"a@example.com","role":"member","workspaces":[{"id":"1","role":"viewer"},{"id":2,"role":"viewer"},{"id":"3","role":"viewer"}]}`, `{"email":"a@example.com","role":"member","workspaces":[{"id":1,"role":"viewer"},{"id":2,"role":"viewer"},{"id":3,"role":"viewer"}]}`},
		// Undescribed data is the client's own.
		{"createTopic", `{"name":"t","sample_message":{"id":"5","user_id":"6"}}`, `{"name":"t","sample_message":{"id":"5","user_id":"6"}}`},
		{"createSource", `{"connection":{"type":"postgres","credentials":{"client_id":"7"}}}`, `{"connection":{"type":"postgres","credentials":{"client_id":"7"}}}`},
		{"createSync", `{`, `{`},
		{"createSync", ``, ``},
		{"createSync", `{"source_attributes":{"connection_id":"1","connection_id":"2"}}`, `{"source_attributes":{"connection_id":"1","connection_id":"2"}}`},
		{"listSyncs", `{"id":"5"}`, `{"id":"5"}`},
	} {
		got := string(findOperation(tc.id).NumberIDs([]byte(tc.body)))
		if json.Valid([]byte(tc.want)) {
			require.JSONEq(t, tc.want, got)
		} else {
			require.Equal(t, tc.want, got)
		}
	}
	// Numbers that no integer holds, and letters that HTML knows, stay as they are.
	got := string(findOperation("createSync").NumberIDs([]byte(syncWith(`"connection_id":12,"object":"restaurant"`, `"connection_id":"12","object":"<&>","x":1.10e400`))))
	for _, part := range []string{`"<&>"`, `1.10e400`, `"connection_id":12`} {
		require.Contains(t, got, part)
	}
}

// TestLooseProblems: only ids and booleans of a query have another form that the
// live dialect takes.
func TestLooseProblems(t *testing.T) {
	loose := func(problems []RESTProblem) (fields []string) {
		for _, p := range problems {
			if p.Loose {
				fields = append(fields, p.Place+" "+p.Field)
			}
		}
		return fields
	}
	body := syncWith(`"connection_id":12`, `"connection_id":"12","lead_union_insert_to":5`)
	body = strings.Replace(body, `"operation"`, `"schedule_hour":"5","cohort_id":"x","filter_segment_id":"9","operation"`, 1)
	require.Equal(t, []string{"body destination_attributes.connection_id", "body filter_segment_id"}, loose(problemsOf(t, "createSync", "", "", body)))
	require.Equal(t, []string{"query.force_full_sync force_full_sync"}, loose(problemsOf(t, "triggerSync", "force_full_sync=True", "1", "")))
	require.Empty(t, loose(problemsOf(t, "triggerSync", "force_full_sync=yes", "1", "")))
	require.Empty(t, loose(problemsOf(t, "listSyncs", "page=True&order=1&per_page=x", "", "")))
	require.Empty(t, loose(problemsOf(t, "fetchSync", "", "true", "")))
	for text, want := range map[string]bool{"true": true, "TRUE": true, "tRuE": true, "1": true, "false": false, "False": false, "0": false} {
		got, ok := parseBoolean(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "t", "f", "yes", "no", "on", "2", "-1", " true", "01"} {
		_, ok := parseBoolean(text)
		require.False(t, ok, text)
	}
}

// TestPlacesOfIDs: every place of a request that takes an id and is an integer is
// named by the difference, and the other way round.
func TestPlacesOfIDs(t *testing.T) {
	want := map[*openapi3.Schema]string{}
	var walk func(where string, ref *openapi3.SchemaRef)
	seen := map[*openapi3.Schema]bool{}
	walk = func(where string, ref *openapi3.SchemaRef) {
		if ref == nil || ref.Value == nil {
			return
		}
		s := ref.Value
		name := where[strings.LastIndexAny(where, ".")+1:]
		if s.Type.Is(openapi3.TypeInteger) && (name == "id" || strings.HasSuffix(name, "_id")) {
			want[s] = where
		}
		if seen[s] {
			return
		}
		seen[s] = true
		for key, property := range s.Properties {
			walk(where+"."+key, property)
		}
		walk(where+"[]", s.Items)
		for _, alternative := range append(append(openapi3.SchemaRefs{}, s.OneOf...), s.AnyOf...) {
			walk(where, alternative)
		}
	}
	for _, o := range Operations() {
		if o.body != nil {
			walk(o.ID, &openapi3.SchemaRef{Value: o.body})
		}
	}
	named := map[*openapi3.Schema]bool{}
	for _, d := range Differences() {
		if d.Name != "ids-as-text" {
			continue
		}
		for _, pointer := range d.Places {
			steps := strings.Split(strings.TrimPrefix(pointer, "#/components/schemas/"), "/")
			s := rest().doc.Components.Schemas[steps[0]].Value
			for _, key := range steps[1:] {
				switch key {
				case "properties":
				case "items":
					s = s.Items.Value
				default:
					s = s.Properties[key].Value
				}
			}
			named[s] = true
			require.Contains(t, want, s, pointer)
		}
	}
	for s, where := range want {
		require.True(t, named[s], "%s takes an id and is not named", where)
	}
}
