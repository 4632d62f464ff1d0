package rpc

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendResponse(t *testing.T) {
	require.Equal(t, `{"jsonrpc":"2.0","id":"1","result":{"success":true}}`,
		string(AppendResponse(nil, []byte(`"1"`), []byte(`{"success":true}`))))
	require.Equal(t, `x{"jsonrpc":"2.0","id":null,"result":{}}`, string(AppendResponse([]byte("x"), nil, nil)))
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse \"error\""}}`,
		string(AppendError(nil, nil, &Error{Code: CodeParseError, Message: `parse "error"`})))
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"m","data":{"a":1}}}`,
		string(AppendError(nil, []byte("7"), &Error{Code: CodeServerError, Message: "m", Data: json.RawMessage(`{"a":1}`)})))
}
