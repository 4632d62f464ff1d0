package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

func TestOneStatement(t *testing.T) {
	for text, want := range map[string][2]string{
		"SELECT 1":                         {"SELECT 1", ""},
		" SELECT 1 ; -- x":                 {" SELECT 1", ""},
		"SELECT ';' ;;":                    {"SELECT ';'", ""},
		`SELECT "a;""b" FROM [c;] /* ; */`: {`SELECT "a;""b" FROM [c;]`, ""},
		"SELECT 'it''s; fine', `x;``y`":    {"SELECT 'it''s; fine', `x;``y`", ""},
		"SELECT 1; SELECT 2":               {"", "must be one statement"},
		"SELECT 1;/**/x":                   {"", "must be one statement"},
		"-- only a comment":                {"", "is empty"},
		"/* open":                          {"", "is empty"},
		"SELECT 'open ; x":                 {"SELECT 'open ; x", ""},
		"SELECT [open ; x":                 {"SELECT [open ; x", ""},
		"SELECT \x00":                      {"", "NUL"},
	} {
		body, problem, _ := oneStatement(text)
		if want[1] == "" {
			require.Empty(t, problem, text)
			require.Equal(t, want[0], body)
		} else {
			require.Contains(t, problem, want[1], text)
		}
	}
}

// FuzzNextToken: tokens cover any text without gap or end.
func FuzzNextToken(f *testing.F) {
	for _, seed := range []string{"SELECT 'a''b' -- x\n FROM \"t\"", "/*", "'", "[", "`a.b`.c", "\xff\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i := 0; i < len(text); {
			token := nextToken(text, i)
			require.Equal(t, i, token.start)
			require.Greater(t, token.end, i)
			require.LessOrEqual(t, token.end, len(text))
			_ = unquoted(text[token.start:token.end])
			i = token.end
		}
		w := &warehouse{catalog: "c", dialect: BuiltIn().types["snowflake"].dialect}
		_, places := w.rewrite(nil, text, true)
		last := 0
		for i := range len(text) {
			at := original(places, i)
			require.GreaterOrEqual(t, at, last)
			last = at
		}
	})
}

// Types are those of the built-in catalogue.
func Types() []api.SourceType { return BuiltIn().Types() }

// CheckCredentials is that of the built-in catalogue.
func CheckCredentials(typ string, credentials map[string]json.RawMessage) []api.Problem {
	return BuiltIn().CheckCredentials(typ, credentials)
}

// OpenAt is that of the built-in catalogue.
func OpenAt(ctx context.Context, typ string, credentials map[string]json.RawMessage, o Options, object Object) (src Source, columns []api.Column, missing, err error) {
	return BuiltIn().OpenAt(ctx, typ, credentials, o, object)
}

// Details are those of the built-in catalogue.
func Details(typ string, credentials map[string]json.RawMessage) map[string]any {
	return BuiltIn().Details(typ, credentials)
}

// TestSortOnDisk: more than fits goes to disk and comes back whole.
func TestSortOnDisk(t *testing.T) {
	pad := string(bytes.Repeat([]byte("x"), 500))
	src := open(t, "jsonl", map[string]any{"path": testkit.WriteFile(t, "a.jsonl", func() string {
		var b bytes.Buffer
		for i := range 40_000 {
			fmt.Fprintf(&b, "{\"k\":%d,\"pad\":%q}\n", (i*7919)%40_000, pad)
		}
		return b.String()
	}())}, Options{Scratch: t.TempDir()})
	rows, err := src.(Reader).Rows(t.Context(), Object{Name: "a"}, []string{"k", "pad"}, []string{"k"})
	require.NoError(t, err)
	require.Equal(t, "*rowsort.merge", fmt.Sprintf("%T", rows))
	var last string
	n := 0
	for {
		values, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Greater(t, string(values[0]), last)
		require.Len(t, values[1], 502)
		require.True(t, json.Valid(values[1]))
		last = string(values[0])
		n++
	}
	require.Equal(t, 40_000, n)
	require.NoError(t, rows.Close())
}

// TestSortsSayWhyTheyFail: the reason of a reading that is sorted is that of the reading.
func TestSortsSayWhyTheyFail(t *testing.T) {
	_, err := limited(t, Limits{}).Rows(t.Context(), Object{Query: "SELECT id, zeroblob(400000000) AS long FROM t"}, nil, []string{"id"})
	require.ErrorContains(t, err, "a row has more than")
}
