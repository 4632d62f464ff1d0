package rpc

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
)

func TestDecodeResponse(t *testing.T) {
	for name, tc := range map[string]struct {
		body, result string
		rpcErr       *Error
		problem      string // "" for none, else part of the error
	}{
		"result":          {`{"jsonrpc":"2.0","id":"1","result":{"success":true}}`, `{"success":true}`, nil, ""},
		"extra members":   {`{"method":"list_objects","result":{},"id":"1","jsonrpc":"2.0"}`, `{}`, nil, ""},
		"escaped id":      {`{"jsonrpc":"2.0","id":"\u0031","result":{}}`, `{}`, nil, ""},
		"error":           {`{"jsonrpc":"2.0","id":"1","error":{"code":-32601,"message":"no"}}`, "", &Error{Code: -32601, Message: "no"}, ""},
		"error, id null":  {`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, "", &Error{Code: -32700, Message: "no"}, ""},
		"error with data": {`{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"no","data":{"type":"X"}}}`, "", &Error{Code: 1, Message: "no", Data: json.RawMessage(`{"type":"X"}`)}, ""},
		"not json":        {`<html>`, "", nil, "not the start of a value at byte 0"},
		"trailing":        {`{"jsonrpc":"2.0","id":"1","result":{}} x`, "", nil, "bytes after the value"},
		"array":           {`[]`, "", nil, "not an object"},
		"no version":      {`{"id":"1","result":{}}`, "", nil, "jsonrpc"},
		"both":            {`{"jsonrpc":"2.0","id":"1","result":{},"error":{"code":1,"message":"no"}}`, "", nil, "both"},
		"neither":         {`{"jsonrpc":"2.0","id":"1"}`, "", nil, "neither"},
		"result null":     {`{"jsonrpc":"2.0","id":"1","result":null}`, "", nil, "result is not an object"},
		"other id":        {`{"jsonrpc":"2.0","id":"2","result":{}}`, "", nil, "id is not"},
		"number id":       {`{"jsonrpc":"2.0","id":1,"result":{}}`, "", nil, "id is not"},
		"no id":           {`{"jsonrpc":"2.0","result":{}}`, "", nil, "id is not"},
		"error a string":  {`{"jsonrpc":"2.0","id":"1","error":"no"}`, "", nil, "error is not an object"},
		"code a string":   {`{"jsonrpc":"2.0","id":"1","error":{"code":"1","message":"no"}}`, "", nil, "error.code"},
		"code a fraction": {`{"jsonrpc":"2.0","id":"1","error":{"code":1.5,"message":"no"}}`, "", nil, "error.code"},
		"no message":      {`{"jsonrpc":"2.0","id":"1","error":{"code":1}}`, "", nil, "error.message"},
	} {
		t.Run(name, func(t *testing.T) {
			result, rpcErr, err := DecodeResponse([]byte(tc.body), "1")
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				var syntax *rawjson.SyntaxError
				if name != "not json" && name != "trailing" {
					require.ErrorIs(t, err, ErrEnvelope)
				} else {
					require.ErrorAs(t, err, &syntax)
				}
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tc.rpcErr, rpcErr)
			require.Equal(t, tc.result, string(result))
		})
	}
}

func FuzzDecodeResponse(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":"1","result":{"record_results":[]}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no","data":[1]}}`,
		`{"jsonrpc":"2.0","id":"1","result":{},"error":null}`, `{"jsonrpc":"2.0","id":"\u0031","method":"m","result":{ }}`, `[]`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		result, rpcErr, err := DecodeResponse(body, "1")
		if err != nil {
			require.Nil(t, result)
			require.Nil(t, rpcErr)
		}
		if rawjson.Valid(body) != nil {
			var syntax *rawjson.SyntaxError
			require.ErrorAs(t, err, &syntax)
			return
		}
		var m map[string]json.RawMessage
		_ = json.Unmarshal(body, &m)
		version, _ := rawjson.StringText(m["jsonrpc"])
		id, _ := rawjson.StringText(m["id"])
		switch {
		case version != Version || (m["result"] == nil) == (m["error"] == nil):
			require.ErrorIs(t, err, ErrEnvelope)
		case m["error"] != nil:
			requireError(t, m["error"], rpcErr, err)
		case m["result"][0] == '{' && id == "1":
			require.NoError(t, err)
			require.Equal(t, string(m["result"]), string(result))
		default:
			require.ErrorIs(t, err, ErrEnvelope)
		}
	})
}

// requireError compares a decoded error object with encoding/json's reading.
func requireError(t *testing.T, raw json.RawMessage, rpcErr *Error, err error) {
	var m map[string]json.RawMessage
	var code int64
	bad := json.Unmarshal(raw, &m) != nil || m == nil || m["code"] == nil || m["code"][0] == 'n'
	bad = bad || json.Unmarshal(m["code"], &code) != nil
	message, textErr := rawjson.StringText(m["message"])
	if bad || textErr != nil {
		require.ErrorIs(t, err, ErrEnvelope)
		return
	}
	require.NoError(t, err)
	require.Equal(t, code, rpcErr.Code)
	require.Equal(t, message, rpcErr.Message)
	require.Equal(t, string(m["data"]), string(rpcErr.Data))
}
