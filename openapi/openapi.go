// Package openapi holds the contracts as documents: openrpc.json describes the
// custom destination protocol v1 with a JSON Schema for the params and the
// result of each of its six methods (spec 4.2); openapi.yaml describes the REST
// API v1 with each of its operations (spec 2 to 5 and 7 to 9). The documents are
// embedded, and requests and replies can be validated against them.
//
// It refuses to know how calls are made, routed, answered or judged: it takes
// requests, replies and raw JSON and reports what is wrong with them.
package openapi

import (
	"bytes"
	_ "embed"
)

//go:embed openrpc.json
var openRPC []byte

// OpenRPC is a copy of the OpenRPC 1.x document of the custom destination
// protocol v1.
func OpenRPC() []byte { return bytes.Clone(openRPC) }
