package hook

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func TestSameValue(t *testing.T) {
	cases := []struct {
		typ          string
		sent, stored string
		same, note   bool
	}{
		{rpc.TypeString, `"é"`, `"\u00e9"`, true, false},
		{rpc.TypeString, `"é"`, `"e\u0301"`, false, false},
		{rpc.TypeString, `"a"`, `"A"`, false, false},
		{rpc.TypeString, `"a"`, `"a "`, false, false},
		{rpc.TypeString, `"1"`, `1`, false, false},
		{rpc.TypeString, `""`, `null`, false, false},
		{rpc.TypeString, `null`, `null`, true, false},
		{rpc.TypeString, `null`, `"null"`, false, false},
		{rpc.TypeString, `"\ud800"`, `"\ufffd"`, false, false},
		{rpc.TypeString, `"\ud800"`, `"\ud800"`, true, false},
		{rpc.TypeString, `"\ud800"`, `"\ud801"`, false, false},
		{rpc.TypeString, `"\uD83D\ude00"`, `"😀"`, true, false},
		{rpc.TypeString, `"\ud83d\u0041"`, `"\uD83DA"`, true, false},
		{rpc.TypeString, `"\ude00\ud83d"`, `"😀"`, false, false},
		{rpc.TypeString, `"\"\\\/\b\f\n\r\t"`, `"\u0022\u005c\u002f\u0008\u000C\u000a\u000d\u0009"`, true, false},
		{rpc.TypeString, `"a"`, `"a`, false, false},
		{rpc.TypeBoolean, `true`, `true`, true, false},
		{rpc.TypeBoolean, `true`, `"true"`, false, false},
		{rpc.TypeBoolean, `true`, `1`, false, false},
		{rpc.TypeBoolean, `false`, `null`, false, false},
		{rpc.TypeInteger, `9007199254740993`, `9007199254740993`, true, false},
		{rpc.TypeInteger, `9007199254740993`, `9007199254740992`, false, false},
		{rpc.TypeInteger, `9007199254740993`, `9.007199254740993e15`, true, false},
		{rpc.TypeInteger, `5`, `5.0`, true, false},
		{rpc.TypeInteger, `5`, `"5"`, false, false},
		{rpc.TypeInteger, `5`, `5e999999999`, false, false},
		{rpc.TypeDecimal, `"1.10"`, `"1.1"`, true, false},
		{rpc.TypeDecimal, `"1.10"`, `1.1`, true, false},
		{rpc.TypeDecimal, `"0.123456789012345678"`, `"0.12345678901234568"`, false, false},
		{rpc.TypeDecimal, `"1"`, `"one"`, false, false},
		{rpc.TypeDecimal, `"12345678901234567890.12"`, `"5"`, false, false},
		{rpc.TypeFloat, `1.5`, `1.50`, true, false},
		{rpc.TypeFloat, `0.1`, `0.1000000000000000055511151231257827`, true, false},
		{rpc.TypeFloat, `-0.0`, `0`, true, false},
		{rpc.TypeFloat, `1.5`, `1.6`, false, false},
		{rpc.TypeFloat, `1.5`, `"1.5"`, false, false},
		{rpc.TypeDate, `"2024-02-29"`, `"2024-02-29"`, true, false},
		{rpc.TypeDate, `"2024-02-29"`, `"2024-02-28"`, false, false},
		{rpc.TypeDate, `"2024-02-29"`, `"2024-02-29T00:00:00Z"`, false, false},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00Z"`, `"2024-02-29T12:00:00.000Z"`, true, false},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00Z"`, `"2024-02-29T13:00:00+01:00"`, true, false},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00Z"`, `"2024-02-29T12:00:00+01:00"`, false, false},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00.123Z"`, `"2024-02-29T12:00:00Z"`, true, true},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00Z"`, `"2024-02-29T12:00:01Z"`, false, false},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00Z"`, `"2024-02-29 12:00:00"`, false, false},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00Z"`, `"2024-02-29T14:00+02:00"`, true, false},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00Z"`, `"2024-02-29 12:00:00.000000+00"`, true, false},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00Z"`, `"2024-02-29T07:00:00-0500"`, true, false},
		{rpc.TypeDateTime, `"2024-02-29T12:00:00Z"`, `"2024-02-29 13:00:00+00"`, false, false},
	}
	for _, c := range cases {
		same, note := SameValue(rpc.Field{Type: c.typ}, json.RawMessage(c.sent), json.RawMessage(c.stored))
		require.Equal(t, c.same, same, "%s: %s and %s", c.typ, c.sent, c.stored)
		require.Equal(t, c.note, note != "", "%s: %s and %s", c.typ, c.sent, c.stored)
	}
}

func TestSameArray(t *testing.T) {
	f := rpc.Field{Type: rpc.TypeInteger, Array: true}
	for stored, want := range map[string]bool{
		`[1,2]`: true, `[1.0,2]`: true,
		`[2,1]`: false, `[1]`: false, `[1,2,3]`: false, `[]`: false, `"1,2"`: false, `null`: false, `[1,"2"]`: false, `[1,null]`: false,
	} {
		same, _ := SameValue(f, json.RawMessage(`[1,2]`), json.RawMessage(stored))
		require.Equal(t, want, same, stored)
	}
	same, _ := SameValue(f, json.RawMessage(`[]`), json.RawMessage(`[]`))
	require.True(t, same)
	same, _ = SameValue(f, json.RawMessage(`[]`), json.RawMessage(`null`))
	require.False(t, same)
}
