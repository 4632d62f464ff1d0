package mapping

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/liquid"
)

func TestRenderJSON(t *testing.T) {
	record := map[string]any{
		"object": `{"raw": true}`, "quote": `say "hi"` + "\n", "n": int64(5), "nil": nil, "list": []any{"a", `b"c`}, "big": json.Number("9007199254740993"),
	}
	for text, want := range map[string]any{
		`{"a": "{{ record.quote }}", "n": {{ record.n }}}`: map[string]any{"a": "say \"hi\"\n", "n": json.Number("5")},
		`{{ record.list | json }}`:                         []any{"a", `b"c`},
		`{{ record.big }}`:                                 json.Number("9007199254740993"),
		`[{% for i in record.list %}"{{ i }}"{% unless forloop.last %},{% endunless %}{% endfor %}]`: []any{"a", `b"c`},
		`{{ record.object | raw }}`:         map[string]any{"raw": true},
		"- a\n- b: {{ record.n }}\n":        []any{"a", map[string]any{"b": json.Number("5")}},
		`key: "{{ record.quote | strip }}"`: map[string]any{"key": `say "hi"`},
		``:                                  nil,
		`{{ record.nil }}`:                  nil,
	} {
		template, err := liquid.Parse(text)
		require.NoError(t, err, text)
		got, err := renderValue(template, record, liquid.Limits{})
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"a: [", "a: &x [1]\nb: *x\n", "a: .inf"} {
		template, err := liquid.Parse(text)
		require.NoError(t, err)
		_, err = renderValue(template, record, liquid.Limits{})
		require.ErrorContains(t, err, "read output as YAML")
	}
}
