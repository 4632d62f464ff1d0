package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/destkit/destkit/openapi"
)

// Document is the content of the OpenRPC document, for pages that people read.
type Document struct {
	// Description is about every call.
	Description string
	Methods     []Method
	Errors      []Error
}

// Method is one method of the custom destination protocol.
type Method struct {
	Name, Phase, Summary, Description string
	// Params and Result are flat lists of all members, outer ones first.
	Params, Result []Member
	Examples       []Example
}

// Member is one member of params or of a result.
type Member struct {
	// Path names the member from the top, such as "objects[].label"; FIELD means
	// any key of an object whose keys are names of fields.
	Path     string
	Type     string
	Required bool
	// Description is a sentence or empty.
	Description string
}

// Example is one call with its result.
type Example struct {
	Name, Description string
	// Params and Result are JSON, members in the order of the document.
	Params, Result json.RawMessage
}

// Error is one kind of error object.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// ReadDocument returns the embedded OpenRPC document in the form that people read.
// The document is part of the program, so a fault in it is a fault of the program
// and panics.
func ReadDocument() *Document {
	p, err := readDocument()
	if err != nil {
		panic(fmt.Sprintf("protocol: %v", err))
	}
	return p
}

var readDocument = sync.OnceValues(func() (*Document, error) { return newDocument(openapi.OpenRPC()) })

// rpcDocument is the part of an OpenRPC document that a page shows.
type rpcDocument struct {
	Info struct {
		Description string `json:"description"`
	} `json:"info"`
	Methods []struct {
		Name        string `json:"name"`
		Summary     string `json:"summary"`
		Description string `json:"description"`
		Tags        []struct {
			Name string `json:"name"`
		} `json:"tags"`
		Params rpcSchema `json:"x-params"`
		Result struct {
			Schema rpcSchema `json:"schema"`
		} `json:"result"`
		Examples []struct {
			Name        string     `json:"name"`
			Description string     `json:"description"`
			Params      []rpcValue `json:"params"`
			Result      rpcValue   `json:"result"`
		} `json:"examples"`
	} `json:"methods"`
	Components struct {
		Errors  map[string]Error     `json:"errors"`
		Schemas map[string]rpcSchema `json:"schemas"`
	} `json:"components"`
}

type rpcValue struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// rpcSchema is the part of JSON Schema that the document uses.
type rpcSchema struct {
	Ref         string               `json:"$ref"`
	Type        rpcTypes             `json:"type"`
	Enum        []json.RawMessage    `json:"enum"`
	Minimum     *int                 `json:"minimum"`
	Description string               `json:"description"`
	Required    []string             `json:"required"`
	Properties  map[string]rpcSchema `json:"properties"`
	Items       *rpcSchema           `json:"items"`
	Additional  json.RawMessage      `json:"additionalProperties"`
	// See names the method whose part of the page lists the members already.
	See string `json:"x-see"`
}

// rpcTypes is one word or a list of them.
type rpcTypes []string

func (w *rpcTypes) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return json.Unmarshal(text, (*[]string)(w))
	}
	*w = rpcTypes{""}
	return json.Unmarshal(text, &(*w)[0])
}

func newDocument(document []byte) (*Document, error) {
	var doc rpcDocument
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("decode openrpc document: %w", err)
	}
	p := &Document{Description: doc.Info.Description}
	for _, m := range doc.Methods {
		method := Method{Name: m.Name, Summary: m.Summary, Description: m.Description}
		for _, tag := range m.Tags {
			method.Phase = tag.Name
		}
		method.Params = doc.members(nil, "", m.Params)
		method.Result = doc.members(nil, "", m.Result.Schema)
		for _, e := range m.Examples {
			method.Examples = append(method.Examples, Example{
				Name: e.Name, Description: e.Description, Params: paramsOf(e.Params), Result: e.Result.Value,
			})
		}
		p.Methods = append(p.Methods, method)
	}
	p.Errors = slices.SortedFunc(maps.Values(doc.Components.Errors), func(a, b Error) int { return a.Code - b.Code })
	return p, nil
}

// paramsOf joins the params of an example, each with its name, into one object.
func paramsOf(list []rpcValue) json.RawMessage {
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = strconv.Quote(p.Name) + ":" + string(p.Value)
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

// resolve follows a reference; a description next to it is more specific.
func (d *rpcDocument) resolve(s rpcSchema) rpcSchema {
	name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/")
	if !ok {
		return s
	}
	target := d.Components.Schemas[name]
	if s.Description != "" {
		target.Description = s.Description
	}
	return target
}

// members appends the members of an object, the required ones in the order of the
// document, then the others by name, each followed by its content.
func (d *rpcDocument) members(to []Member, above string, s rpcSchema) []Member {
	s = d.resolve(s)
	names := slices.Clone(s.Required)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if above != "" {
		above += "."
	}
	for i, name := range names {
		to = d.member(to, above+name, d.resolve(s.Properties[name]), i < len(s.Required))
	}
	return to
}

func (d *rpcDocument) member(to []Member, path string, s rpcSchema, required bool) []Member {
	to = append(to, Member{Path: path, Type: d.typeOf(s), Required: required, Description: s.Description})
	if s.See != "" {
		return to
	}
	if s.Items != nil {
		to = d.members(to, path+"[]", *s.Items)
	}
	var keyed rpcSchema
	if len(s.Additional) > 0 && json.Unmarshal(s.Additional, &keyed) == nil {
		to = d.members(to, path+".FIELD", keyed)
	}
	return d.members(to, path, s)
}

// typeOf names the type of a value for people: "array of string", "integer ≥ 1",
// "upsert | insert".
func (d *rpcDocument) typeOf(s rpcSchema) string {
	if len(s.Enum) > 0 {
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = strings.Trim(string(v), `"`)
		}
		return strings.Join(values, " | ")
	}
	name := strings.Join(s.Type, " | ")
	if s.Items != nil && len(s.Type) == 1 {
		name = "array of " + strings.TrimSuffix(d.typeOf(d.resolve(*s.Items)), " ")
	}
	if s.Minimum != nil {
		name += " ≥ " + strconv.Itoa(*s.Minimum)
	}
	return name
}
