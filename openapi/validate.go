package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// ErrMethod is the error of a method that is not one of the six (spec 4.2).
var ErrMethod = errors.New("unknown method")

// Problem is one place where a value violates the contract.
type Problem struct {
	// Path is a JSON pointer into the value, "" for the value itself.
	Path string
	// Message is one lower-case phrase.
	Message string
}

// InvalidError lists everything that is wrong with the params or the result of
// a call.
type InvalidError struct {
	Method string
	// Part is "params" or "result".
	Part string
	// Problems has at least one entry; they are sorted by path.
	Problems []Problem
}

// Error gives all problems in one line.
func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = e.Part + p.Path + ": " + p.Message
	}
	return "validate " + e.Method + ": " + strings.Join(texts, "; ")
}

// ValidateParams checks the params of a call against the contract strictly:
// required keys, no others, the right types. Beyond the schema, the plan of a
// sync_batch must have exactly one active identifier, and each key of its
// schema must be the field_api_name of its field. It does not look at what the
// records hold.
//
// The error is an *InvalidError, wraps ErrMethod for an unknown method, or
// reports where params is not JSON.
func ValidateParams(method string, params []byte) error {
	value, problems, err := check(method, params, func(c contract) *jsonschema.Schema { return c.params })
	if err != nil {
		return fmt.Errorf("validate params of %q: %w", method, err)
	}
	if len(problems) == 0 && method == methodSyncBatch {
		problems = planProblems(value)
	}
	return invalid(method, "params", problems)
}

// ValidateResult checks the result of a call against the contract: required
// keys and their types. Additional members pass, because the published
// examples have them. Which errors are possible: see ValidateParams.
func ValidateResult(method string, result []byte) error {
	_, problems, err := check(method, result, func(c contract) *jsonschema.Schema { return c.result })
	if err != nil {
		return fmt.Errorf("validate result of %q: %w", method, err)
	}
	return invalid(method, "result", problems)
}

// check decodes a text and matches it with a schema of the method.
func check(method string, text []byte, pick func(contract) *jsonschema.Schema) (value any, problems []Problem, err error) {
	c, ok := contracts()[method]
	if !ok {
		return nil, nil, ErrMethod
	}
	value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, nil, fmt.Errorf("decode json: %w", err)
	}
	err = pick(c).Validate(value)
	var failed *jsonschema.ValidationError
	if errors.As(err, &failed) {
		return value, leaves(nil, failed, message.NewPrinter(language.English)), nil
	}
	return value, nil, err
}

// leaves collects the causes that have no further cause: they name the place
// and the reason, their parents only repeat that something is wrong.
func leaves(to []Problem, e *jsonschema.ValidationError, p *message.Printer) []Problem {
	for _, cause := range e.Causes {
		to = leaves(to, cause, p)
	}
	if len(e.Causes) == 0 {
		to = append(to, Problem{Path: pointer(e.InstanceLocation), Message: e.ErrorKind.LocalizedString(p)})
	}
	return to
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// pointer writes a path as a JSON pointer (RFC 6901).
func pointer(tokens []string) string {
	var sb strings.Builder
	for _, t := range tokens {
		sb.WriteByte('/')
		sb.WriteString(pointerEscape.Replace(t))
	}
	return sb.String()
}

func invalid(method, part string, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return &InvalidError{Method: method, Part: part, Problems: slices.Compact(problems)}
}

const methodSyncBatch = "sync_batch"

// planProblems checks what no schema can say about a plan. The params have passed the
// schema, so that what they must have is there.
func planProblems(params any) []Problem {
	schema := member[map[string]any](member[map[string]any](params, "sync_plan"), "schema")
	var problems []Problem
	active := 0
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		if member[bool](schema[key], "active_identifier") {
			active++
		}
		if name := member[string](member[any](schema[key], "field"), "field_api_name"); name != key {
			problems = append(problems, Problem{
				Path:    pointer([]string{"sync_plan", "schema", key, "field", "field_api_name"}),
				Message: fmt.Sprintf("is %q under the key %q", name, key),
			})
		}
	}
	if active != 1 {
		problems = append(problems, Problem{
			Path:    "/sync_plan/schema",
			Message: fmt.Sprintf("has %d active identifiers, must have exactly one", active),
		})
	}
	return problems
}

// member is a member of an object, or the zero value where there is none of its type.
func member[T any](object any, name string) T {
	members, _ := object.(map[string]any)
	v, _ := members[name].(T)
	return v
}

// documentURL names the document where its schemas refer to each other; it is
// never fetched.
const documentURL = "urn:destkit:openrpc"

// contract is the compiled pair of schemas of one method.
type contract struct {
	params, result *jsonschema.Schema
}

// contracts compiles the embedded document once. The document is part of the
// program, so a fault in it is a fault of the program and panics.
var contracts = sync.OnceValue(func() map[string]contract { return compile(openRPC) })

// compile reads an OpenRPC document and compiles the schemas of its methods:
// x-params for the params as one object, result.schema for the result.
func compile(document []byte) map[string]contract {
	var doc struct {
		Methods []struct {
			Name string `json:"name"`
		} `json:"methods"`
	}
	faulty(json.Unmarshal(document, &doc), "decode openrpc document")
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	faulty(err, "decode openrpc document")
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7) // the draft that OpenRPC prescribes
	faulty(c.AddResource(documentURL, tree), "add openrpc document")
	all := make(map[string]contract, len(doc.Methods))
	for i, m := range doc.Methods {
		params, err := c.Compile(fmt.Sprintf("%s#/methods/%d/x-params", documentURL, i))
		faulty(err, "compile params of %s", m.Name)
		result, err := c.Compile(fmt.Sprintf("%s#/methods/%d/result/schema", documentURL, i))
		faulty(err, "compile result of %s", m.Name)
		all[m.Name] = contract{params, result}
	}
	return all
}
