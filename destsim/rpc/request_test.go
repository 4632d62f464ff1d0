package rpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
)

const docID = "d06835ea44ee2e9eb1f5dcd8bbfbe5c6"

// documentedBody is the published example, whose Content-Length is 96.
const documentedBody = `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"` + docID + `"}`

func TestEncodeRequest(t *testing.T) {
	got := EncodeRequest(nil, MethodTestConnection, nil, docID)
	require.Equal(t, documentedBody, string(got))
	require.Len(t, got, 96)

	got = EncodeRequest([]byte("x"), MethodListFields, []byte(`{"object":{}}`), `a"b`)
	require.Equal(t, `x{"jsonrpc":"2.0","method":"list_fields","params":{"object":{}},"id":"a\"b"}`, string(got))

	viaJSON, err := json.Marshal(Request{JSONRPC: Version, Method: MethodTestConnection, Params: json.RawMessage("{}"), ID: docID})
	require.NoError(t, err)
	require.Equal(t, documentedBody, string(viaJSON), "the struct has the published order too")
}

// modelRequest is DecodeRequest by encoding/json: the code of the error, or 0.
func modelRequest(body []byte) (m map[string]json.RawMessage, code int64) {
	if rawjson.Valid(body) != nil {
		return nil, CodeParseError
	}
	if json.Unmarshal(body, &m) != nil || m == nil {
		return nil, CodeInvalidRequest
	}
	version, versionErr := rawjson.StringText(m["jsonrpc"])
	_, methodErr := rawjson.StringText(m["method"])
	var id any
	_ = json.Unmarshal(m["id"], &id)
	switch id.(type) {
	case map[string]any, []any, bool:
		return m, CodeInvalidRequest
	}
	params, has := m["params"]
	if versionErr != nil || version != Version || methodErr != nil || has && params[0] != '{' {
		return m, CodeInvalidRequest
	}
	return m, 0
}

// FuzzDecodeRequest: what is read, and what is refused by which code, is what encoding/json
// and the rules of JSON-RPC say.
func FuzzDecodeRequest(f *testing.F) {
	for _, body := range []string{
		documentedBody, `{"jsonrpc":"2.0","method":"m","params":{"a":[1,2,{"b":null}]},"id":7}`, `{"id":"\u0061","params":{},"method":"sync\u005fbatch","jsonrpc":"2.0","x":1}`,
		`{"jsonrpc":"2.0","method":"m","params":{"a":1},"params":{},"method":"n","id":1,"id":"2"}`, `nul`,
		" { \"id\" : \"1\" ,\n\"params\": { \"a\" : 1 } , \"method\":\"m\",\"jsonrpc\":\"2.0\"} ", `{"jsonrpc":"2.0","method":"list_objects","id":"1"}`,
		`{"jsonrpc":"2.0","method":"m","params":{},"id":-12.50}`, `{"jsonrpc":"2.0","method":"m","params":{},"id":null}`, `{"jsonrpc":"2.0","method":"m","params":{}}`,
		`{"jsonrpc":"2.0","method":"m","params":{},"id":"\u0061\/"}`, `{"jsonrpc":"2.0","method":"m","params":{},"id":"\ud800"}`,
		`{"jsonrpc":"2.0","\u006dethod":"m","params":{},"id":"1"}`, `{"jsonrpc":"2.0","method":"sync\u005fbatch","params":{},"id":"1"}`,
		`{"jsonrpc":"2.0","trace":[1,{}],"method":"m","params":{},"id":"1"}`,
		`{"jsonrpc":"1.0","jsonrpc":"2.0","method":"x","method":"m","params":[],"params":{"b":2},"id":1,"id":"2"}`,
		`{"jsonrpc":"2.0","Method":"x","method":"m","PARAMS":5,"id":"1"}`, ``, `<html>`, documentedBody[:50], documentedBody + "{}", "\xef\xbb\xbf" + documentedBody,
		"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\",\"id\":\"1\"}", `[1,`, `[` + documentedBody + `]`, `"x"`, `{}`, `{"method":"m","params":{},"id":"1"}`,
		`{"jsonrpc":"1.0","method":"m","params":{},"id":"1"}`, `{"jsonrpc":2.0,"method":"m","params":{},"id":"1"}`, `{"jsonrpc":"2.0","params":{},"id":"1"}`,
		`{"jsonrpc":"2.0","method":1,"params":{},"id":"1"}`, `{"jsonrpc":"2.0","method":"m","params":[],"id":"1"}`, `{"jsonrpc":"2.0","method":"m","params":null,"id":"1"}`,
		`{"jsonrpc":"2.0","method":"m","params":{},"id":{}}`, `{"jsonrpc":"2.0","method":"m","params":{},"id":true}`, `{"a":` + brackets(512) + `}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeRequest(body)
		m, code := modelRequest(body)
		if code != 0 {
			var rpcErr *Error
			require.ErrorAs(t, err, &rpcErr)
			require.Equal(t, code, rpcErr.Code, "%q", body)
			require.NotEmpty(t, rpcErr.Message)
			if code == CodeInvalidRequest && m["id"] != nil && bytes.IndexByte([]byte("[{tf"), m["id"][0]) < 0 {
				require.Equal(t, string(m["id"]), string(r.RawID), "so that the answer can carry it")
			}
			return
		}
		require.NoError(t, err)
		method, _ := rawjson.StringText(m["method"])
		require.Equal(t, method, r.Method)
		require.Equal(t, string(m["id"]), string(r.RawID))
		var id any
		_ = json.Unmarshal(m["id"], &id)
		switch text := id.(type) {
		case string:
			require.Equal(t, text, r.ID)
		case nil:
			require.Empty(t, r.ID)
		default:
			require.Equal(t, string(m["id"]), r.ID)
		}
		if params, has := m["params"]; has {
			require.Equal(t, string(params), string(r.Params))
		} else {
			require.Equal(t, "{}", string(r.Params))
		}
		again, err := DecodeRequest(EncodeRequest(nil, r.Method, r.Params, r.ID))
		require.NoError(t, err)
		require.Equal(t, r.Method, again.Method)
		require.Equal(t, string(r.Params), string(again.Params))
		require.Equal(t, r.ID, again.ID)
	})
}

func brackets(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
