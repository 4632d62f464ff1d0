// Package openapi holds the contracts as documents: openrpc.json describes the
// custom destination protocol v1 with a JSON Schema for the params and the
// result of each of its six methods (spec 4.2). The document is embedded, and
// what is sent and answered can be validated against it.
//
// It refuses to know how calls are made, sent or judged: it takes raw JSON and
// says what is wrong with it.
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
