package destination

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/destkit/destkit/server/api"
	"github.com/stretchr/testify/require"
)

// problem texts as "place: message" without the common prefix.
func said(problems []api.Problem) []string {
	list := []string{}
	for _, p := range problems {
		list = append(list, strings.TrimPrefix(p.String(), credentialsField+"."))
	}
	return list
}

func TestCustomCredentials(t *testing.T) {
	const url = `"webhook_url":"https://destination.example/rpc"`
	cases := []struct {
		name, given string
		want        []string // beginnings of the problems; none: it is good
	}{
		{"minimal", `{` + url + `}`, nil},
		{"everything", `{"api_version":1,` + url + `,"auth_token":"t0ken","custom_headers":{"X-A":{"value":"a","is_secret":true}}}`, nil},
		{"null for nothing", `{` + url + `,"auth_token":null,"custom_headers":null,"api_version":null}`, nil},
		{"empty token for none", `{` + url + `,"auth_token":""}`, nil},
		{"localhost", `{"webhook_url":"http://localhost:8000"}`, nil},
		{"127.0.0.1", `{"webhook_url":"http://127.9.9.9/x"}`, nil},
		{"::1", `{"webhook_url":"http://[::1]:80/x"}`, nil},
		{"mapped loopback", `{"webhook_url":"http://[::ffff:127.0.0.1]/x"}`, nil},
		{"nothing", `{}`, []string{"webhook_url: is required"}},
		{"all at once", `{"api_version":2,"webhook_url":"ftp://x","auth_token":7,"custom_headers":[],"colour":"red"}`, []string{
			"colour: unknown credential; custom_api takes api_version, webhook_url, auth_token, custom_headers",
			"api_version: must be 1", "webhook_url: must match", "auth_token: must be a string", "custom_headers: must be an object",
		}},
		{"version as text", `{"api_version":"1",` + url + `}`, []string{"api_version: must be an integer"}},
		{"version as float", `{"api_version":1.0,` + url + `}`, []string{"api_version: must be an integer"}},
		{"null URL", `{"webhook_url":null}`, []string{"webhook_url: is required"}},
		{"empty URL", `{"webhook_url":""}`, []string{"webhook_url: must not be empty"}},
		{"relative URL", `{"webhook_url":"/rpc"}`, []string{"webhook_url: must match"}},
		{"plain http", `{"webhook_url":"http://destination.example/"}`, []string{"webhook_url: must start with https://"}},
		{"plain http to a lookalike", `{"webhook_url":"http://localhost.example/"}`, []string{"webhook_url: must start with https://"}},
		{"user", `{"webhook_url":"https://u:p@destination.example/"}`, []string{"webhook_url: must not hold a user"}},
		{"fragment", `{"webhook_url":"https://destination.example/#x"}`, []string{"webhook_url: must not hold a fragment"}},
		{"empty fragment", `{"webhook_url":"https://destination.example/#"}`, []string{"webhook_url: must not hold a fragment"}},
		{"no host", `{"webhook_url":"https:///rpc"}`, []string{"webhook_url: names no host"}},
		{"only a port", `{"webhook_url":"https://:443/rpc"}`, []string{"webhook_url: names no host"}},
		{"port 0", `{"webhook_url":"https://destination.example:0/"}`, []string{"webhook_url: has a port outside"}},
		{"port 65536", `{"webhook_url":"https://destination.example:65536/"}`, []string{"webhook_url: has a port outside"}},
		{"port text", `{"webhook_url":"https://destination.example:x/"}`, []string{"webhook_url: is not a URL"}},
		{"no port", `{"webhook_url":"https://destination.example:/"}`, []string{"webhook_url: has a colon without a port"}},
		{"space", `{"webhook_url":"https://destination.example/a b"}`, []string{"webhook_url: must not hold spaces"}},
		{"line end", `{"webhook_url":"https://destination.example/\r\n"}`, []string{"webhook_url: must not hold control"}},
		{"bad escape", `{"webhook_url":"https://destination.example/%zz"}`, []string{"webhook_url: is not a URL"}},
		{"zone", `{"webhook_url":"https://[fe80::1%25eth0]/"}`, []string{"webhook_url: names no valid host"}},
		{"umlaut", `{"webhook_url":"https://m\u00fcller.example/"}`, []string{"webhook_url: names no valid host"}},
		{"empty label", `{"webhook_url":"https://a..example/"}`, []string{"webhook_url: names no valid host"}},
		{"long", `{"webhook_url":"https://destination.example/` + strings.Repeat("a", maxURL) + `"}`, []string{"webhook_url: is longer than"}},
		{"token with a space", `{` + url + `,"auth_token":"a b"}`, []string{"auth_token: must be visible"}},
		{"token with a line end", `{` + url + `,"auth_token":"a\nb"}`, []string{"auth_token: must not hold control characters"}},
		{"header as text", `{` + url + `,"custom_headers":{"X-A":"a"}}`, []string{"custom_headers.X-A: must be an object such as"}},
		{"header null", `{` + url + `,"custom_headers":{"X-A":null}}`, []string{"custom_headers.X-A: must be an object such as"}},
		{"header without value", `{` + url + `,"custom_headers":{"X-A":{"is_secret":true}}}`, []string{"custom_headers.X-A.value: is required"}},
		{"header value a number", `{` + url + `,"custom_headers":{"X-A":{"value":7}}}`, []string{"custom_headers.X-A.value: must be a string"}},
		{"header value with a line end", `{` + url + `,"custom_headers":{"X-A":{"value":"a\r\nX-B: b"}}}`, []string{"custom_headers.X-A.value: is not a valid header value"}},
		{"header secrecy a text", `{` + url + `,"custom_headers":{"X-A":{"value":"a","is_secret":"yes"}}}`, []string{"custom_headers.X-A.is_secret: must be true or false"}},
		{"header with more", `{` + url + `,"custom_headers":{"X-A":{"value":"a","secret":true}}}`, []string{"custom_headers.X-A.secret: unknown member"}},
		{"header name", `{` + url + `,"custom_headers":{"X A":{"value":"a"}}}`, []string{`custom_headers["X A"]: is not a valid header name`}},
		{"header name empty", `{` + url + `,"custom_headers":{"":{"value":"a"}}}`, []string{`custom_headers[""]: is not a valid header name`}},
		{"protected", `{` + url + `,"custom_headers":{"host":{"value":"a"},"content-LENGTH":{"value":"1"},"Content-Type":{"value":"x"},"Transfer-Encoding":{"value":"x"},"Connection":{"value":"x"}}}`,
			[]string{"custom_headers.Connection: is set by", "custom_headers.Content-Type: is set by", "custom_headers.Transfer-Encoding: is set by",
				"custom_headers.content-LENGTH: is set by", "custom_headers.host: is set by"}},
		{"authorization alone", `{` + url + `,"custom_headers":{"Authorization":{"value":"Basic eA==","is_secret":true}}}`, nil},
		{"authorization beside a token", `{` + url + `,"auth_token":"tok","custom_headers":{"authorization":{"value":"x"}}}`, []string{"custom_headers.authorization: the token is sent in this header"}},
		{"one header twice", `{` + url + `,"custom_headers":{"X-A":{"value":"a"},"x-a":{"value":"b"}}}`, []string{"custom_headers.x-a: is the header X-A in other letters"}},
	}
	g := newGate(t, Options{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, problems := g.CheckConnection(api.TypeCustomAPI, creds(t, c.given), nil)
			got := said(problems)
			require.Len(t, got, len(c.want), "%q", got)
			for i := range c.want {
				require.True(t, strings.HasPrefix(got[i], c.want[i]), "%q", got[i])
			}
		})
	}
}

