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
var rest = sync.OnceValue(func() *restDocument {
	d, err := compileREST(restYAML)
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	return d
})

// compileREST reads an OpenAPI document and prepares each of its operations.
func compileREST(text []byte) (*restDocument, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("load openapi document: %w", err)
	}
	if doc.Components != nil {
		seen := map[*openapi3.Schema]bool{}
		for _, schema := range doc.Components.Schemas {
			takeNull(schema, seen)
		}
	}
	d := &restDocument{doc: doc}
	if err := extension(doc.Extensions, "x-differences", &d.differences); err != nil {
		return nil, err
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			o, err := compileOperation(method, path, item, op)
			if err != nil {
				return nil, fmt.Errorf("compile %s %s: %w", method, path, err)
			}
			d.operations = append(d.operations, o)
		}
	}
	// Maps have no order, the text has. Kin's own record of lines makes loading
	// half as slow again.
	line := func(o *Operation) int { return bytes.Index(text, []byte("operationId: "+o.ID+"\n")) }
	slices.SortFunc(d.operations, func(a, b *Operation) int {
		return cmp.Or(cmp.Compare(line(a), line(b)), strings.Compare(a.ID, b.ID))
	})
	return d, nil
}

// takeNull lets every schema without a type take null. OpenAPI 3.0.3 means it so
// and wants nullable beside a type only; kin takes null only where it reads
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
	if err != nil {
		panic(fmt.Sprintf("openapi: load openapi document: %v", err))
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("openapi: write document as json: %v", err))
	}
	return text
})

// compileOperation prepares one operation, so that a check looks nothing up.
// What it does not understand it refuses: a document that says more than the
// checks hold would be a promise that is not kept.
func compileOperation(method, path string, item *openapi3.PathItem, op *openapi3.Operation) (*Operation, error) {
	o := &Operation{ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, responses: map[string]*openapi3.Response{}}
	if len(op.Tags) > 0 {
		o.Tag = op.Tags[0]
	}
	if err := o.extensions(op); err != nil {
		return nil, err
	}
	// Parameters of the path stand beside its methods, those of the query in each.
	for _, ref := range slices.Concat(item.Parameters, op.Parameters) {
		p, err := compileParameter(ref.Value)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", ref.Value.Name, err)
		}
		if ref.Value.In == openapi3.ParameterInPath {
			o.path = append(o.path, p)
		} else {
			o.query = append(o.query, p)
		}
	}
	if op.RequestBody != nil {
		o.HasBody, o.BodyRequired = true, op.RequestBody.Value.Required
		media := op.RequestBody.Value.Content.Get(contentJSON)
		if media == nil {
			return nil, fmt.Errorf("the request body is not %s", contentJSON)
		}
		o.body = media.Schema.Value
		if err := o.addExamples(0, media); err != nil {
			return nil, err
		}
	}
	return o, o.compileResponses(op)
}

// compileResponses keeps the responses by their key, which is a status or 5XX.
func (o *Operation) compileResponses(op *openapi3.Operation) error {
	all := op.Responses.Map()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		response := all[key].Value
		media := response.Content.Get(contentJSON)
		if media == nil {
			return fmt.Errorf("the response %s is not %s", key, contentJSON)
		}
		o.responses[key] = response
		status, err := strconv.Atoi(key)
		if err != nil { // 5XX: what no test of the contract can ask for
			continue
		}
		// 405 answers the methods that a path does not have, so no operation does.
		if status != http.StatusMethodNotAllowed {
			o.Statuses = append(o.Statuses, status)
		}
		if err := o.addExamples(status, media); err != nil {
			return err
		}
	}
	return nil
}

// addExamples keeps the examples of a body as JSON text, by their names.
func (o *Operation) addExamples(status int, media *openapi3.MediaType) error {
	for _, name := range slices.Sorted(maps.Keys(media.Examples)) {
		text, err := json.Marshal(media.Examples[name].Value.Value)
		if err != nil {
			return fmt.Errorf("example %q: %w", name, err)
		}
		o.examples = append(o.examples, Example{Name: name, Status: status, Body: text})
	}
	return nil
}

// extensions reads what the document says beyond OpenAPI.
func (o *Operation) extensions(op *openapi3.Operation) error {
	var since string
	var origin struct{ Source string }
	for name, v := range map[string]any{"x-auth": &o.Auth, "x-deprecated-since": &since, "x-extension": &origin} {
		if err := extension(op.Extensions, name, v); err != nil {
			return err
		}
	}
	o.Extension, o.ExtensionSource = origin.Source != "", origin.Source
	if since == "" {
		return nil
	}
	var err error
	if o.DeprecatedSince, err = time.Parse(time.DateOnly, since); err != nil {
		return fmt.Errorf("read x-deprecated-since: %w", err)
	}
	return nil
}

// extension decodes an x- key into v; one that is not there leaves v alone.
func extension(all map[string]any, name string, v any) error {
	raw, ok := all[name]
	if !ok {
		return nil
	}
	text, err := json.Marshal(raw)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
