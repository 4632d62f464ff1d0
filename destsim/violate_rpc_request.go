package destsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// requestViolations are requests that are read too leniently, too strictly or
// not at all (RPC-010 to RPC-013, RPC-016, RPC-019).
var requestViolations = []violation{
	breaks("RPC-010", "a body that ends in the middle of the JSON is never answered", written(endsEarly, func(c *call, h *httpReply) {
		c.sleep(c.sim.delays.Hang)
		h.raw = []byte{}
	})),
	breaks("RPC-010.2", "a body that ends in the middle of the JSON is answered like test_connection, with a null id",
		called(endsEarly, testConnection)),
	breaks("RPC-010.3", "a body that ends in the middle of the JSON closes the connection without a response",
		written(endsEarly, unanswered)),
	breaks("RPC-011", "a body without a method is answered like test_connection",
		called(func(c *call) bool { return c.err != nil && c.err.Code == rpc.CodeInvalidRequest && lacksMethod(c.body) }, testConnection)),
	breaks("RPC-012", `list_fields without an object answers "fields":[]`,
		called(func(c *call) bool { return gives(c, rpc.MethodListFields) && lacksObject(c) },
			func(c *call) { c.answer(fieldsResult{[]rpc.Field{}}) })),
	breaks("RPC-012.2", "list_fields without an object closes the connection without a response",
		written(func(c *call) bool { return wrongParams(c, rpc.MethodListFields) && lacksObject(c) }, unanswered)),
	breaks("RPC-013", "list_objects with an unknown member in params or beside it answers an error -32602",
		called(func(c *call) bool {
			return gives(c, rpc.MethodListObjects) && (len(membersOf(c.params)) > 0 || hasUnknownMember(c.body))
		}, func(c *call) { c.fail(rpc.CodeInvalidParams, "invalid params: unknown member") })),
	breaks("RPC-016", "list_objects is unknown when key order, spaces or escapes of the request are not the published ones",
		called(func(c *call) bool { return gives(c, rpc.MethodListObjects) && !publishedForm(c) },
			func(c *call) { c.fail(rpc.CodeMethodNotFound, "method not found") })),
	breaks("RPC-019", "the method name is folded to lower case before it is looked up",
		called(func(c *call) bool { return c.err == nil }, func(c *call) { c.method = strings.ToLower(c.method) })),
}

// testConnection goes on as if test_connection had been called.
func testConnection(c *call) {
	c.method, c.params, c.err = rpc.MethodTestConnection, []byte("{}"), nil
}

// unanswered closes the connection without a byte.
func unanswered(_ *call, h *httpReply) { h.raw = []byte{} }

// endsEarly reports whether the body is the beginning of a JSON text and the
// caller was allowed to send it.
func endsEarly(c *call) bool {
	if c.err == nil || c.err.Code != rpc.CodeParseError || c.status != 200 || len(bytes.TrimSpace(c.body)) == 0 {
		return false
	}
	var v any
	return errors.Is(json.NewDecoder(bytes.NewReader(c.body)).Decode(&v), io.ErrUnexpectedEOF)
}

// wrongParams reports whether a call of that method is refused for its params.
func wrongParams(c *call, method string) bool {
	return c.method == method && c.err != nil && c.err.Code == rpc.CodeInvalidParams
}

// membersOf decodes an object, nil when it is none.
func membersOf(raw []byte) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

func lacksObject(c *call) bool { return membersOf(c.params)["object"] == nil }

func lacksMethod(body []byte) bool {
	members := membersOf(body)
	return members != nil && members["method"] == nil
}

func hasUnknownMember(body []byte) bool {
	members := membersOf(body)
	for _, name := range []string{"jsonrpc", "method", "params", "id"} {
		delete(members, name)
	}
	return len(members) > 0
}

// publishedForm reports whether the body begins with the four members in the
// published order and has neither spaces nor escapes in them, which is all
// that a search for a pattern would find.
func publishedForm(c *call) bool {
	var compact bytes.Buffer
	if json.Compact(&compact, c.body) != nil || !bytes.Equal(compact.Bytes(), c.body) {
		return false
	}
	published := `{"jsonrpc":"2.0","method":"` + c.method + `","params":` + string(c.params)
	if c.id != nil {
		published += `,"id":` + string(c.id)
	}
	rest, ok := bytes.CutPrefix(c.body, []byte(published))
	return ok && len(rest) > 0 && (rest[0] == ',' || rest[0] == '}')
}
