package rpc

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
)

// FuzzDecodeResponse: what is read, and what is refused and how, is what encoding/json and
// the rules of JSON-RPC say.
func FuzzDecodeResponse(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":"1","result":{"record_results":[]}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no","data":[1]}}`,
		`{"jsonrpc":"2.0","id":"1","result":{},"error":null}`, `{"jsonrpc":"2.0","id":"\u0031","method":"m","result":{ }}`, `[]`, ``,
		`{"jsonrpc":"2.0","id":"1","result":{"success":true}}`, `{"method":"list_objects","result":{},"id":"1","jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":"\u0031","result":{}}`,
		`{"jsonrpc":"2.0","id":"1","error":{"code":-32601,"message":"no"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"no","data":{"type":"X"}}}`, `<html>`, `{"jsonrpc":"2.0","id":"1","result":{}} x`, `{"id":"1","result":{}}`,
		`{"jsonrpc":"2.0","id":"1","result":{},"error":{"code":1,"message":"no"}}`, `{"jsonrpc":"2.0","id":"1"}`, `{"jsonrpc":"2.0","id":"1","result":null}`,
		`{"jsonrpc":"2.0","id":"2","result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","result":{}}`, `{"jsonrpc":"2.0","id":"1","error":"no"}`,
		`{"jsonrpc":"2.0","id":"1","error":{"code":"1","message":"no"}}`, `{"jsonrpc":"2.0","id":"1","error":{"code":1.5,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":"1","error":{"code":1}}`,
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
