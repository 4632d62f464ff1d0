package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
)

// FuzzDecodeResponse: results and errors match encoding/json and the rules of JSON-RPC.
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

func TestNamesOfTheProtocol(t *testing.T) {
	require.Equal(t, []string{"test_connection", "list_objects", "list_fields",
		"supported_operations", "get_sync_speed", "sync_batch"}, Methods())
	require.Equal(t, []string{"boolean", "decimal", "float", "integer", "date", "date_time", "string"}, FieldTypes())
}

// TestFieldHasAllEightKeys: no key of a field may vanish when it is false or
// empty, and can_create_fields must when it is not used.
func TestFieldHasAllEightKeys(t *testing.T) {
	text, err := json.Marshal(Field{})
	require.NoError(t, err)
	require.Equal(t, `{"field_api_name":"","label":"","identifier":false,"required":false,`+
		`"createable":false,"updateable":false,"type":"","array":false}`, string(text))
	text, err = json.Marshal(Object{APIName: "a", Label: "A"})
	require.NoError(t, err)
	require.Equal(t, `{"object_api_name":"a","label":"A"}`, string(text))
	require.Equal(t, ObjectRef{APIName: "a", Label: "A"}, Object{APIName: "a", Label: "A", CanCreateFields: CanCreateOnWrite}.Ref())
}

// TestScanResultsStops: an error of the caller ends the walk and comes back as it is.
func TestScanResultsStops(t *testing.T) {
	stop, calls := errors.New("stop"), 0
	err := ScanResults([]byte(`{"record_results":[{},{}]}`), func([]byte, bool, []byte) error { calls++; return stop })
	require.Equal(t, stop, err)
	require.Equal(t, 1, calls)
}

// FuzzScanResults: results and errors match those of encoding/json.
func FuzzScanResults(f *testing.F) {
	for _, result := range []string{
		`{"record_results":[{"identifier":"a","success":true},{"identifier":2,"success":false,"error_message":"no"}]}`,
		`{"x":1,"record_results":[{"identifier":"a","success":null,"error_message":{"a":[]}}, {}]}`, `{"record_results":[{"identifier":1,"identifier":2}],"record_results":[]}`,
		`{"record_results":[]}`, ` { "x" : [ 1 ] , "record_results" : [ { "success" : true , "identifier" : "a" } ] } `,
		`{"record_results":[{"identifier":"a","success":true,"error_message":null}]}`, `{"record_results":[{"identifier":"a","success":false,"error_message":{"code":1}}]}`,
		`{"record_results":[{"identifier":"a"},{"success":true},{}]}`, `{"record_results":[{"identifier":"a","success":"true"},{"identifier":"b","success":1}]}`,
		`{"record_results":[{"identifier":"a","identifier":"b","success":true,"success":false}]}`, `{"record_results":[{"\u0069dentifier":"a","succes\u0073":true}]}`, `[]`,
		`null`, `{}`, `{"record_results":{}}`, `{"record_results":null}`, `{"record_results":[1]}`, `{"record_results":[null]}`, `{"record_results":[],"record_results":[]}`, ``,
		`{`, `{"record_results":[}`, `{"record_results":[{"identifier":"a"]}`, `{"record_results":[]}x`, `{"record_results":[1,]}`, `{"record_results":[{"success":tru}]}`,
		`{"record_results":[]`, `{"a":1,}`, `{"record_results":[{"a":1,}]}`, `{"record_results":[{}`,
	} {
		f.Add([]byte(result))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		type entry struct{ identifier, message string }
		var got []entry
		var won []bool
		err := ScanResults(result, func(identifier []byte, success bool, message []byte) error {
			got = append(got, entry{string(identifier), string(message)})
			won = append(won, success)
			return nil
		})
		if rawjson.Valid(result) != nil {
			var syntax *rawjson.SyntaxError
			require.ErrorAs(t, err, &syntax)
			return
		}
		if err != nil {
			require.ErrorIs(t, err, ErrResults)
		}
		var top struct{ entries []map[string]json.RawMessage }
		var m map[string]json.RawMessage
		_ = json.Unmarshal(result, &m)
		bad := json.Unmarshal(m["record_results"], &top.entries) != nil || m["record_results"][0] != '['
		for _, e := range top.entries {
			bad = bad || e == nil
		}
		if bad {
			require.Error(t, err)
			return
		}
		if err != nil { // a repeated record_results is refused beyond the model
			require.ErrorContains(t, err, "repeated")
			return
		}
		require.Len(t, got, len(top.entries))
		for i, e := range top.entries {
			require.Equal(t, entry{string(e["identifier"]), string(e["error_message"])}, got[i])
			require.Equal(t, string(e["success"]) == "true", won[i])
		}
	})
}

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

// FuzzDecodeRequest: results and error codes match encoding/json and the rules of JSON-RPC.
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
