package rpc

import (
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/internal/rawjson"
)

// EncodeRequest appends one request in the published key order jsonrpc,
// method, params, id, without white space. params must be a JSON object
// and is copied as it is; nil means {}.
func EncodeRequest(dst []byte, method string, params []byte, id string) []byte {
	// Room for all of it at once: params may be megabytes.
	dst = slices.Grow(dst, len(params)+len(method)+len(id)+64)
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	dst = rawjson.AppendString(dst, method)
	dst = append(dst, `,"params":`...)
	if len(params) == 0 {
		dst = append(dst, '{', '}')
	} else {
		dst = append(dst, params...)
	}
	dst = append(dst, `,"id":`...)
	return append(rawjson.AppendString(dst, id), '}')
}

// DecodeRequest decodes one request strictly (spec 4.2): one JSON object in
// UTF-8 and no trailing bytes. Additional members are ignored, of a repeated
// member the last counts, absent params are {}. Params and RawID are slices of
// body. ID is the text of a string id, the literal of a number, "" for null
// and absent.
//
// The error is an *Error with the JSON-RPC code: -32700 when body is not JSON,
// -32600 when the envelope is wrong. RawID is set even then when it could be
// read, so that the answer can carry it.
func DecodeRequest(body []byte) (Request, error) {
	var r Request
	var m [4][]byte
	object, at, f := rawjson.ScanObject(body, m[:], "jsonrpc", "method", "params", "id")
	if f != rawjson.FaultNone {
		return r, newError(CodeParseError, "parse error: "+rawjson.ErrorAt(at, f).Error())
	}
	if !object {
		return r, newError(CodeInvalidRequest, "invalid request: the body is not an object")
	}
	if err := r.set(m[0], m[1], m[2], m[3]); err != nil {
		return r, err
	}
	r.ID = idText(r.RawID)
	return r, nil
}

// set takes the raw members, or returns what is wrong with them.
func (r *Request) set(jsonrpc, name, params, id []byte) error {
	if !idKind(id) {
		return newError(CodeInvalidRequest, "invalid request: id is not a string, a number or null")
	}
	r.RawID = id
	if version, ok := textOf(jsonrpc); !ok || version != Version {
		return newError(CodeInvalidRequest, `invalid request: jsonrpc is not "2.0"`)
	}
	r.JSONRPC = Version
	method, ok := textOf(name)
	if !ok {
		return newError(CodeInvalidRequest, "invalid request: method is not a string")
	}
	r.Method = method
	switch {
	case params == nil:
		r.Params = json.RawMessage("{}")
	case params[0] != '{':
		return newError(CodeInvalidRequest, "invalid request: params is not an object")
	default:
		r.Params = params
	}
	return nil
}

// idText is the text form of a raw id.
func idText(raw []byte) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	return rawjson.MessageText(raw)
}

// idKind reports whether a raw id is absent, a string, a number or null.
func idKind(raw []byte) bool {
	if len(raw) == 0 {
		return true
	}
	c := raw[0]
	return c == '"' || c == 'n' || c == '-' || c-'0' <= 9
}

// textOf decodes a validated raw value that must be a string; the words of the
// protocol come back without an allocation.
func textOf(raw []byte) (string, bool) {
	switch string(raw) {
	case `"2.0"`:
		return Version, true
	case `"sync_batch"`:
		return MethodSyncBatch, true
	case `"get_sync_speed"`:
		return MethodGetSyncSpeed, true
	case `"supported_operations"`:
		return MethodSupportedOperations, true
	case `"list_fields"`:
		return MethodListFields, true
	case `"list_objects"`:
		return MethodListObjects, true
	case `"test_connection"`:
		return MethodTestConnection, true
	}
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	text, err := rawjson.StringText(raw)
	return text, err == nil
}
