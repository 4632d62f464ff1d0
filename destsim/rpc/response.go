package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/destkit/destkit/internal/rawjson"
)

// Error makes *Error usable as a Go error: code and message.
func (e *Error) Error() string {
	return "rpc error " + strconv.FormatInt(e.Code, 10) + ": " + e.Message
}

// Errors of a call, for errors.Is.
var (
	// ErrEnvelope is the error of a reply that is JSON but not a response to the
	// request: the service fails such a call as "unknown error" (spec 7.2.1).
	ErrEnvelope = errors.New("wrong response envelope")
	// ErrResults is the error of a result of sync_batch that has not the shape
	// {"record_results": [{…}, …]}.
	ErrResults = errors.New("wrong shape of record_results")
	// ErrReplyTooLarge is the error of a reply that is larger than Client.MaxReply, as
	// received or as decoded.
	ErrReplyTooLarge = errors.New("reply too large")
)

// DecodeResponse decodes a reply strictly (spec 4.2): one JSON object with
// jsonrpc "2.0", the id of the request, and either a result object or an error
// object. Additional members are normal. An error is looked at
// before the id, because a parse error carries id null. result is a slice of
// body.
//
// err names the byte when body is not JSON, and wraps ErrEnvelope
// when the envelope is wrong.
func DecodeResponse(body []byte, id string) (result json.RawMessage, rpcErr *Error, err error) {
	var m [4][]byte // jsonrpc, id, result, error
	object, at, f := rawjson.ScanObject(body, m[:], "jsonrpc", "id", "result", "error")
	if f != rawjson.FaultNone {
		return nil, nil, fmt.Errorf("decode response: %w", rawjson.ErrorAt(at, f))
	}
	if !object {
		return nil, nil, envelopeError("the reply is not an object")
	}
	version, _ := textOf(m[0])
	switch {
	case version != Version:
		return nil, nil, envelopeError(`jsonrpc is not "2.0"`)
	case m[2] != nil && m[3] != nil:
		return nil, nil, envelopeError("result and error are both present")
	case m[3] != nil:
		rpcErr, err = decodeError(m[3])
		return nil, rpcErr, err
	case m[2] == nil:
		return nil, nil, envelopeError("neither result nor error is present")
	case m[2][0] != '{':
		return nil, nil, envelopeError("result is not an object")
	}
	if got, ok := textOf(m[1]); !ok || got != id {
		return nil, nil, envelopeError("id is not the id of the request")
	}
	return m[2], nil, nil
}

func envelopeError(what string) error {
	return fmt.Errorf("decode response: %w: %s", ErrEnvelope, what)
}

func decodeError(raw []byte) (*Error, error) {
	var m [3][]byte
	if !rawjson.Pick(raw, m[:], "code", "message", "data") {
		return nil, envelopeError("error is not an object")
	}
	code, err := strconv.ParseInt(string(m[0]), 10, 64)
	if err != nil {
		return nil, envelopeError("error.code is not an integer")
	}
	message, ok := textOf(m[1])
	if !ok {
		return nil, envelopeError("error.message is not a string")
	}
	return &Error{Code: code, Message: message, Data: m[2]}, nil
}

func newError(code int64, message string) *Error {
	return &Error{Code: code, Message: message}
}

// AppendResponse appends a response with a result. id is the raw id of the
// request (nil means null), result a JSON object; both are copied as they are.
func AppendResponse(dst, id, result []byte) []byte {
	dst = AppendResponseHead(dst, id)
	if len(result) == 0 {
		result = []byte("{}")
	}
	return append(append(dst, result...), '}')
}

// AppendResponseHead appends a response up to its result: a result and a
// closing brace are still to be appended.
func AppendResponseHead(dst, id []byte) []byte {
	return append(appendHead(dst, id), `,"result":`...)
}

// AppendError appends a response with an error (spec 7.2.2). id is the raw id
// of the request; nil means null, as after a parse error.
func AppendError(dst, id []byte, e *Error) []byte {
	dst = appendHead(dst, id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, e.Code, 10)
	dst = append(dst, `,"message":`...)
	dst = rawjson.AppendString(dst, e.Message)
	if len(e.Data) > 0 {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	return append(dst, '}', '}')
}

func appendHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if len(id) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}
