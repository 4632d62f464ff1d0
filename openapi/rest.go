package openapi

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:embed openapi.yaml
var restYAML []byte

// REST is a copy of the OpenAPI 3.0.3 document of the REST API v1, in YAML.
func REST() []byte { return bytes.Clone(restYAML) }

// RESTJSON is a copy of the same document in JSON.
func RESTJSON() []byte { return bytes.Clone(restJSON()) }

// Operation is one operation of the REST API (spec 4) as the document has it.
// It is safe for parallel use.
type Operation struct {
	// ID is the operationId, Method in capitals, Path relative to the base path
	// with its parameters in braces.
	ID, Method, Path string
	Summary, Tag     string
	// Auth is the token that the operation takes: "workspace", "organization", or
	// "" for none (spec 5.1).
	Auth string
	// Extension means that the specification does not have the operation;
	// ExtensionSource is its origin.
	Extension       bool
	ExtensionSource string
	// DeprecatedSince is zero for an operation that is not deprecated.
	DeprecatedSince time.Time
	// Statuses are what the operation answers, ascending: without 405, which
	// belongs to the other methods of its path, and without failures of the
	// service (5xx).
	Statuses              []int
	HasBody, BodyRequired bool

	path      []parameter
	query     []parameter
	body      *openapi3.Schema
	responses map[string]*openapi3.Response
	examples  []Example
}

// TakesQuery reports whether the operation has a query parameter of this name.
func (o *Operation) TakesQuery(name string) bool {
	return slices.ContainsFunc(o.query, func(p parameter) bool { return p.name == name })
}

// Example is a body that the document shows: Status 0 means a request.
type Example struct {
	Name   string
	Status int
	Body   []byte
}

// Operations lists the operations in the order of the document.
func Operations() []*Operation { return slices.Clone(rest().operations) }

// Examples are the bodies that the document shows for the operation, requests
// first, then by status and name.
func (o *Operation) Examples() []Example { return slices.Clone(o.examples) }

// typical is the name of the example that every request body has.
const typical = "typical"

// RequestExample is the typical example of a request body, nil where the
// operation has none.
func (o *Operation) RequestExample() []byte {
	for _, e := range o.examples {
		if e.Status == 0 && e.Name == typical {
			return bytes.Clone(e.Body)
		}
	}
	return nil
}

// Difference is one switch between the dialects of the service: what each does,
// why, and the operations or schemas (JSON pointers) that it touches.
type Difference struct {
	Name   string   `json:"name"`
	Spec   string   `json:"spec"`
	Live   string   `json:"live"`
	Source string   `json:"source"`
	Places []string `json:"places"`
}

// Differences lists the x-differences of the document in its order.
func Differences() []Difference {
	all := slices.Clone(rest().differences)
	for i := range all {
		all[i].Places = slices.Clone(all[i].Places)
	}
	return all
}

// RESTProblem is one thing that is wrong with a request.
type RESTProblem struct {
	// Place is query.page, path.sync_id, header.Content-Type, body, or query for
	// one that cannot be read at all.
	Place string
	// Field is the place in the words of the payload, such as
	// mappings[2].from.data, or the name of the parameter; "" for the whole.
	Field string
	// Message is a phrase that follows the field: "must be one of asc, desc". It
	// never holds the value of a credential.
	Message string
	// Unknown: the document has no such field or parameter. Missing: something
	// required is not there. Malformed: it cannot be read as what it should be.
	// Loose: another form means the same, an id as a text of digits or a boolean of
	// a query as True or 1; the live dialect takes it (NumberIDs).
	Unknown, Missing, Malformed, Loose bool
}

// OfBody reports whether the problem is about the body, and not about the path,
// the query or a header.
func (p RESTProblem) OfBody() bool { return p.Place == placeBody }

// TopLevel reports whether the problem is about a field of the body itself and
// not about one below it. The live dialect forgives an update of a sync those
// that are Missing (x-differences partial-sync-update).
func (p RESTProblem) TopLevel() bool {
	return p.Place == placeBody && p.Field != "" && !strings.ContainsAny(p.Field, ".[")
}

// String is the place and the message.
func (p RESTProblem) String() string {
	if p.Place == placeBody && p.Field != "" {
		return p.Field + " " + p.Message
	}
	return p.Place + " " + p.Message
}
