package rpc

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
)

// TestScanResultsStops: an error of the caller ends the walk and comes back as it is.
func TestScanResultsStops(t *testing.T) {
	stop, calls := errors.New("stop"), 0
	err := ScanResults([]byte(`{"record_results":[{},{}]}`), func([]byte, bool, []byte) error { calls++; return stop })
	require.Equal(t, stop, err)
	require.Equal(t, 1, calls)
}

// FuzzScanResults: what is reported, and what is refused and how, is what encoding/json says.
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
