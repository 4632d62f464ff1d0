package jsonvalue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

func TestBelow(t *testing.T) {
	root, err := wire.Parse([]byte(`{"params":{"records":[{"id":1},{"id":2}],"plan":{"a":{"x":1},"b":{}}}}`))
	require.NoError(t, err)
	for path, want := range map[string][]string{
		"the request":          {" object"},
		"params.records":       {"params.records array"},
		"params.records.*.id":  {"params.records.0.id number", "params.records.1.id number"},
		"params.plan.*.x":      {"params.plan.a.x number", "params.plan.b.x absent"},
		"params.missing.*":     {"params.missing.* absent"},
		"params.records.*.*":   {"params.records.0.id number", "params.records.1.id number"},
		"params.missing.deep":  {"params.missing.deep absent"},
		"params.records.*.y.z": {"params.records.0.y.z absent", "params.records.1.y.z absent"},
	} {
		var got []string
		for _, at := range ValuesAt(root, path) {
			got = append(got, at.Place+" "+at.Node.Type().String())
		}
		require.Equal(t, want, got, path)
	}
}

func TestSameValue(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":"\u00e9"}`, `{"a":"é"}`, true},
		{`[1,2]`, `[2,1]`, false},
		{`1`, `"1"`, false},
		{`1`, `1.0`, false},
		{`{"a":1,"a":1}`, `{"a":1}`, false},
	} {
		a, err := wire.Parse([]byte(row.a))
		require.NoError(t, err)
		b, err := wire.Parse([]byte(row.b))
		require.NoError(t, err)
		require.Equal(t, row.same, SameValue(a, b), "%s and %s", row.a, row.b)
	}
	require.True(t, SameValue(nil, nil))
	a, err := wire.Parse([]byte(`null`))
	require.NoError(t, err)
	require.False(t, SameValue(a, nil))
}
