package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

func TestRESTDocumentIsValid(t *testing.T) {
	doc := rest().doc
	require.NoError(t, doc.Validate(context.Background()), "kin's own check, examples included")
	require.Equal(t, "3.0.3", doc.OpenAPI)
	require.Equal(t, "/api/v1", doc.Servers[0].URL)
	require.ElementsMatch(t, []string{"bearer", "basic"}, slices.Collect(maps.Keys(doc.Components.SecuritySchemes)))
}

func TestRESTJSONIsTheSameDocument(t *testing.T) {
	again := compileREST(RESTJSON())
	require.Len(t, again.operations, len(Operations()))
	require.Equal(t, Differences(), again.differences)

	clear(REST())
	clear(RESTJSON())
	require.True(t, json.Valid(RESTJSON()), "callers get copies")
	require.Contains(t, string(REST()), "openapi: 3.0.3")
}

// pointers collects every $ref and every discriminator's target.
func pointers(value any, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if text, ok := inner.(string); ok && (key == "$ref" || strings.HasPrefix(text, "#/components/schemas/")) {
				into[text] = true
			}
			pointers(inner, into)
		}
	case []any:
		for _, inner := range v {
			pointers(inner, into)
		}
	}
}

// tree is the document as plain JSON values.
func tree(t *testing.T) map[string]any {
	var doc map[string]any
	require.NoError(t, json.Unmarshal(RESTJSON(), &doc))
	return doc
}

func TestNoComponentIsUnused(t *testing.T) {
	doc := tree(t)
	delete(doc, "x-differences")
	used := map[string]bool{}
	pointers(doc, used)
	for kind, all := range doc["components"].(map[string]any) {
		if kind == "securitySchemes" {
			continue
		}
		for name := range all.(map[string]any) {
			require.True(t, used["#/components/"+kind+"/"+name], "%s %s is used nowhere", kind, name)
		}
	}
}

// TestOperationsAreAll holds the operations against the list of the API: spec 4
// and the published extensions.
func TestOperationsAreAll(t *testing.T) {
	var specified, extensions, organization []string
	for i, o := range Operations() {
		require.Same(t, o, findOperation(o.ID))
		require.Same(t, o, Operations()[i])
		require.NotEmpty(t, o.Summary)
		require.NotEmpty(t, o.Tag)
		line := o.Method + " " + o.Path
		if o.Extension {
			require.NotEmpty(t, o.ExtensionSource)
			extensions = append(extensions, line)
		} else {
			specified = append(specified, line)
		}
		switch o.Auth {
		case "organization":
			organization = append(organization, o.ID)
		case "":
			require.Equal(t, "fetchRoot", o.ID)
		default:
			require.Equal(t, "workspace", o.Auth)
		}
	}
	require.Nil(t, findOperation("fetchNothing"))
	require.Equal(t, []string{
		"GET /destinations", "POST /destinations", "GET /destinations/{destination_id}", "PATCH /destinations/{destination_id}",
		"GET /destinations/{destination_id}/objects", "GET /destinations/{destination_id}/objects/{object_full_name}",
		"GET /syncs", "GET /syncs/{sync_id}", "PATCH /syncs/{sync_id}", "GET /syncs/{sync_id}/sync_runs", "GET /source_types",
		"POST /sources/{source_id}/models", "POST /sources/{source_id}/topics", "PATCH /sources/{source_id}/topics/{topic_id}",
		"POST /invitations", "PATCH /invitations/{invitation_id}", "POST /workspaces",
		"POST /workspaces/{workspace_id}/invitations", "PUT /workspaces/{workspace_id}/invitations/{invitation_id}", "GET /users",
	}, specified)
	require.Len(t, extensions, 76)
	require.Len(t, organization, 18)
}