// Updates: omitted fields stay, a token can be changed and not removed, a
// secret header with null keeps its value (spec 5.2.2).
func TestUpdates(t *testing.T) {
	const stored = `{"api_version":1,"webhook_url":"https://a.example/x","auth_token":"old-token","custom_headers":{"X-Secret":{"value":"s3cret","is_secret":true},"X-Open":{"value":"o","is_secret":false}}}`
	cases := []struct {
		name, given string
		want        string // the merged credentials, or
		problem     string
	}{
		{"nothing", `{}`, stored, ""},
		{"another URL", `{"webhook_url":"https://b.example/y"}`, strings.Replace(stored, "a.example/x", "b.example/y", 1), ""},
		{"another token", `{"auth_token":"new"}`, strings.Replace(stored, "old-token", "new", 1), ""},
		{"token null", `{"auth_token":null}`, "", "auth_token: can be changed, not removed"},
		{"token empty", `{"auth_token":""}`, "", "auth_token: can be changed, not removed"},
		{"URL null", `{"webhook_url":null}`, "", "webhook_url: is required"},
		{"headers null", `{"custom_headers":null}`, `{"api_version":1,"webhook_url":"https://a.example/x","auth_token":"old-token"}`, ""},
		{"headers empty", `{"custom_headers":{}}`, `{"api_version":1,"webhook_url":"https://a.example/x","auth_token":"old-token"}`, ""},
		{"what a reply showed", `{"api_version":1,"webhook_url":"https://a.example/x","custom_headers":{"X-Secret":{"value":null,"is_secret":true},"X-Open":{"value":"o","is_secret":false}}}`, stored, ""},
		{"secrecy left out", `{"custom_headers":{"x-secret":{"value":null}}}`,
			`{"api_version":1,"webhook_url":"https://a.example/x","auth_token":"old-token","custom_headers":{"x-secret":{"value":"s3cret","is_secret":true}}}`, ""},
		{"uncovering a secret", `{"custom_headers":{"X-Secret":{"value":null,"is_secret":false}}}`, "", "custom_headers.X-Secret.value: is required"},
		{"null for an open one", `{"custom_headers":{"X-Open":{"value":null,"is_secret":true}}}`, "", "custom_headers.X-Open.value: is required"},
		{"authorization header beside the stored token", `{"custom_headers":{"Authorization":{"value":"x"}}}`, "", "custom_headers.Authorization: the token"},
		{"version 2", `{"api_version":2}`, "", "api_version: must be 1"},
	}
	g := newGate(t, Options{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			previous := creds(t, stored)
			merged, problems := g.CheckConnection(api.TypeCustomAPI, creds(t, c.given), previous)
			require.Equal(t, creds(t, stored), previous, "the stored credentials are left alone")
			if c.problem != "" {
				require.Len(t, problems, 1)
				require.Contains(t, said(problems)[0], c.problem)
				return
			}
			require.Empty(t, problems)
			text, err := json.Marshal(merged)
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(text))
		})
	}
	merged, problems := g.CheckConnection(api.TypeCustomAPI, nil, creds(t, stored))
	require.Empty(t, problems)
	require.Equal(t, creds(t, stored), merged)
}

