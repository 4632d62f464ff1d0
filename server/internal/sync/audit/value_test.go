package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// TestEqual: allowed spellings of a destination are equal, nothing else is.
func TestEqual(t *testing.T) {
	for _, c := range []struct {
		typ, sent, stored string
		same              bool
	}{
		{rpc.TypeString, `"a"`, `"a"`, true},
		{rpc.TypeString, `"é\u0000"`, `"\u00e9\u0000"`, true},
		{rpc.TypeString, `"1"`, `1`, false},
		{rpc.TypeString, `"1.0"`, `"1"`, false},
		{rpc.TypeString, `"a"`, `"A"`, false},
		{rpc.TypeString, `""`, `null`, false},
		{rpc.TypeString, `null`, ``, true},
		{rpc.TypeString, `"a"`, ``, false},
		{rpc.TypeInteger, `9007199254740993`, `9007199254740993`, true},
		{rpc.TypeInteger, `9007199254740993`, `9007199254740992`, false},
		{rpc.TypeInteger, `9007199254740993`, `9007199254740993.0`, true},
		{rpc.TypeInteger, `1`, `"1"`, false},
		{rpc.TypeDecimal, `"12.50"`, `"12.5"`, true},
		{rpc.TypeDecimal, `"12.5"`, `12.5`, true},
		{rpc.TypeDecimal, `"1234567890123456789.1"`, `"1234567890123456789.2"`, false},
		{rpc.TypeFloat, `42.42`, `4.242e1`, true},
		{rpc.TypeFloat, `0.1`, `0.10000000000000000555`, true},
		{rpc.TypeFloat, `1e400`, `1e500`, false},
		{rpc.TypeFloat, `1e999999999`, `1e999999998`, false},
		{rpc.TypeBoolean, `true`, `true`, true},
		{rpc.TypeBoolean, `true`, `"true"`, false},
		{rpc.TypeDate, `"2021-03-29"`, `"2021-03-29T00:00:00Z"`, false},
		{rpc.TypeDateTime, `"2021-03-29T16:32:23Z"`, `"2021-03-29T16:32:23.000Z"`, true},
		{rpc.TypeDateTime, `"2021-03-29T16:32:23Z"`, `"2021-03-29T18:32:23+02:00"`, true},
		{rpc.TypeDateTime, `"2021-03-29T16:32:23.75Z"`, `"2021-03-29T16:32:23Z"`, true},
		{rpc.TypeDateTime, `"2021-03-29T16:32:23Z"`, `"2021-03-29T16:32:24Z"`, false},
		{rpc.TypeDateTime, `"2021-03-29T16:32:23.75Z"`, `"2021-03-29T16:32:23.25Z"`, false},
		{rpc.TypeString, `["a","b"]`, `["a", "b"]`, true},
		{rpc.TypeString, `["a","b"]`, `["b","a"]`, false},
		{rpc.TypeDecimal, `["1.0",null]`, `["1",null]`, true},
		{"", `{"a":{"b":1,"c":null}}`, `{"a":{"b":1.0}}`, true},
		{"", `{"a":1}`, `{"a":1,"b":2}`, false},
	} {
		require.Equal(t, c.same, equal(c.typ, []byte(c.sent), []byte(c.stored)), "%s: %s and %s", c.typ, c.sent, c.stored)
	}
}
