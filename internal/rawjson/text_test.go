package rawjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var texts = map[string]string{ // raw string to its text
	`""`:                     "",
	`"pepperoni"`:            "pepperoni",
	`"a\"b\\c\/d\b\f\n\r\t"`: "a\"b\\c/d\b\f\n\r\t",
	`"caf\u00e9"`:            "café",
	`"cafe\u0301"`:           "cafe\u0301", // NFD stays NFD
	`"\ud83d\ude00"`:         "😀",
	`"\uD83D\uDE00!"`:        "😀!",
	`"👩‍👩‍👧‍👦"`:              "👩‍👩‍👧‍👦", // joined by U+200D
	`"\u0000\u001f"`:         "\x00\x1f",
	`"\ufffd"`:               "\uFFFD",
	`"\u2028\u2029"`:         "\u2028\u2029",
}

func TestStringText(t *testing.T) {
	for raw, want := range texts {
		got, err := StringText([]byte(raw))
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
		require.Equal(t, want, MessageText([]byte(raw)), raw)
	}
	for _, raw := range []string{`"\ud800"`, `"\udc00"`, `"\ud800\ud800"`, `"\ud83dx\ude00"`, `"\ud83d\n"`, `"\ud83d\u0041"`} {
		_, err := StringText([]byte(raw))
		require.ErrorIs(t, err, ErrLoneSurrogate, raw)
	}
	for _, raw := range []string{``, `"`, `null`, ` "a"`, `"a" `, `"a"b"`, "\"\xff\"", `"\"`, `{}`} {
		_, err := StringText([]byte(raw))
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, raw)
	}
}

func TestMessageText(t *testing.T) {
	for raw, want := range map[string]string{
		``: "", `null`: "", `"a"`: "a", `{"code":1}`: `{"code":1}`, `42`: "42", `"\ud800x"`: "\uFFFDx", `"broken`: `"broken`, `"`: `"`, `"\"`: `"\"`,
	} {
		require.Equal(t, want, MessageText([]byte(raw)), raw)
	}
}

func TestAppendString(t *testing.T) {
	for _, want := range texts {
		raw := AppendString(nil, want)
		require.NoError(t, Valid(raw))
		got, err := StringText(raw)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Equal(t, `"<&>é"`, string(AppendString(nil, "<&>é")), "nothing is escaped without need")
	require.Equal(t, `"a`+"\uFFFD\uFFFD"+`b"`, string(AppendString(nil, "a\xff\xfeb")))
}

func FuzzStringText(f *testing.F) {
	for raw := range texts {
		f.Add([]byte(raw))
	}
	f.Add([]byte(`"\ud800"`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := StringText(raw)
		var want string
		jsonErr := json.Unmarshal(raw, &want)
		isString := jsonErr == nil && utf8.Valid(raw) && raw[0] == '"' && raw[len(raw)-1] == '"'
		switch {
		case errors.Is(err, ErrLoneSurrogate):
			require.True(t, isString)
			require.Contains(t, want, "\uFFFD")
			require.Equal(t, want, MessageText(raw))
		default:
			require.Equal(t, isString, err == nil, "%q: %v", raw, err)
			require.Equal(t, want[:len(got)], got)
		}
		MessageText(raw)
	})
}

func FuzzAppendString(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Add("a\xffb")
	f.Fuzz(func(t *testing.T, text string) {
		raw := AppendString([]byte("x"), text)[1:]
		require.NoError(t, Valid(raw))
		got, err := StringText(raw)
		require.NoError(t, err)
		// One U+FFFD for each bad byte, as a conversion to runes gives.
		require.Equal(t, string([]rune(text)), got)
		require.Equal(t, strings.Count(text, "\x00"), strings.Count(got, "\x00"))
	})
}
