package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/rest"
)

func TestTopic(t *testing.T) {
	proves(t, "F-2.12-01", "F-2.12-02", "F-2.12-03", "F-4-17", "F-4-18", "F-4-33", "F-4.1-13")
	w := newWorld(t)
	topics := fmt.Sprintf("/sources/%d/topics", w.newTopicSource())
	a := w.do("POST", topics, w.key, `{"name": " clicks ", "description": "on pages", "sample_message":
		{"user": "ada", "n": 1, "price": 1.5e3, "neg": -2, "paid": true, "tags": [1], "at": {"x": 1}, "gone": null, "Ünï ☃": ""}}`).want(201)
	require.Equal(t, "created", a.at("status"))
	require.Equal(t, "clicks", a.at("data.name"))
	require.Equal(t, "on pages", a.at("data.description"))
	require.Equal(t, map[string]any{
		"user": "string", "n": "number", "price": "number", "neg": "number", "paid": "boolean",
		"tags": "array", "at": "object", "gone": "null", "Ünï ☃": "string",
	}, a.at("data.schema"))
	path := fmt.Sprintf("%s/%d", topics, a.id("data.id"))
	require.Equal(t, a.at("data"), w.do("GET", path, w.key, nil).want(200).at("data"))
	require.Equal(t, a.at("data"), w.do("GET", topics, w.key, nil).want(200).at("data.0"))

	// What an update leaves out stays; a new sample makes a new schema (spec 4.1.8).
	w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200)
	changed := w.do("PATCH", path, w.key, map[string]any{"description": "anywhere"}).want(200)
	require.Equal(t, "updated", changed.at("status"))
	require.Equal(t, a.at("data.schema"), changed.at("data.schema"))
	require.Equal(t, "clicks", changed.at("data.name"))
	require.Equal(t, a.at("data.created_at"), changed.at("data.created_at"))
	require.NotEqual(t, a.at("data.updated_at"), changed.at("data.updated_at"))
	changed = w.do("PATCH", path, w.key, `{"sample_message": {"user": 7}, "description": null}`).want(200)
	require.Equal(t, map[string]any{"user": "number"}, changed.at("data.schema"))
	require.Nil(t, changed.at("data.description"))
	w.do("PATCH", path, w.key, `{}`).want(200)
	w.remove(path, w.key)
}

func TestTopicProblems(t *testing.T) {
	proves(t, "F-4-17")
	w := newWorld(t)
	topics := fmt.Sprintf("/sources/%d/topics", w.newTopicSource())
	for name, c := range map[string]struct{ body, field string }{
		"no name":         {`{"sample_message": {"a": 1}}`, "name"},
		"blank name":      {`{"name": " ", "sample_message": {"a": 1}}`, "name"},
		"no sample":       {`{"name": "t"}`, "sample_message"},
		"null sample":     {`{"name": "t", "sample_message": null}`, "sample_message"},
		"empty sample":    {`{"name": "t", "sample_message": {}}`, "sample_message"},
		"array as sample": {`{"name": "t", "sample_message": [{"a": 1}]}`, "sample_message"},
		"text as sample":  {`{"name": "t", "sample_message": "{}"}`, "sample_message"},
		"unnamed field":   {`{"name": "t", "sample_message": {"": 1}}`, "sample_message"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.do("POST", topics, w.key, c.body).want(400).problems()
			found := false
			for field := range got {
				found = found || strings.HasPrefix(field, c.field)
			}
			require.True(t, found, "%v", got)
		})
	}
	a := w.do("POST", topics, w.key, `{"name": "t", "sample_message": {"a": 1}}`).want(201)
	w.do("PATCH", fmt.Sprintf("%s/%d", topics, a.id("data.id")), w.key, `{"sample_message": {}}`).want(400)
	require.Equal(t, map[string]any{"a": "number"}, w.do("GET", topics, w.key, nil).want(200).at("data.0.schema"))

	shop := fmt.Sprintf("/sources/%d/topics", w.newSource())
	require.Contains(t, w.do("POST", shop, w.key, `{"name": "t", "sample_message": {"a": 1}}`).want(400).at("message"), "topic_log")
	require.Empty(t, w.do("GET", shop, w.key, nil).want(200).at("data"))
}

// A name is unique within its source, and free in another one.
func TestTopicNames(t *testing.T) {
	proves(t, "F-7.1-10")
	w := newWorld(t)
	topics := fmt.Sprintf("/sources/%d/topics", w.newTopicSource())
	body := `{"name": "t", "sample_message": {"a": 1}}`
	first := w.do("POST", topics, w.key, body).want(201).id("data.id")
	require.NotEmpty(t, w.do("POST", topics, w.key, body).want(409).problems()["name"])
	second := w.do("POST", topics, w.key, strings.Replace(body, `"t"`, `"u"`, 1)).want(201).id("data.id")
	w.do("PATCH", fmt.Sprintf("%s/%d", topics, second), w.key, `{"name": "t"}`).want(409)
	w.do("PATCH", fmt.Sprintf("%s/%d", topics, first), w.key, `{"name": "t"}`).want(200)
	elsewhere := fmt.Sprintf("/sources/%d/topics", w.newTopicSource())
	w.do("POST", elsewhere, w.key, body).want(201)
	w.do("GET", fmt.Sprintf("%s/%d", elsewhere, first), w.key, nil).want(404)
}

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
