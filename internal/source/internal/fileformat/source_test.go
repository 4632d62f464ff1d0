package fileformat_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

// open opens a source that must open.
func open(t testing.TB, typ string, values map[string]any, o source.Options) source.Source {
	t.Helper()
	credentials := map[string]json.RawMessage{}
	for key, v := range values {
		credentials[key] = api.Raw(v)
	}
	src, err := source.Open(t.Context(), typ, credentials, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, src.Close()) })
	return src
}

// readAll reads rows as one JSON array each.
func readAll(t testing.TB, src source.Source, object source.Object, columns, order []string) []string {
	t.Helper()
	rows, err := src.(source.Reader).Rows(t.Context(), object, columns, order)
	require.NoError(t, err)
	return testkit.Rows(t, rows)
}

// short writes columns as "name type kind".
func short(columns []api.Column) []string {
	out := []string{}
	for _, c := range columns {
		out = append(out, c.Name+" "+c.Type+" "+string(c.Kind))
	}
	return out
}

// requireCanonical holds a value to the one form that keys compare in. Damaged
// text has no such form: it is never a key.
func requireCanonical(t *testing.T, v []byte) {
	t.Helper()
	require.True(t, json.Valid(v), "%q", v)
	require.True(t, utf8.Valid(v), "%q", v)
	require.Equal(t, strings.ReplaceAll(string(v), rawjson.LostByte, "\ufffd"), string(cell.AppendCanonical(nil, v)))
}
