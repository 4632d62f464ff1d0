package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/rest"
)

func FuzzSchemaOf(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":null,"b":[{}],"c":{"d":"\u0000"}}`, `{}`, `null`, `[]`, `{"":0}`, ` { "a" : true } `, `{"a":-0.0e+1}`} {
		f.Add([]byte(seed))
	}
	names := map[string]bool{"string": true, "number": true, "boolean": true, "object": true, "array": true, "null": true}
	f.Fuzz(func(t *testing.T, message []byte) {
		schema, err := rest.SchemaOf(message)
		var fields map[string]json.RawMessage
		if json.Unmarshal(message, &fields) != nil || len(fields) == 0 {
			require.Error(t, err)
			return
		}
		if err != nil {
			return
		}
		require.Len(t, schema, len(fields))
		for name, kind := range schema {
			require.True(t, names[kind], kind)
			require.Equal(t, kind == "string", strings.HasPrefix(strings.TrimSpace(string(fields[name])), `"`))
		}
	})
}

// TestTopicsBelongToOneSource: a name is free in another source, and a database has none.
func TestTopicsBelongToOneSource(t *testing.T) {
	w := newWorld(t)
	body := `{"name": "t", "sample_message": {"a": 1}}`
	for range 2 {
		w.do("POST", fmt.Sprintf("/sources/%d/topics", w.newTopicSource()), w.key, body).want(201)
	}
	refused := w.do("POST", fmt.Sprintf("/sources/%d/topics", w.newSource()), w.key, body).want(400)
	require.Contains(t, refused.at("message"), "topic_log")
}
