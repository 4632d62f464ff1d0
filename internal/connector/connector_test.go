package connector

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// Each type reads what clients send for it; unreadable values stay.
func TestCoerce(t *testing.T) {
	required := api.Rules{Words: []string{Required}}
	fields := []api.ConfigField{
		{ID: "name", Type: String}, {ID: "must", Type: String, Rules: required}, {ID: "port", Type: Integer},
		{ID: "flag", Type: Boolean}, {ID: "key", Type: Object}, {ID: "list", Type: Array},
	}
	for _, c := range []struct{ field, sent, want string }{
		{"name", `"x"`, `"x"`}, {"name", `12.50`, `"12.50"`}, {"name", `true`, `"true"`}, {"name", `{"a": 1}`, `"{\"a\":1}"`}, {"name", `null`, `null`},
		{"must", `""`, `""`}, {"port", `"5439"`, `5439`}, {"port", `" 007 "`, `7`}, {"port", `5439`, `5439`}, {"port", `"many"`, `"many"`},
		{"flag", `"true"`, `true`}, {"flag", `"False"`, `false`}, {"flag", `1`, `true`}, {"flag", `0`, `false`}, {"flag", `"perhaps"`, `"perhaps"`},
		{"key", `"{\"a\":1}"`, `{"a":1}`}, {"key", `{"a":1}`, `{"a":1}`}, {"key", `"{"`, `"{"`}, {"list", `"[1]"`, `[1]`},
	} {
		sent := map[string]Raw{c.field: Raw(c.sent)}
		require.Equal(t, map[string]Raw{c.field: Raw(c.want)}, Coerce(fields, sent), c.sent)
		require.Equal(t, c.sent, string(sent[c.field]), "what was sent is the caller's")
	}
	for _, field := range []string{"name", "port", "flag", "key", "list"} {
		require.Empty(t, Coerce(fields, map[string]Raw{field: Raw(`""`)}), field)
	}
}

// Of several ways to log in one must be complete, and the message names it.
func TestProblemsOfSets(t *testing.T) {
	d := Declared{
		Credentials: []Field{{ID: "id"}, {ID: "secret"}, {ID: "user"}, {ID: "login", AliasOf: "user"}, {ID: "key", RequiredIf: "signed"}, {ID: "signed", Type: Boolean}},
		OneOf:       [][]string{{"id", "secret"}, {"user", "key"}},
	}
	for given, want := range map[string][]string{
		`{"id":"a","secret":"b"}`:               nil,
		`{"user":"a","key":"b","id":""}`:        nil,
		`{"id":"a"}`:                            {"secret: is required beside id; or give user and key"},
		`{"key":"a"}`:                           {"user: is required, as user or login beside key; or give id and secret"},
		`{}`:                                    {"id: is required beside secret; or give user and key", "secret: is required beside id; or give user and key"},
		`{"id":"a","secret":"b","signed":true}`: {"key: is required with signed"},
	} {
		var credentials map[string]Raw
		require.NoError(t, json.Unmarshal([]byte(given), &credentials))
		var said []string
		for _, p := range d.Lacking(credentials) {
			said = append(said, p.Field+": "+p.Message)
		}
		require.Equal(t, want, said, given)
	}
}

func FuzzCoerce(f *testing.F) {
	for _, seed := range []string{`"5439"`, `1e400`, `{"a":[1]}`, `"{\"a\":1}"`, `""`, `tru`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, typ := range []string{String, Integer, Boolean, Object, Array} {
			fields := []api.ConfigField{{ID: "x", Type: typ}}
			for _, value := range Coerce(fields, map[string]Raw{"x": Raw(text)}) {
				require.Equal(t, json.Valid([]byte(text)), json.Valid(value), "%s: %s", typ, value)
			}
		}
	})
}
