package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func TestJudge(t *testing.T) {
	yes := func(identifier string) rpc.RecordResult {
		return rpc.RecordResult{Identifier: []byte(identifier), Success: true}
	}
	no := func(identifier, message string) rpc.RecordResult {
		return rpc.RecordResult{Identifier: []byte(identifier), ErrorMessage: message}
	}
	for _, c := range []struct {
		name    string
		keys    []string
		results []rpc.RecordResult
		want    string // a verdict for each key: y, n
		message string // of the last key
	}{
		{"in order", []string{"1", "2"}, []rpc.RecordResult{yes("1"), yes("2")}, "yy", ""},
		{"in another order", []string{"1", "2", "3"}, []rpc.RecordResult{yes("3"), no("1", "x"), yes("2")}, "nyy", ""},
		{"nothing", []string{"1", "2"}, nil, "nn", noVerdict},
		{"one missing", []string{"1", "2"}, []rpc.RecordResult{yes("1")}, "yn", noVerdict},
		{"refused with a message", []string{"1"}, []rpc.RecordResult{no("1", "too long")}, "n", "too long"},
		{"refused without one", []string{"1"}, []rpc.RecordResult{no("1", "")}, "n", refusedSilence},
		{"twice the same", []string{"1"}, []rpc.RecordResult{yes("1"), yes("1")}, "y", ""},
		{"success, then failure", []string{"1"}, []rpc.RecordResult{yes("1"), no("1", "x")}, "n", contradiction},
		{"failure, then success", []string{"1"}, []rpc.RecordResult{no("1", "x"), yes("1")}, "n", contradiction},
		{"identifiers that were not sent", []string{"1"}, []rpc.RecordResult{yes("9"), yes("1"), no("8", "x")}, "y", ""},
		{"only such", []string{"1"}, []rpc.RecordResult{yes("9")}, "n", noVerdict},
		{"an integer as text", []string{"1", "2"}, []rpc.RecordResult{yes(`"1"`), yes(`"2"`)}, "yy", ""},
		{"a text as integer", []string{`"1"`, `"2"`}, []rpc.RecordResult{yes("2"), yes("1")}, "yy", ""},
		{"another escape", []string{`"é/a"`}, []rpc.RecordResult{yes(`"\u00e9\/a"`)}, "y", ""},
		{"no identifier", []string{"1"}, []rpc.RecordResult{{Success: true}, yes("null")}, "n", noVerdict},
		{"a part of another", []string{"1", "11"}, []rpc.RecordResult{yes("11")}, "ny", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			items := make([]item, len(c.keys))
			for i, key := range c.keys {
				items[i].key = []byte(key)
			}
			got := ""
			for _, v := range match(items, c.results, nil) {
				if v == accepted {
					got += "y"
				} else {
					got += "n"
				}
			}
			require.Equal(t, c.want, got)
			if c.want[len(c.want)-1] == 'n' {
				require.Equal(t, c.message, items[len(items)-1].message)
			}
		})
	}
}

func FuzzJudge(f *testing.F) {
	f.Add("1", `"1"`, true)
	f.Add(`"a"`, `"\u0061"`, true)
	f.Add("1", "", false)
	f.Fuzz(func(t *testing.T, key, identifier string, success bool) {
		items := []item{{key: []byte(key)}, {key: []byte("another")}}
		got := match(items, []rpc.RecordResult{{Identifier: []byte(identifier), Success: success}}, nil)
		require.Len(t, got, 2)
		if !success {
			require.NotContains(t, got, accepted)
		}
		if key == identifier && success && key != "another" {
			require.Equal(t, accepted, got[0])
		}
	})
}
