package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// answers are replies of every kind, right and wrong.
var answers = []string{
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a","success":true}]}}`,
	` { "result" : { "more" : [1,{}], "record_results" : [ { "success" : true , "identifier" : 4.5e1 } , {"identifier":"b","success":false,"error_message":"no"} ] } , "id":"7", "jsonrpc":"2.0", "method":"sync_batch" } `,
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":[]}}`,
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":[{},{"success":"true"},{"identifier":null,"error_message":{"a":1}}]}}`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
	`{"jsonrpc":"2.0","id":"7","error":{"code":"x","message":"m"}}`,
	`{"jsonrpc":"2.0","id":"7","result":{}}`,
	`{"jsonrpc":"2.0","id":"7","result":[]}`,
	`{"jsonrpc":"2.0","id":"7","result":null}`,
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":{}}}`,
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":[7]}}`,
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":[],"record_results":[]}}`,
	`{"jsonrpc":"2.0","id":"7"}`,
	`{"jsonrpc":"1.0","id":"7","result":{"record_results":[]}}`,
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":[]},"error":{"code":1,"message":"m"}}`,
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a","success":true}`,
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a" "success":true}]}}`,
	`{"jsonrpc":"2.0","id":"7","result":{"record_results":[]}} x`,
	`[]`, `"x"`, ``, ` `, `{`, `{}`, `nul`, "{\"a\":\"\xff\"}",
}

// twoPasses is what ScanAnswer does in one.
func twoPasses(body []byte) (entries []string, rpcErr *rpc.Error, err error) {
	result, rpcErr, err := rpc.DecodeResponse(body, "7")
	if err != nil || rpcErr != nil {
		return nil, rpcErr, err
	}
	err = rpc.ScanResults(result, func(identifier []byte, success bool, message []byte) error {
		entries = append(entries, fmt.Sprintf("%s %t %s", identifier, success, message))
		return nil
	})
	return entries, nil, err
}

func TestScanAnswerAgreesWithTheTwoPasses(t *testing.T) {
	for _, text := range answers {
		body := []byte(text)
		var entries []string
		var answer Answer
		err := ScanAnswer(body, &answer, func(e *Entry) error {
			entries = append(entries, fmt.Sprintf("%s %t %s", e.Identifier, e.Success, e.Message))
			require.Equal(t, byte('{'), body[e.Start])
			require.Equal(t, byte('}'), body[e.End-1])
			var again Entry
			require.True(t, ScanEntry(body, e.Start, &again))
			require.Equal(t, *e, again)
			return nil
		})
		want, wantError, wantErr := twoPasses(body)
		require.Equal(t, wantErr == nil, err == nil, "%s: %v, %v", text, wantErr, err)
		require.Equal(t, wantError, answer.Error, text)
		if err != nil {
			for _, kind := range []error{rpc.ErrEnvelope, rpc.ErrResults} {
				require.Equal(t, errors.Is(wantErr, kind), errors.Is(err, kind), "%s: %v, %v", text, wantErr, err)
			}
			continue
		}
		require.Equal(t, want, entries, text)
		if answer.ID != nil {
			require.Equal(t, string(answer.ID), string(body[answer.IDAt:answer.IDAt+len(answer.ID)]))
		}
	}
}

func TestScanAnswerStops(t *testing.T) {
	stop := errors.New("stop")
	require.Equal(t, stop, ScanAnswer([]byte(answers[1]), new(Answer), func(*Entry) error { return stop }))
}

func TestScanEntryRefusesWhatIsNone(t *testing.T) {
	var e Entry
	for _, text := range []string{``, `[]`, `{`, `{"identifier":}`, `{"identifier":"a"`, `7`} {
		require.False(t, ScanEntry([]byte(text), 0, &e), text)
	}
	require.False(t, ScanEntry([]byte(`{}`), 5, &e))
}

func FuzzScanAnswer(f *testing.F) {
	for _, text := range answers {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var answer Answer
		err := ScanAnswer(body, &answer, func(*Entry) error { return nil })
		if err == nil && !json.Valid(body) {
			t.Fatalf("%q is taken for JSON", body)
		}
		_, rpcErr, wantErr := twoPasses(body)
		if string(answer.ID) == `"7"` && (err == nil && answer.Error == nil) != (wantErr == nil && rpcErr == nil) {
			t.Fatalf("%q: %v, %v", body, err, wantErr)
		}
	})
}
