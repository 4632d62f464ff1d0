package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
)

// lines collects what ScanResults reports.
func lines(result string) (got []string, err error) {
	err = ScanResults([]byte(result), func(identifier []byte, success bool, message []byte) error {
		got = append(got, fmt.Sprintf("%s %v %s", identifier, success, message))
		return nil
	})
	return got, err
}

func TestScanResults(t *testing.T) {
	for result, want := range map[string][]string{
		`{"record_results":[]}`: nil,
		`{"record_results":[{"identifier":"a","success":true},{"identifier":2,"success":false,"error_message":"no"}]}`: {`"a" true `, `2 false "no"`},
		` { "x" : [ 1 ] , "record_results" : [ { "success" : true , "identifier" : "a" } ] } `:                         {`"a" true `},
		`{"record_results":[{"identifier":"a","success":true,"error_message":null}]}`:                                  {`"a" true null`},
		`{"record_results":[{"identifier":"a","success":false,"error_message":{"code":1}}]}`:                           {`"a" false {"code":1}`},
		`{"record_results":[{"identifier":"a"},{"success":true},{}]}`:                                                  {`"a" false `, ` true `, ` false `},
		`{"record_results":[{"identifier":"a","success":"true"},{"identifier":"b","success":1}]}`:                      {`"a" false `, `"b" false `},
		`{"record_results":[{"identifier":"a","identifier":"b","success":true,"success":false}]}`:                      {`"b" false `},
		`{"record_results":[{"\u0069dentifier":"a","succes\u0073":true}]}`:                                             {`"a" true `},
	} {
		got, err := lines(result)
		require.NoError(t, err, result)
		require.Equal(t, want, got, result)
	}
}

func TestScanResultsRefuses(t *testing.T) {
	for _, result := range []string{
		`[]`, `null`, `{}`, `{"record_results":{}}`, `{"record_results":null}`, `{"record_results":[1]}`, `{"record_results":[null]}`,
		`{"record_results":[],"record_results":[]}`,
	} {
		_, err := lines(result)
		require.ErrorIs(t, err, ErrResults, result)
	}
	for _, result := range []string{
		``, `{`, `{"record_results":[}`, `{"record_results":[{"identifier":"a"]}`, `{"record_results":[]}x`, `{"record_results":[1,]}`,
		`{"record_results":[{"success":tru}]}`, `{"record_results":[]`, `{"a":1,}`, `{"record_results":[{"a":1,}]}`, `{"record_results":[{}`,
	} {
		_, err := lines(result)
		var syntax *rawjson.SyntaxError
		require.ErrorAs(t, err, &syntax, result)
	}
	stop := errors.New("stop")
	calls := 0
	err := ScanResults([]byte(`{"record_results":[{},{}]}`), func([]byte, bool, []byte) error { calls++; return stop })
	require.Equal(t, stop, err)
	require.Equal(t, 1, calls)
}

func FuzzScanResults(f *testing.F) {
	f.Add([]byte(`{"record_results":[{"identifier":"a","success":true},{"identifier":2,"success":false,"error_message":"no"}]}`))
	f.Add([]byte(`{"x":1,"record_results":[{"identifier":"a","success":null,"error_message":{"a":[]}}, {}]}`))
	f.Add([]byte(`{"record_results":[{"identifier":1,"identifier":2}],"record_results":[]}`))
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
