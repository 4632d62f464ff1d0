package codec

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func TestAppendBatchResult(t *testing.T) {
	require.Equal(t, `{"record_results":[]}`, string(AppendBatchResult(nil, nil)))
	results := []rpc.RecordResult{
		{Identifier: json.RawMessage(`"Ashley's"`), Success: true},
		{Identifier: json.RawMessage(`9007199254740993`), ErrorMessage: "bad <zip>\n"},
		{},
	}
	got := AppendBatchResult([]byte("x"), results)
	require.Equal(t, `x{"record_results":[{"identifier":"Ashley's","success":true},`+
		`{"identifier":9007199254740993,"success":false,"error_message":"bad <zip>\n"},`+
		`{"identifier":null,"success":false}]}`, string(got))
}