// TestStatuses: the statuses of each kind of operation (spec 7.1).
func TestStatuses(t *testing.T) {
	for _, o := range Operations() {
		want := map[int]bool{http.StatusBadRequest: len(o.path)+len(o.query) > 0 || o.HasBody, http.StatusRequestEntityTooLarge: o.HasBody}
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests} {
			want[status] = o.Auth != ""
		}
		want[http.StatusNotFound] = strings.Contains(o.Path, "{")
		want[http.StatusMethodNotAllowed] = false // of the path, not of the operation
		for status, answered := range want {
			require.Equal(t, answered, slices.Contains(o.Statuses, status), "%s %d", o.ID, status)
		}
		require.True(t, slices.IsSorted(o.Statuses))
		require.Contains(t, o.responses, "405")
		require.Contains(t, o.responses, "5XX")
	}
	require.Equal(t, []int{200}, findOperation("fetchRoot").Statuses)
	require.Equal(t, []int{200, 400, 401, 403, 404, 409, 413, 429}, findOperation("updateSync").Statuses)
	require.Equal(t, []int{201, 400, 401, 403, 404, 413, 429}, findOperation("createModel").Statuses)
}

func TestDeprecations(t *testing.T) {
	for _, o := range Operations() {
		require.Equal(t, o.Tag == "models", !o.DeprecatedSince.IsZero(), o.ID)
	}
	require.Equal(t, "2023-01-01", findOperation("createModel").DeprecatedSince.Format("2006-01-02"))
	for _, name := range []string{"HighWaterMarkAttributes", "FailedRunNotifications", "FailedRecordNotifications", "FailedRecordThreshold", "Model"} {
		require.True(t, rest().doc.Components.Schemas[name].Value.Deprecated, name) // spec 9
	}
	walkSchemas(func(where string, s *openapi3.Schema) {
		require.Equal(t, s.Deprecated, s.Extensions["x-deprecated-since"] != nil, where)
	})
}

// TestPlacesExist: each place of a difference is an operation or a component.
func TestPlacesExist(t *testing.T) {
	var names []string
	for _, d := range Differences() {
		names = append(names, d.Name)
		require.NotEmpty(t, d.Spec)
		require.NotEmpty(t, d.Live)
		require.NotEmpty(t, d.Source)
		require.NotEmpty(t, d.Places)
		for _, p := range d.Places {
			pointer, ok := strings.CutPrefix(p, "#/")
			if !ok {
				require.NotNil(t, findOperation(p), "%s: %s", d.Name, p)
				continue
			}
			var at any = tree(t)
			for _, key := range strings.Split(pointer, "/") {
				inner, found := at.(map[string]any)[key]
				require.True(t, found, "%s: %s", d.Name, p)
				at = inner
			}
		}
	}
	require.Equal(t, []string{
		"sync-status-case", "partial-sync-update", "error-status-integer", "error-problems", "rules-as-list", "next-in-every-list",
		"bare-keys", "update-only-properties", "unknown-fields", "organization-endpoints-deprecated",
		"ids-as-text", "query-booleans", "unset-retention", "schedule-placeholders", "update-needs-identifier-only", "failed-run-nulls",
		"manual-run-unscheduled", "engine-of-any-type", "credentials-coerced",
	}, names)
	Differences()[0].Places[0] = "changed"
	require.NotEqual(t, "changed", Differences()[0].Places[0])
}

// walkSchemas visits every schema of the document once with its place.
func walkSchemas(visit func(where string, s *openapi3.Schema)) {
	seen := map[*openapi3.Schema]bool{}
	var walk func(where string, ref *openapi3.SchemaRef)
	walk = func(where string, ref *openapi3.SchemaRef) {
		if ref == nil || seen[ref.Value] {
			return
		}
		s := ref.Value
		seen[s] = true
		visit(where, s)
		for name, property := range s.Properties {
			walk(where+"."+name, property)
		}
		walk(where+"[]", s.Items)
		walk(where+".*", s.AdditionalProperties.Schema)
		for i, alternative := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
			walk(fmt.Sprintf("%s<%d>", where, i), alternative)
		}
	}
	doc := rest().doc
	for name, ref := range doc.Components.Schemas {
		walk(name, ref)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status, response := range op.Responses.Map() {
				walk(method+" "+path+" "+status, response.Value.Content.Get(contentJSON).Schema)
			}
		}
	}
}

