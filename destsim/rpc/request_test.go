package rpc

import (
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

func TestDecodeRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		body                      string
		method, params, id, rawID string
	}{
		"documented":         {documentedBody, "test_connection", "{}", docID, `"` + docID + `"`},
		"any order, spaces":  {" { \"id\" : \"1\" ,\n\"params\": { \"a\" : 1 } , \"method\":\"m\",\"jsonrpc\":\"2.0\"} ", "m", `{ "a" : 1 }`, "1", `"1"`},
		"no params":          {`{"jsonrpc":"2.0","method":"list_objects","id":"1"}`, "list_objects", "{}", "1", `"1"`},
		"number id":          {`{"jsonrpc":"2.0","method":"m","params":{},"id":-12.50}`, "m", "{}", "-12.50", "-12.50"},
		"null id":            {`{"jsonrpc":"2.0","method":"m","params":{},"id":null}`, "m", "{}", "", "null"},
		"no id":              {`{"jsonrpc":"2.0","method":"m","params":{}}`, "m", "{}", "", ""},
		"escaped id":         {`{"jsonrpc":"2.0","method":"m","params":{},"id":"\u0061\/"}`, "m", "{}", "a/", `"\u0061\/"`},
		"half surrogate id":  {`{"jsonrpc":"2.0","method":"m","params":{},"id":"\ud800"}`, "m", "{}", "\uFFFD", `"\ud800"`},
		"escaped key":        {`{"jsonrpc":"2.0","\u006dethod":"m","params":{},"id":"1"}`, "m", "{}", "1", `"1"`},
		"escaped method":     {`{"jsonrpc":"2.0","method":"sync\u005fbatch","params":{},"id":"1"}`, "sync_batch", "{}", "1", `"1"`},
		"extra members":      {`{"jsonrpc":"2.0","trace":[1,{}],"method":"m","params":{},"id":"1"}`, "m", "{}", "1", `"1"`},
		"last of repeated":   {`{"jsonrpc":"1.0","jsonrpc":"2.0","method":"x","method":"m","params":[],"params":{"b":2},"id":1,"id":"2"}`, "m", `{"b":2}`, "2", `"2"`},
		"other case ignored": {`{"jsonrpc":"2.0","Method":"x","method":"m","PARAMS":5,"id":"1"}`, "m", "{}", "1", `"1"`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := DecodeRequest([]byte(tc.body))
			require.NoError(t, err)
			require.Equal(t, Version, r.JSONRPC)
			require.Equal(t, tc.method, r.Method)
			require.Equal(t, tc.params, string(r.Params))
			require.Equal(t, tc.id, r.ID)
			require.Equal(t, tc.rawID, string(r.RawID))
		})
	}
}

func TestDecodeRequestRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		body  string
		code  int64
		rawID string
	}{
		"empty":            {``, CodeParseError, ""},
		"html":             {`<html>`, CodeParseError, ""},
		"cut":              {documentedBody[:50], CodeParseError, ""},
		"trailing":         {documentedBody + "{}", CodeParseError, ""},
		"byte order mark":  {"\xef\xbb\xbf" + documentedBody, CodeParseError, ""},
		"not UTF-8":        {"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\",\"id\":\"1\"}", CodeParseError, ""},
		"broken array":     {`[1,`, CodeParseError, ""},
		"array":            {`[` + documentedBody + `]`, CodeInvalidRequest, ""},
		"string":           {`"x"`, CodeInvalidRequest, ""},
		"empty object":     {`{}`, CodeInvalidRequest, ""},
		"no version":       {`{"method":"m","params":{},"id":"1"}`, CodeInvalidRequest, `"1"`},
		"version 1.0":      {`{"jsonrpc":"1.0","method":"m","params":{},"id":"1"}`, CodeInvalidRequest, `"1"`},
		"version a number": {`{"jsonrpc":2.0,"method":"m","params":{},"id":"1"}`, CodeInvalidRequest, `"1"`},
		"no method":        {`{"jsonrpc":"2.0","params":{},"id":"1"}`, CodeInvalidRequest, `"1"`},
		"method a number":  {`{"jsonrpc":"2.0","method":1,"params":{},"id":"1"}`, CodeInvalidRequest, `"1"`},
		"positional":       {`{"jsonrpc":"2.0","method":"m","params":[],"id":"1"}`, CodeInvalidRequest, `"1"`},
		"params null":      {`{"jsonrpc":"2.0","method":"m","params":null,"id":"1"}`, CodeInvalidRequest, `"1"`},
		"id an object":     {`{"jsonrpc":"2.0","method":"m","params":{},"id":{}}`, CodeInvalidRequest, ""},
		"id true":          {`{"jsonrpc":"2.0","method":"m","params":{},"id":true}`, CodeInvalidRequest, ""},
		"too deep":         {`{"a":` + brackets(512) + `}`, CodeParseError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := DecodeRequest([]byte(tc.body))
			var rpcErr *Error
			require.ErrorAs(t, err, &rpcErr)
			require.Equal(t, tc.code, rpcErr.Code, rpcErr.Message)
			require.NotEmpty(t, rpcErr.Message)
			require.Equal(t, tc.rawID, string(r.RawID))
		})
	}
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

func requestSeeds(f *testing.F) {
	for _, body := range []string{
		documentedBody, `{"jsonrpc":"2.0","method":"m","params":{"a":[1,2,{"b":null}]},"id":7}`,
		`{"id":"\u0061","params":{},"method":"sync\u005fbatch","jsonrpc":"2.0","x":1}`, `{"jsonrpc":"2.0","method":"m","params":{"a":1},"params":{},"method":"n","id":1,"id":"2"}`, `[]`, `{}`, `nul`,
	} {
		f.Add([]byte(body))
	}
}

func FuzzDecodeRequest(f *testing.F) {
	requestSeeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeRequest(body)
		m, code := modelRequest(body)
		if code != 0 {
			var rpcErr *Error
			require.ErrorAs(t, err, &rpcErr)
			require.Equal(t, code, rpcErr.Code, "%q", body)
			return
		}
		require.NoError(t, err)
		method, _ := rawjson.StringText(m["method"])
		require.Equal(t, method, r.Method)
		require.Equal(t, string(m["id"]), string(r.RawID))
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
