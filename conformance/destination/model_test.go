package destination

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// modelled is a record of an object "contact" with the key "a".
func modelled(values string) *record {
	r := &record{object: &object{Object: rpc.Object{APIName: "contact"}}, id: rpc.Field{APIName: "email"}, key: json.RawMessage(`"a"`)}
	if err := json.Unmarshal([]byte(values), &r.values); err != nil {
		panic(err)
	}
	return r
}

// answered is a batch of one operation with its results.
func answered(t *testing.T, operation, results string, records ...*record) *batch {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":"1","result":{"record_results":` + results + `}}`
	if results == "" {
		body = `{"jsonrpc":"2.0","id":"1","error":{"code":-32000,"message":"no"}}`
	}
	r := &reply{Reply: &wire.Reply{Body: []byte(body)}}
	r.Parse(nil)
	b := &batch{object: records[0].object, operation: operation, records: records, reply: r}
	b.read()
	return b
}

const (
	yes       = `[{"identifier":"a","success":true}]`
	no        = `[{"identifier":"a","success":false,"error_message":"no"}]`
	yesNo     = `[{"identifier":"a","success":true},{"identifier":"a","success":false}]`
	noResults = `[]`
	noWord    = `[{"identifier":"a"}]`
	rpcError  = ""
)

func TestModel(t *testing.T) {
	type sent struct{ operation, results, values string }
	cases := []struct {
		name   string
		sent   []sent
		known  bool
		values string // "" when it is absent
	}{
		{"upsert creates", []sent{{"upsert", yes, `{"x":1}`}}, true, `{"x":1}`},
		{"upsert changes and keeps the rest", []sent{{"upsert", yes, `{"x":1,"y":1}`}, {"upsert", yes, `{"x":2}`}}, true, `{"x":2,"y":1}`},
		{"insert creates", []sent{{"insert", yes, `{"x":1}`}}, true, `{"x":1}`},
		{"insert leaves alone what exists", []sent{{"insert", yes, `{"x":1}`}, {"insert", yes, `{"x":2}`}}, true, `{"x":1}`},
		{"update of nothing creates nothing", []sent{{"update", yes, `{"x":1}`}}, true, ""},
		{"update changes", []sent{{"upsert", yes, `{"x":1}`}, {"update", yes, `{"x":2}`}}, true, `{"x":2}`},
		{"delete removes", []sent{{"upsert", yes, `{"x":1}`}, {"delete", yes, `{}`}}, true, ""},
		{"delete forgets the old values", []sent{{"upsert", yes, `{"x":1}`}, {"delete", yes, `{}`}, {"upsert", yes, `{"y":1}`}}, true, `{"y":1}`},
		{"a refusal changes nothing", []sent{{"upsert", yes, `{"x":1}`}, {"upsert", no, `{"x":2}`}}, true, `{"x":1}`},
		{"a refusal creates nothing", []sent{{"upsert", no, `{"x":1}`}}, true, ""},
		{"the error of a lone record is a refusal", []sent{{"upsert", rpcError, `{"x":1}`}}, true, ""},
		{"no result", []sent{{"upsert", noResults, `{"x":1}`}}, false, ""},
		{"a result without a word", []sent{{"upsert", noWord, `{"x":1}`}}, false, ""},
		{"results that disagree", []sent{{"upsert", yesNo, `{"x":1}`}}, false, ""},
		{"known again after an upsert", []sent{{"upsert", noResults, `{"x":1}`}, {"upsert", yes, `{"x":2}`}}, true, `{"x":2}`},
		{"known again after a delete", []sent{{"upsert", noResults, `{"x":1}`}, {"delete", yes, `{}`}}, true, ""},
		{"an insert on what is unknown tells nothing", []sent{{"upsert", noResults, `{"x":1}`}, {"insert", yes, `{"x":2}`}}, false, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := newModel()
			for _, s := range c.sent {
				m.apply(answered(t, s.operation, s.results, modelled(s.values)))
			}
			e := m.all()[0]
			require.Len(t, m.all(), 1)
			require.Equal(t, c.known, e.known)
			if !c.known {
				return
			}
			require.Equal(t, c.values != "", e.exists)
			if c.values != "" {
				got, err := json.Marshal(e.values)
				require.NoError(t, err)
				require.JSONEq(t, c.values, string(got))
			}
		})
	}
}

// TestModelOfABatchError: with several records it is unknown which were written.
func TestModelOfABatchError(t *testing.T) {
	other := modelled(`{"x":1}`)
	other.key = json.RawMessage(`"b"`)
	m := newModel()
	m.apply(answered(t, "upsert", rpcError, modelled(`{"x":1}`), other))
	for _, e := range m.all() {
		require.False(t, e.known)
	}
}

func TestModelKeepsPlacesApart(t *testing.T) {
	m := newModel()
	a, order, second := modelled(`{}`), modelled(`{}`), modelled(`{}`)
	order.object = &object{Object: rpc.Object{APIName: "order"}}
	second.id = rpc.Field{APIName: "number"}
	require.NotSame(t, m.get(a), m.get(order))
	require.NotSame(t, m.get(a), m.get(second))
	require.Same(t, m.get(a), m.get(modelled(`{}`)), "escapes and copies are the same key")
	escaped := modelled(`{}`)
	escaped.key = json.RawMessage(`"\u0061"`)
	require.Same(t, m.get(a), m.get(escaped))
	require.Len(t, m.all(), 3)
}
