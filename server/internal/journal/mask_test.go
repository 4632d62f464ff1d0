package journal

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/server/internal/call"
)

// TestMaskedBodies: secrets are replaced wherever they occur, the rest is kept
// as written.
func TestMaskedBodies(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"nothing secret": {`{"name":"Ada","n":1.50}`, `{"name":"Ada","n":1.50}`},
		"credentials": {
			`{"connection":{"name":"x","credentials":{"host":"db","port":5432,"password":"pass-1","user":"u-12"}}}`,
			`{"connection":{"name":"x","credentials":{"host":"db","port":5432,"password":"[hidden]","user":"[hidden]"}}}`,
		},
		"secret below something harmless": {
			`{"credentials":{"columns":[{"name":"a","password":"pass-1"}]}}`,
			`{"credentials":{"columns":[{"name":"a","password":"[hidden]"}]}}`,
		},
		"custom headers": {
			`{"credentials":{"api_version":1,"custom_headers":{"X-A":{"value":"v-12","is_secret":true}}}}`,
			`{"credentials":{"api_version":1,"custom_headers":{"X-A":{"value":"[hidden]","is_secret":true}}}}`,
		},
		"numbers and empty": {`{"password":12345,"secret":"","token":null}`, `{"password":"[hidden]","secret":"","token":null}`},
		"keys in capitals":  {`{"PassWord":"pass-1"}`, `{"PassWord":"[hidden]"}`},
		"escaped key":       {`{"p\u0061ssword":"pass-1"}`, `{"p\u0061ssword":"[hidden]"}`},
		"said again":        {`{"password":"pass-1","note":"it is pass-1!"}`, `{"password":"[hidden]","note":"it is [hidden]!"}`},
		"as a key":          {`{"password":"pass-1","pass-1":true}`, `{"password":"[hidden]","[hidden]":true}`},
		"as a number":       {`{"password":"12345","n":12345}`, `{"password":"[hidden]","n":"[hidden]"}`},
		"workspace key":     {`{"note":"secret-token:abc_DEF-1 and more"}`, `{"note":"[hidden] and more"}`},
		"no JSON":           {`{"password":"pass-1"`, ``},
		"empty":             {``, ``},
		"lists and spaces":  {" [ {\"token\" : [\"a-123\", [\"b-123\"]]} ] ", `[ {"token" : ["[hidden]", ["[hidden]"]]} ]`},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Masks{}
			m.learn([]byte(tc.body))
			require.Equal(t, tc.want, string(m.body([]byte(tc.body), true)))
		})
	}
}

// TestMaskingKeepsJSON: whatever the body, the journal keeps JSON without
// its secrets.
func TestMaskingKeepsJSON(t *testing.T) {
	word := rapid.StringMatching(`[a-zA-Z0-9"\\,:{}\[\] é-]{1,12}`)
	rapid.Check(t, func(rt *rapid.T) {
		var build func(depth int) any
		build = func(depth int) any {
			switch kind := rapid.IntRange(0, 5).Draw(rt, "kind"); {
			case kind == 0 && depth > 0:
				object := map[string]any{}
				for range rapid.IntRange(0, 4).Draw(rt, "members") {
					key := rapid.OneOf(rapid.SampledFrom(append(secretKeys, harmlessKeys...)), word).Draw(rt, "key")
					object[key] = build(depth - 1)
				}
				return object
			case kind == 1 && depth > 0:
				return []any{build(depth - 1), build(depth - 1)}
			case kind == 2:
				return rapid.IntRange(-99999, 99999).Draw(rt, "n")
			case kind == 3:
				return nil
			case kind == 4:
				return rapid.Bool().Draw(rt, "b")
			}
			return word.Draw(rt, "s")
		}
		body, err := json.Marshal(map[string]any{"rest": build(4), "password": "the-known-secret", "echo": "it was the-known-secret."})
		require.NoError(rt, err)
		m := &Masks{}
		m.learn(body)
		kept := m.body(body, true)
		require.True(rt, json.Valid(kept), "%s became %s", body, kept)
		require.NotContains(rt, string(kept), "the-known-secret")
	})
}

func FuzzMask(f *testing.F) {
	for _, seed := range []string{`{}`, `{"password":"x"}`, `[1,2,{"token":["a",{"b":1}]}]`, `"a"`, `{"a":"\""}`, `{"credentials":{"host":"\u0041"}}`, `-1e5`, `{"secret":"true","a":true}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := &Masks{}
		m.learn(body)
		if kept := m.body(body, true); kept != nil {
			require.True(t, json.Valid(kept), "%q became %q", body, kept)
			require.True(t, json.Valid(body))
		}
	})
}

func TestTextsAreCleaned(t *testing.T) {
	r := httptest.NewRequest("POST", "/api/v1/x", nil)
	r.Header.Set("Authorization", "Bearer bearer-secret")
	c := &call.Call{R: r, Body: []byte(`{"credentials":{"auth_token":"a b/c+secret"}}`)}
	text := new(Journal).Clean(c, "dial bearer-secret ?t=a+b%2Fc%2Bsecret, a b/c+secret; secret-token:xyz'")
	require.Equal(t, "dial [hidden] ?t=[hidden], [hidden]; [hidden]'", text)
}
