package destination

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
	"github.com/stretchr/testify/require"
)

const (
	secretToken  = "tok/en+Zq7!x9-very-long-secret"
	secretHeader = "h3ader&val<ue>=42"
	secretPath   = "p4th-s3gm3nt-z9"
	secretQuery  = "qu3ry v4lu3/1x"
)

var everySecret = []string{secretToken, secretHeader, secretPath, secretQuery}

// leaks returns the encodings of secrets that a text holds.
func leaks(text string) []string {
	var found []string
	for _, s := range everySecret {
		for name, form := range testkit.Encodings(s) {
			if strings.Contains(text, form) {
				found = append(found, s+" as "+name)
			}
		}
	}
	return found
}

// No error, no step and no exchange holds a secret of the connection, however
// the endpoint echoes it and wherever the call fails (spec 5.2.3).
func TestSecretsNeverLeak(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter, id, echo string){
		"error object": func(w http.ResponseWriter, id, echo string) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":%s}}`, id, quote("no: "+echo))
		},
		"status": func(w http.ResponseWriter, _, echo string) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, echo)
		},
		"unauthorized": func(w http.ResponseWriter, _, echo string) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "bad %s", echo)
		},
		"garbage": func(w http.ResponseWriter, _, echo string) { fmt.Fprint(w, echo) },
		"encoding": func(w http.ResponseWriter, _, echo string) {
			w.Header().Set("Content-Encoding", strings.Map(visible, echo))
			fmt.Fprint(w, "x")
		},
		"message": func(w http.ResponseWriter, id, echo string) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"success":false,"error_message":%s}}`, id, quote(echo))
		},
		"headers": func(w http.ResponseWriter, id, echo string) {
			w.Header().Set("Retry-After", strings.Map(visible, echo))
			w.Header().Set("X-RateLimit-Limit", strings.Map(visible, echo))
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"success":true}}`, id)
		},
		"redirect": func(w http.ResponseWriter, _, echo string) {
			w.Header().Set("Location", "https://elsewhere.example/"+url.PathEscape(echo))
			w.WriteHeader(http.StatusFound)
		},
		"object name": func(w http.ResponseWriter, id, echo string) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"objects":[{"object_api_name":"a","label":"A","x":%s}],"fields":[{"field_api_name":"a","label":"A","identifier":true,"required":true,"createable":true,"updateable":true,"array":false,"type":%s}],"operations":[%s]}}`,
				id, quote(echo), quote(echo), quote(echo))
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			for i, form := range slices.Sorted(maps.Keys(testkit.Encodings(secretToken))) {
				echo := testkit.Encodings(everySecret[i%len(everySecret)])[form]
				leakOnce(t, func(w http.ResponseWriter, id string) { answer(w, id, echo) })
				leakOnce(t, func(w http.ResponseWriter, id string) { answer(w, id, strings.Repeat("x", 400+i%100)+" "+echo) })
			}
		})
	}
}

func visible(r rune) rune {
	if r < ' ' || r > '~' {
		return '_'
	}
	return r
}

// leakOnce runs everything that a connection can do against an endpoint and
// looks at every text that comes out.
func leakOnce(t *testing.T, answer func(w http.ResponseWriter, id string)) {
	t.Helper()
	var mu sync.Mutex
	var texts []string
	note := func(v any) {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		var plain any
		require.NoError(t, json.Unmarshal(text, &plain))
		texts = append(texts, string(text), fmt.Sprint(plain))
	}
	g := newGate(t, Options{Observe: func(x Exchange) { note(x) }})
	base := server(t, func(w http.ResponseWriter, r *http.Request) {
		var q struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&q)
		answer(w, string(q.ID))
	})
	c, err := g.Open(0, api.TypeCustomAPI, customCreds(t, g, fmt.Sprintf(
		`{"webhook_url":%s,"auth_token":%s,"custom_headers":{"X-Key":{"value":%s,"is_secret":true}}}`,
		quote(base+"/api/"+secretPath+"/x?seg="+url.QueryEscape(secretQuery)), quote(secretToken), quote(secretHeader))))
	require.NoError(t, err)
	defer c.Close()
	note(c.Test(t.Context()))
	objects, err := c.Objects(t.Context())
	note(objects)
	note(fmt.Sprint(err))
	_, failed := call(t.Context(), c, "get_sync_speed", nil)
	note(fmt.Sprint(failed))
	for _, text := range texts {
		require.Empty(t, leaks(text), text)
	}
}

// Problems of a payload never repeat sent values.
func TestProblemsHoldNoValues(t *testing.T) {
	g := newGate(t, Options{})
	for _, body := range []string{
		`{"webhook_url":"ftp://a.example/` + secretPath + `"}`,
		`{"webhook_url":"https://a.example/` + secretPath + ` "}`,
		`{"webhook_url":"https://` + secretPath + `:99999/"}`,
		`{"webhook_url":"https://a.example:` + secretPath + `/"}`,
		`{"webhook_url":"https://user:` + secretPath + `@a.example/"}`,
		`{"webhook_url":"https://a.example/%zz` + secretPath + `"}`,
		`{"webhook_url":["` + secretPath + `"],"auth_token":{"x":"` + secretPath + `"}}`,
		`{"webhook_url":"https://a.example/","auth_token":"` + secretPath + ` x"}`,
		`{"webhook_url":"https://a.example/","custom_headers":{"X":{"value":"` + secretPath + `\n"}}}`,
		`{"webhook_url":"https://a.example/","custom_headers":{"X":"` + secretPath + `"}}`,
		`{"webhook_url":"https://a.example/","custom_headers":"` + secretPath + `"}`,
		`{"api_version":"` + secretPath + `"}`,
	} {
		_, problems := g.CheckConnection(api.TypeCustomAPI, creds(t, body), nil)
		require.NotEmpty(t, problems, body)
		require.NotContains(t, fmt.Sprint(problems), secretPath)
	}
}
