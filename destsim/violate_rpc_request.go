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
func requestViolations() []violation {
	return append(malformedViolations(),
		breaks("RPC-012", `list_fields without an object answers "fields":[]`,
			seams{parsed: func(c *call) {
				if gives(c, rpc.MethodListFields) && lacks(c.params, "object") {
					c.answer(fieldsResult{[]rpc.Field{}})
				}
			}}),
		breaks("RPC-012.2", "list_fields without an object closes the connection without a response",
			seams{write: func(c *call, h *httpReply) {
				if wrongParams(c, rpc.MethodListFields) && lacks(c.params, "object") {
					h.raw = []byte{}
				}
			}}),
		breaks("RPC-013", "list_objects with an unknown member in params or beside it answers an error -32602",
			seams{parsed: func(c *call) {
				if gives(c, rpc.MethodListObjects) && (len(membersOf(c.params)) > 0 || hasUnknownMember(c.body)) {
					c.fail(rpc.CodeInvalidParams, "invalid params: unknown member")
				}
			}}),
		breaks("RPC-016", "list_objects is unknown when key order, spaces or escapes of the request are not the published ones",
			seams{parsed: func(c *call) {
				if gives(c, rpc.MethodListObjects) && !publishedForm(c) {
					c.fail(rpc.CodeMethodNotFound, "method not found")
				}
			}}),
		breaks("RPC-019", "the method name is folded to lower case before it is looked up",
			seams{parsed: func(c *call) {
				if c.err == nil {
					c.method = strings.ToLower(c.method)
				}
			}}),
	)
}

// malformedViolations answer what is no request.
func malformedViolations() []violation {
	return []violation{
		breaks("RPC-010", "a body that ends in the middle of the JSON is never answered",
			seams{write: func(c *call, h *httpReply) {
				if endsEarly(c) {
					c.sleep(c.sim.delays.Hang)
					h.raw = []byte{}
				}
			}}),
		breaks("RPC-010.2", "a body that ends in the middle of the JSON is answered like test_connection, with a null id",
			seams{parsed: func(c *call) {
				if endsEarly(c) {
					testConnection(c)
				}
			}}),
		breaks("RPC-010.3", "a body that ends in the middle of the JSON closes the connection without a response",
			seams{write: func(c *call, h *httpReply) {
				if endsEarly(c) {
					h.raw = []byte{}
				}
			}}),
		breaks("RPC-011", "a body without a method is answered like test_connection",
			seams{parsed: func(c *call) {
				if c.err == nil || c.err.Code != rpc.CodeInvalidRequest {
					return
				}
				if members := membersOf(c.body); members != nil && members["method"] == nil {
					testConnection(c)
				}
			}}),
	}
}

// testConnection goes on as if test_connection had been called.
func testConnection(c *call) {
	c.method, c.params, c.err = rpc.MethodTestConnection, []byte("{}"), nil
}

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

func lacks(params []byte, name string) bool { return membersOf(params)[name] == nil }

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
