package rpc

import (
	"encoding/json"
	"slices"
)

// EncodeRequest appends one request in the published key order jsonrpc,
// method, params, id, without white space. params must be a JSON
// object and is copied as it is; nil stands for {}.
func EncodeRequest(dst []byte, method string, params []byte, id string) []byte {
	// Room for all of it at once: params may be megabytes.
	dst = slices.Grow(dst, len(params)+len(method)+len(id)+64)
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	dst = AppendString(dst, method)
	dst = append(dst, `,"params":`...)
	if len(params) == 0 {
		dst = append(dst, '{', '}')
	} else {
		dst = append(dst, params...)
	}
	dst = append(dst, `,"id":`...)
	return append(AppendString(dst, id), '}')
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
	if err := scanRequest(body, &r, nil); err != nil {
		return r, err
	}
	r.ID = idText(r.RawID)
	return r, nil
}

// DecodeCall is DecodeRequest for a server's hot path: r is reused, and the
// params of a sync_batch are decoded into b in the same pass over the body
// when the method stands before the params, as it does in the published order.
// It allocates nothing when r and b are reused and the plan is remembered. ID
// stays empty; RawID is what an answer needs.
//
// A wrong envelope is an *Error as in DecodeRequest, wrong params of a
// sync_batch are an *Error as in DecodeBatch. b holds something only after a
// sync_batch without error.
func DecodeCall(body []byte, r *Request, b *Batch) error {
	*r = Request{}
	b.reset(nil)
	// Whatever the single pass does not like is decoded again step by step, so
	// that both ways report the same error.
	err := scanRequest(body, r, b)
	if err == nil && r.Method == MethodSyncBatch && b.done {
		return nil
	}
	*r = Request{}
	b.reset(nil)
	if err := scanRequest(body, r, nil); err != nil {
		return err
	}
	if r.Method != MethodSyncBatch {
		return nil
	}
	return DecodeBatch(r.Params, b)
}

// idText is the text form of a raw id.
func idText(raw []byte) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	return MessageText(raw)
}

// rawRequest holds the raw members of a request while it is scanned.
type rawRequest struct {
	version, method, params, id []byte
}

// scanRequest scans the envelope. With b it decodes the params of a sync_batch
// on the way.
func scanRequest(body []byte, r *Request, b *Batch) error {
	i := skipSpace(body, 0)
	if i == len(body) || body[i] != '{' {
		if at, f := skipText(body); f != faultNone {
			return parseError(at, f)
		}
		return newError(CodeInvalidRequest, "invalid request: the body is not an object")
	}
	var raw rawRequest
	if at, f := raw.scan(body, i, b); f != faultNone {
		return parseError(at, f)
	}
	return raw.check(r)
}

// scan reads the members of the object at i to the end of the body.
func (q *rawRequest) scan(body []byte, i int, b *Batch) (int, fault) {
	i = skipSpace(body, i+1)
	more, f := true, faultNone
	if i < len(body) && body[i] == '}' {
		i, more = i+1, false
	}
	for more {
		end, v, f := skipKey(body, i)
		if f != faultNone {
			return v, f
		}
		key := plainKey(body[i+1 : end])
		params := b != nil && string(key) == "params"
		if params && string(q.method) == `"`+MethodSyncBatch+`"` {
			i, f = b.scan(body, v, 1)
		} else {
			i, f = skipValue(body, v, 1)
			if params {
				b.done = false // the last params count, and these were not decoded
			}
		}
		if f != faultNone {
			return i, f
		}
		q.set(key, body[v:i:i])
		if i, more, f = nextMember(body, i); f != faultNone {
			return i, f
		}
	}
	if i = skipSpace(body, i); i != len(body) {
		return i, faultTrailing
	}
	return i, f
}

func (q *rawRequest) set(key, raw []byte) {
	switch string(key) {
	case "jsonrpc":
		q.version = raw
	case "method":
		q.method = raw
	case "params":
		q.params = raw
	case "id":
		q.id = raw
	}
}

// check turns the raw members into r, or says what is wrong with them.
func (q *rawRequest) check(r *Request) error {
	if !idKind(q.id) {
		return newError(CodeInvalidRequest, "invalid request: id is not a string, a number or null")
	}
	r.RawID = q.id
	if version, ok := textOf(q.version); !ok || version != Version {
		return newError(CodeInvalidRequest, `invalid request: jsonrpc is not "2.0"`)
	}
	r.JSONRPC = Version
	method, ok := textOf(q.method)
	if !ok {
		return newError(CodeInvalidRequest, "invalid request: method is not a string")
	}
	r.Method = method
	switch {
	case q.params == nil:
		r.Params = json.RawMessage("{}")
	case q.params[0] != '{':
		return newError(CodeInvalidRequest, "invalid request: params is not an object")
	default:
		r.Params = q.params
	}
	return nil
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
	text, err := StringText(raw)
	return text, err == nil
}

func parseError(at int, f fault) *Error {
	return newError(CodeParseError, "parse error: "+syntaxError(at, f).Error())
}