// TestEverythingIsDescribed: descriptions everywhere, and objects
// closed unless they are maps.
func TestEverythingIsDescribed(t *testing.T) {
	walkSchemas(func(where string, s *openapi3.Schema) {
		alternative := strings.HasSuffix(where, ">") || strings.HasSuffix(where, "[]") || strings.HasSuffix(where, ".*")
		require.True(t, alternative || s.Description != "", "%s has no description", where)
		if s.Type.Is(openapi3.TypeObject) {
			open := s.AdditionalProperties
			require.True(t, open.Has != nil || open.Schema != nil, "%s does not say whether it has other fields", where)
			require.True(t, open.Has == nil || !*open.Has || len(s.Properties) == 0, "%s is open", where)
		}
		for _, name := range s.Required {
			require.Contains(t, s.Properties, name, where)
		}
		// Kin refuses null where a schema has neither a type nor nullable.
		require.True(t, s.Nullable || !s.Type.IsEmpty() || len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) > 0, "%s takes no null", where)
	})
	doc := rest().doc
	for name, p := range doc.Components.Parameters {
		require.NotEmpty(t, p.Value.Description, name)
		require.NotNil(t, p.Value.Example, name)
	}
}

// TestMomentsOfExamplesAreOnTheWireSo: the document shows what the service
// writes (spec 2).
func TestMomentsOfExamplesAreOnTheWireSo(t *testing.T) {
	moment := regexp.MustCompile(`"20\d\d-[^"]*"`)
	wire := regexp.MustCompile(`^"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"$`)
	found := 0
	for _, o := range Operations() {
		for _, e := range o.Examples() {
			for _, text := range moment.FindAllString(string(e.Body), -1) {
				require.Regexp(t, wire, text)
				found++
			}
		}
	}
	require.NotZero(t, found)
}

func TestCompileRESTRefuses(t *testing.T) {
	const head = "openapi: 3.0.3\ninfo: {title: t, version: v}\n"
	const op = head + "paths:\n  /a:\n    get:\n      operationId: a\n"
	const good = "      responses:\n        '200': {description: d, content: {application/json: {schema: {}}}}\n"
	d := compileREST([]byte(op + good))
	require.Equal(t, []int{200}, d.operations[0].Statuses)
	for text, problem := range map[string]string{
		"{":                                    "load openapi document",
		head + "paths: {}\nx-differences: 5\n": "read x-differences",
		op + "      x-deprecated-since: soon\n" + good:                                                         "read x-deprecated-since",
		op + "      x-extension: here\n" + good:                                                                "read x-extension",
		op + "      responses:\n        '200': {description: d}\n":                                             "the response 200 of a is not application/json",
		op + "      requestBody: {content: {text/plain: {schema: {}}}}\n" + good:                               "the request body of a is not application/json",
		op + "      parameters: [{name: p, in: header, schema: {type: string}}]\n" + good:                      `parameter "p" of a: stands in header`,
		op + "      parameters: [{name: p, in: query, schema: {type: array, items: {type: string}}}]\n" + good: "more than the check of parameters knows",
		op + "      parameters: [{name: p, in: query, schema: {type: string, pattern: a}}]\n" + good:           "more than the check of parameters knows",
	} {
		require.ErrorContains(t, faultOf(func() { compileREST([]byte(text)) }), problem, text)
	}
}

// faultOf is what a document is refused for.
func faultOf(compile func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	compile()
	return nil
}

// findOperation finds an operation by its id; nil when there is none.
func findOperation(id string) *Operation {
	for _, o := range rest().operations {
		if o.ID == id {
			return o
		}
	}
	return nil
}