// A token that was never set may be given as null or "" again and again.
func TestTokenNeverSet(t *testing.T) {
	g := newGate(t, Options{})
	for _, given := range []string{`{"auth_token":null}`, `{"auth_token":""}`} {
		merged, problems := g.CheckConnection(api.TypeCustomAPI, creds(t, given), creds(t, `{"webhook_url":"https://a.example/"}`))
		require.Empty(t, problems)
		require.NotContains(t, merged, "auth_token")
	}
}

func TestUnknownType(t *testing.T) {
	g := newGate(t, Options{})
	_, problems := g.CheckConnection("custom", nil, nil)
	require.Len(t, problems, 1)
	require.Equal(t, "service_connection.type", problems[0].Field)
	require.Contains(t, problems[0].Message, `unknown type "custom"; use one of custom_api, local_files, braze`)
	_, err := g.Open(1, "custom", nil)
	require.ErrorContains(t, err, `unknown type "custom"`)
	_, problems = g.CheckConnection("salesforce", nil, nil)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Message, "no simulator")
	require.Empty(t, g.Details("custom", nil))
	require.Empty(t, g.Secrets("custom", nil))
	require.Empty(t, g.SafeURL("custom", nil))
	require.Empty(t, g.Unknown("custom", creds(t, `{"a":1}`)))
	require.Equal(t, []string{"a", "b"}, g.Unknown(api.TypeCustomAPI, creds(t, `{"b":1,"webhook_url":"x","a":2}`)))
}

