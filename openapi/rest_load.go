package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// restDocument is the compiled document of the REST API.
type restDocument struct {
	doc         *openapi3.T
	operations  []*Operation
	differences []Difference
}

// rest compiles the embedded document once, at its first use. The document is
// part of the program, so a fault in it is a fault of the program and panics.
var rest = sync.OnceValue(func() *restDocument { return compileREST(restYAML) })

// faulty panics with a fault in a document; nil is none.
func faulty(err error, format string, args ...any) {
	if err != nil {
		panic(fmt.Errorf("openapi: "+format+": %w", append(args, err)...))
	}
}

// compileREST reads an OpenAPI document and prepares each of its operations.
func compileREST(text []byte) *restDocument {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	faulty(err, "load openapi document")
	if doc.Components != nil {
		seen := map[*openapi3.Schema]bool{}
		for _, schema := range doc.Components.Schemas {
			takeNull(schema, seen)
		}
	}
	d := &restDocument{doc: doc}
	extension(doc.Extensions, "x-differences", &d.differences)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			d.operations = append(d.operations, compileOperation(method, path, item, op))
		}
	}
	// Maps have no order, the text has. Kin's own record of lines makes loading
	// half as slow again.
	line := func(o *Operation) int { return bytes.Index(text, []byte("operationId: "+o.ID+"\n")) }
	slices.SortFunc(d.operations, func(a, b *Operation) int {
		return cmp.Or(cmp.Compare(line(a), line(b)), strings.Compare(a.ID, b.ID))
	})
	return d
}

// takeNull lets every schema without a type take null. OpenAPI 3.0.3 means it so
// and wants nullable next to a type only; kin takes null only where it reads
// nullable.
func takeNull(ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	if ref == nil || seen[ref.Value] {
		return
	}
	s := ref.Value
	seen[s] = true
	alternatives := slices.Concat(s.OneOf, s.AnyOf, s.AllOf)
	if s.Type.IsEmpty() && len(alternatives) == 0 {
		s.Nullable = true
	}
	for _, property := range s.Properties {
		takeNull(property, seen)
	}
	for _, inner := range append(alternatives, s.Items, s.AdditionalProperties.Schema) {
		takeNull(inner, seen)
	}
}

// restJSON is the document in JSON; only who serves it needs it. It is read
// again, since compiling changes what kin checks with.
var restJSON = sync.OnceValue(func() []byte {
	doc, err := openapi3.NewLoader().LoadFromData(restYAML)
	faulty(err, "load openapi document")
	text, err := doc.MarshalJSON()
	faulty(err, "write document as json")
	return text
})

// compileOperation prepares one operation, so that a check looks nothing up.
// It refuses unknown constructs: a document with more rules than the checks
// would promise too much.
func compileOperation(method, path string, item *openapi3.PathItem, op *openapi3.Operation) *Operation {
	o := &Operation{ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, responses: map[string]*openapi3.Response{}}
	if len(op.Tags) > 0 {
		o.Tag = op.Tags[0]
	}
	o.extensions(op)
	// Parameters of the path are next to its methods, those of the query in each.
	for _, ref := range slices.Concat(item.Parameters, op.Parameters) {
		p, err := compileParameter(ref.Value)
		faulty(err, "parameter %q of %s", ref.Value.Name, o.ID)
		if ref.Value.In == openapi3.ParameterInPath {
			o.path = append(o.path, p)
		} else {
			o.query = append(o.query, p)
		}
	}
	if op.RequestBody != nil {
		o.HasBody, o.BodyRequired = true, op.RequestBody.Value.Required
		media := o.jsonOf("request body", op.RequestBody.Value.Content)
		o.body = media.Schema.Value
		o.addExamples(0, media)
	}
	o.compileResponses(op)
	return o
}

// jsonOf is the one form that a body has.
func (o *Operation) jsonOf(what string, content openapi3.Content) *openapi3.MediaType {
	media := content.Get(contentJSON)
	if media == nil {
		panic(fmt.Errorf("openapi: the %s of %s is not %s", what, o.ID, contentJSON))
	}
	return media
}

// compileResponses keeps the responses by their key, which is a status or 5XX.
func (o *Operation) compileResponses(op *openapi3.Operation) {
	all := op.Responses.Map()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		response := all[key].Value
		media := o.jsonOf("response "+key, response.Content)
		o.responses[key] = response
		status, err := strconv.Atoi(key)
		if err != nil { // 5XX: no test of the contract can request it
			continue
		}
		// 405 answers the methods that a path does not have, so no operation does.
		if status != http.StatusMethodNotAllowed {
			o.Statuses = append(o.Statuses, status)
		}
		o.addExamples(status, media)
	}
}

// addExamples keeps the examples of a body as JSON text, by their names.
func (o *Operation) addExamples(status int, media *openapi3.MediaType) {
	for _, name := range slices.Sorted(maps.Keys(media.Examples)) {
		text, err := json.Marshal(media.Examples[name].Value.Value)
		faulty(err, "example %q of %s", name, o.ID)
		o.examples = append(o.examples, Example{Name: name, Status: status, Body: text})
	}
}

// extensions reads the document's extensions of OpenAPI.
func (o *Operation) extensions(op *openapi3.Operation) {
	var since string
	var origin struct{ Source string }
	for name, v := range map[string]any{"x-auth": &o.Auth, "x-deprecated-since": &since, "x-extension": &origin} {
		extension(op.Extensions, name, v)
	}
	o.Extension, o.ExtensionSource = origin.Source != "", origin.Source
	if since != "" {
		var err error
		o.DeprecatedSince, err = time.Parse(time.DateOnly, since)
		faulty(err, "read x-deprecated-since")
	}
}

// extension decodes an x- key into v; one that is not there leaves v alone.
func extension(all map[string]any, name string, v any) {
	if raw, ok := all[name]; ok {
		text, err := json.Marshal(raw)
		faulty(err, "read %s", name)
		faulty(json.Unmarshal(text, v), "read %s", name)
	}
}
