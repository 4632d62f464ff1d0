package source

import (
	"testing"

	"github.com/stretchr/testify/require"
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
