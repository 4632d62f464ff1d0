package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documentURL names the document where its schemas refer to each other; it is
// never fetched.
const documentURL = "urn:destkit:openrpc"

// contract is the compiled pair of schemas of one method.
type contract struct {
	params, result *jsonschema.Schema
}

// contracts compiles the embedded document once. The document is part of the
// program, so a fault in it is a fault of the program and panics.
var contracts = sync.OnceValue(func() map[string]contract {
	all, err := compile(openRPC)
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	return all
})

// compile reads an OpenRPC document and compiles the schemas of its methods:
// x-params for the params as one object, result.schema for the result.
func compile(document []byte) (map[string]contract, error) {
	var doc struct {
		Methods []struct {
			Name string `json:"name"`
		} `json:"methods"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("decode openrpc document: %w", err)
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("decode openrpc document: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7) // the draft that OpenRPC prescribes
	if err := c.AddResource(documentURL, tree); err != nil {
		return nil, fmt.Errorf("add openrpc document: %w", err)
	}
	all := make(map[string]contract, len(doc.Methods))
	for i, m := range doc.Methods {
		var pair contract
		if pair.params, err = c.Compile(fmt.Sprintf("%s#/methods/%d/x-params", documentURL, i)); err != nil {
			return nil, fmt.Errorf("compile params of %s: %w", m.Name, err)
		}
		if pair.result, err = c.Compile(fmt.Sprintf("%s#/methods/%d/result/schema", documentURL, i)); err != nil {
			return nil, fmt.Errorf("compile result of %s: %w", m.Name, err)
		}
		all[m.Name] = pair
	}
	return all, nil
}