func TestDetails(t *testing.T) {
	g := newGate(t, Options{})
	c := customCreds(t, g, `{"webhook_url":"https://a.example/x?k=v","auth_token":"tok-en","custom_headers":{"A":{"value":"1","is_secret":true},"B":{"value":"2"}}}`)
	text, err := json.Marshal(g.Details(api.TypeCustomAPI, c))
	require.NoError(t, err)
	require.JSONEq(t, `{"account_id":"a.example","account_name":"Custom API a.example","api_version":1,"webhook_url":"https://a.example/x?k=v","custom_headers":{"A":{"value":null,"is_secret":true},"B":{"value":"2","is_secret":false}}}`, string(text))
	text, err = json.Marshal(g.Details(api.TypeCustomAPI, customCreds(t, g, `{"webhook_url":"https://a.example/"}`)))
	require.NoError(t, err)
	require.JSONEq(t, `{"account_id":"a.example","account_name":"Custom API a.example","api_version":1,"webhook_url":"https://a.example/","custom_headers":null}`, string(text))
	require.Equal(t, "https://a.example", g.SafeURL(api.TypeCustomAPI, c))
}

func TestSecrets(t *testing.T) {
	g := newGate(t, Options{})
	c := customCreds(t, g, `{"webhook_url":"https://a.example/api/uN7gu3ss4ble%2F1/v1?seg=v4l%20u3x8k2&table=person&b4r3s3cr3t9&k=abc","auth_token":"tok-en","custom_headers":{"A":{"value":"hidden-1","is_secret":true},"B":{"value":"open"}}}`)
	require.Equal(t, []string{
		"/api/uN7gu3ss4ble%2F1/v1?seg=v4l%20u3x8k2&table=person&b4r3s3cr3t9&k=abc", "b4r3s3cr3t9", "hidden-1",
		"https://a.example/api/uN7gu3ss4ble%2F1/v1?seg=v4l%20u3x8k2&table=person&b4r3s3cr3t9&k=abc", "tok-en",
		"uN7gu3ss4ble%2F1", "uN7gu3ss4ble/1", "v4l u3x8k2", "v4l%20u3x8k2",
	}, g.Secrets(api.TypeCustomAPI, c))
	require.Empty(t, g.Secrets(api.TypeCustomAPI, customCreds(t, g, `{"webhook_url":"https://a.example/"}`)))
}

// Whatever the credentials are, checking them neither panics nor repeats a
// value, and admitted ones can be opened.
func FuzzCheckConnection(f *testing.F) {
	f.Add(`{"webhook_url":"https://a.example/","custom_headers":{"A":{"value":"x"}}}`, `{"auth_token":"x"}`)
	f.Add(`{"webhook_url":"https://[::1","auth_token":[]}`, `{}`)
	f.Add(`{"path":"..","format":"csv"}`, `null`)
	g := New(Options{FilesRoot: f.TempDir()})
	f.Fuzz(func(t *testing.T, given, previous string) {
		var a, b Credentials
		if json.Unmarshal([]byte(given), &a) != nil || json.Unmarshal([]byte(previous), &b) != nil {
			return
		}
		for _, typ := range []string{api.TypeCustomAPI, api.TypeLocalFiles} {
			merged, problems := g.CheckConnection(typ, a, b)
			for _, p := range problems {
				require.NotEmpty(t, p.Message)
			}
			_ = g.Details(typ, merged)
			_ = g.Secrets(typ, merged)
			if len(problems) == 0 {
				c, err := g.Open(0, typ, merged)
				if b == nil {
					require.NoError(t, err)
				}
				if err == nil {
					require.NoError(t, c.Close())
				}
			}
		}
	})
}
