package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		" plain, Grüße, 日本 ":       "plain, Grüße, 日本",
		"a\nb\tc":                  "a b c",
		"a\rb":                     `a\x0db`,
		"\x1b[2J":                  `\x1b[2J`,
		"\u202eevil\u2066":         `\u202eevil\u2066`,
		"a\u200bb\ufeff":           `a\u200bb\ufeff`,
		"\u009b2J\x7f":             `\x9b2J\x7f`,
		"bad \xff":                 `bad \xff`,
		"pay\u200dpal\u200c":       `pay\u200dpal\u200c`,
		"👩\u200d👧 می\u200cخواهم":   "👩\u200d👧 می\u200cخواهم",
		"blank \u3164\u115f\u2800": `blank \u3164\u115f\u2800`,
		"tag \U000e0041":           `tag \U000e0041`,
		"\n ::error::x":            `\::error::x`,
		"x ##[error]y":             `x #\#[error]y`,
		"##vso[task]":              `#\#vso[task]`,
	} {
		require.Equal(t, want, Line(text), "%q", text)
	}
}

// A value from outside cannot begin a line, and the format can.
func TestPrintfKeepsValuesOnOneLine(t *testing.T) {
	type word string
	var b bytes.Buffer
	cause := errors.New("c\n::error::x")
	Printf(&b, "%s|%s|%v|%s|%v|%d\n%s\n", "a\n::b", word("w\nw"), cause, json.RawMessage("\"r\nr\""), []string{"l\nl"}, 7, Own("own\nlines"))
	require.Equal(t, "a ::b|w w|c ::error::x|\"r r\"|[l l]|7\nown\nlines\n", b.String())
	b.Reset()
	Printf(&b, "%04o %s", fs.FileMode(0o644), time.Minute)
	require.Equal(t, "0644 1m0s", b.String())
	b.Reset()
	Printf(&b, "%s", strings.Repeat("é", 2*Longest))
	require.Equal(t, strings.Repeat("é", Longest)+"…", b.String())
	require.ErrorIs(t, fmt.Errorf("x: %w", Args([]any{cause})[0].(error)), cause)
}

func TestWriterIsANet(t *testing.T) {
	for text, want := range map[string]string{
		"plain: a::b\n":               "plain: a::b\n",
		"a\n  ::error::b\n":           "a\n  \\::error::b\n",
		"{\"a\":\"\u202e\x1b\x7f\"}":  `{"a":"\u202e\u001b\u007f"}`,
		"##[group]":                   `#\u0023[group]`,
		"ok \x1b[31mred\x1b[0m":       "ok \x1b[31mred\x1b[0m",
		"\x1b[8mhidden \x1b[2J \x1b]": `\u001b[8mhidden \u001b[2J \u001b]`,
		"a\rb \xff é":                 "a\\u000db \ufffd é",
	} {
		for size := 1; size <= len(text); size++ {
			if size == 1 && strings.ContainsAny(text, "\x1b:#") {
				continue // what is a sequence is written at once
			}
			var b bytes.Buffer
			w := NewWriter(&b, true)
			if strings.ContainsAny(text, "\x1b:#") {
				size = len(text)
			}
			for i := 0; i < len(text); i += size {
				_, err := w.Write([]byte(text[i:min(len(text), i+size)]))
				require.NoError(t, err)
			}
			require.Equal(t, want, b.String(), "%q in pieces of %d", text, size)
		}
	}
	var b bytes.Buffer
	Print(NewWriter(&b, false), "\x1b[31m")
	require.Equal(t, `\u001b[31m`, b.String(), "no colours where there is no terminal")
}

func TestJSONIsHarmlessAndTheSame(t *testing.T) {
	value := map[string]string{"a": "\u202e \u200d \x1b ##[error] \U000e0041 é"}
	var b bytes.Buffer
	require.NoError(t, EncodeJSON(&b, value, ""))
	require.NotContains(t, b.String(), "\u202e")
	require.NotContains(t, b.String(), "##[")
	var back map[string]string
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, value, back)
}

func TestAGroupKeepsItsLines(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Group(NewWriter(&b, false), "a\n::error::t", "\nx\n::endgroup::\n ::error::b\n\x1b[31mred\x1b[0m\n"))
	require.Equal(t, "::group::a ::error::t\nx\n\\::endgroup::\n \\::error::b\n\\u001b[31mred\\u001b[0m\n::endgroup::\n", b.String())
	b.Reset()
	require.NoError(t, Group(NewWriter(&b, true), "t", "\x1b[31mred\x1b[0m"))
	require.Equal(t, "::group::t\n\x1b[31mred\x1b[0m\n::endgroup::\n", b.String())
}
