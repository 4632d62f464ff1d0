package source

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/internal/source/internal/generated"
	"github.com/destkit/destkit/server/api"
)

func TestGeneratorDefault(t *testing.T) {
	src := open(t, "generator", map[string]any{"rows": 12, "seed": 7}, Options{})
	tables, err := src.Tables(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"main.main.generated"}, names(tables))
	require.Equal(t, []string{"id id integer", "email email string", "first_name first_name string", "last_name last_name string", "company_id integer integer",
		"city city string", "balance decimal decimal", "active boolean boolean", "signed_up_on date date", "updated_at date_time date_time"}, short(tables[0].Columns))
	rows := readAll(t, src, Object{Name: "generated"}, nil, nil)
	require.Len(t, rows, 12)
	require.Equal(t, rows, readAll(t, open(t, "generator", map[string]any{"rows": 12, "seed": 7}, Options{}), Object{Name: "generated"}, nil, nil), "the same seed, the same rows")
	require.NotEqual(t, rows, readAll(t, open(t, "generator", map[string]any{"rows": 12, "seed": 8}, Options{}), Object{Name: "generated"}, nil, nil))
	more := readAll(t, open(t, "generator", map[string]any{"rows": 20, "seed": 7}, Options{}), Object{Name: "generated"}, nil, nil)
	require.Equal(t, rows, more[:12], "more rows change none")

	for _, o := range []Object{{Name: "rows"}, {Schema: "x", Name: "generated"}, {}} {
		_, err := src.Columns(t.Context(), o)
		require.ErrorIs(t, err, ErrNoTable)
	}
	require.Empty(t, readAll(t, open(t, "generator", map[string]any{"rows": 0}, Options{}), Object{Name: "generated"}, nil, []string{"id"}))
}

// TestGeneratedTypes: every type makes values of its kind.
func TestGeneratedTypes(t *testing.T) {
	var columns []any
	for _, name := range generated.Types() {
		columns = append(columns, map[string]any{"name": name, "type": name})
	}
	src := open(t, "generator", map[string]any{"rows": 300, "columns": columns}, Options{})
	described, err := src.Columns(t.Context(), Object{Name: "generated"})
	require.NoError(t, err)
	for i, line := range readAll(t, src, Object{Name: "generated"}, nil, nil) {
		var cells []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &cells))
		for c, value := range cells {
			requireCanonical(t, value)
			text := strings.Trim(string(value), `"`)
			switch described[c].Kind {
			case api.KindInteger:
				require.True(t, cell.IsInteger(text), "%s", value)
			case api.KindDecimal, api.KindFloat:
				require.True(t, cell.IsFloat(text), "%s", value)
			case api.KindBoolean:
				require.True(t, cell.IsBoolean(text), "%s", value)
			case api.KindDate:
				require.True(t, cell.IsDate(text), "%s", value)
			case api.KindDateTime:
				require.True(t, cell.IsMoment(text), "%s", value)
			case api.KindObject:
				require.Equal(t, byte('{'), value[0])
			case api.KindArray:
				require.Equal(t, byte('['), value[0])
			case api.KindString:
				require.Equal(t, byte('"'), value[0])
			default:
				t.Fatalf("kind %s", described[c].Kind)
			}
			switch described[c].Name {
			case "id":
				require.Equal(t, strconv.Itoa(i+1), text)
			case "uuid":
				require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, text)
			}
		}
	}
}

func TestGeneratorDistinctAndNull(t *testing.T) {
	src := open(t, "generator", map[string]any{"rows": 5000, "columns": []any{
		map[string]any{"name": "few", "type": "email", "distinct": 7},
		map[string]any{"name": "all", "type": "email"},
		map[string]any{"name": "some", "type": "date", "null_percent": 30},
		map[string]any{"name": "none", "type": "date", "null_percent": 100},
	}}, Options{})
	count := make([]map[string]int, 4)
	for i := range count {
		count[i] = map[string]int{}
	}
	for _, line := range readAll(t, src, Object{Name: "generated"}, nil, nil) {
		var cells []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &cells))
		for i, c := range cells {
			count[i][string(c)]++
		}
	}
	require.Len(t, count[0], 7)
	require.Len(t, count[1], 5000)
	require.InDelta(t, 1500, count[2]["null"], 150)
	require.Equal(t, map[string]int{"null": 5000}, count[3])
}

func TestGeneratorOrder(t *testing.T) {
	src := open(t, "generator", map[string]any{"rows": 1234}, Options{})
	for _, column := range []string{"id", "email", "company_id", "city"} {
		rows := readAll(t, src, Object{Name: "generated"}, []string{column}, []string{column, "id"})
		require.Len(t, rows, 1234)
		require.True(t, slices.IsSortedFunc(rows, func(a, b string) int {
			return strings.Compare(strings.TrimSuffix(a, "]"), strings.TrimSuffix(b, "]"))
		}), column)
	}
}

// requireCanonical holds a value to the one form that keys compare in. Damaged
// text has no such form: it is never a key.
func requireCanonical(t *testing.T, v []byte) {
	t.Helper()
	require.True(t, json.Valid(v), "%q", v)
	require.True(t, utf8.Valid(v), "%q", v)
	require.Equal(t, strings.ReplaceAll(string(v), rawjson.LostByte, "\ufffd"), string(cell.AppendCanonical(nil, v)))
}
