package rpc

import (
	"strconv"

	"github.com/destkit/destkit/internal/rawjson"
)

func newError(code int64, message string) *Error {
	return &Error{Code: code, Message: message}
}

// AppendResponse appends a response with a result. id is the raw id of the
// request (nil stands for null), result a JSON object; both are copied as they
// are.
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
// of the request; nil stands for null, as after a parse error.
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
