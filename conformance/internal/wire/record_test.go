package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
)

// handlerClient judges a handler in memory.
func handlerClient(t *testing.T, opts Options, h http.HandlerFunc) *Client {
	t.Helper()
	dial, stop := ServeHandler(h)
	t.Cleanup(stop)
	if opts.URL == "" {
		opts.URL = "http://endpoint.test/rpc"
	}
	opts.Dial = dial
	return newClient(t, opts)
}

// An endpoint that gives every secret back in every encoding, everywhere.
func TestRecordsHoldNoSecret(t *testing.T) {
	const token, key, password, custom = "tok/en+1234567890", "query value&1", "pass:word:9", "custom header value"
	secrets := []string{token, key, password, custom}
	c := handlerClient(t, Options{
		URL:   "http://admin1:pass%3Aword%3A9@endpoint.test/rpc?debug=true&api_key=query%20value%261&v=7",
		Token: token, Headers: map[string]string{"X-Custom": custom},
	}, func(w http.ResponseWriter, r *http.Request) {
		var all []string
		for _, secret := range secrets {
			for name, coded := range testkit.Encodings(secret) {
				all = append(all, coded)
				w.Header().Add("X-Echo-"+http.CanonicalHeaderKey(strings.ReplaceAll(name, " ", "-")), strings.NewReplacer("\n", "", "\t", "", "\x00", "").Replace(coded))
			}
		}
		all = append(all, r.URL.String(), r.RequestURI, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, strings.Join(all, "\n"))
	})
	body := []byte(`{"params":{"t":"` + token + `"}}`)
	for _, call := range []Call{
		{Body: body, RPC: token, ID: token},
		{Body: body, URL: "http://endpoint.test/" + key[:5] + "?api_key=query%20value%261"},
		{Header: http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+token))}}},
		{HTTPMethod: "BAD METHOD " + token},
	} {
		r := c.Do(t.Context(), call)
		text, err := json.Marshal(r.Exchange())
		require.NoError(t, err)
		for _, secret := range secrets {
			for name, coded := range testkit.Encodings(secret) {
				if strings.HasPrefix(name, "base64 three") {
					continue // the bodies of this test are long: they are looked into two encodings deep
				}
				quoted, _ := json.Marshal(coded)
				require.NotContains(t, string(text), string(quoted[1:len(quoted)-1]), "%s of %q", name, secret)
			}
		}
		require.NotContains(t, string(text), "admin1")
		if call.URL != "" {
			require.Equal(t, "http://endpoint.test/query?api_key=$DESTKIT_QUERY_API_KEY", r.Exchange().Request.URL)
		}
		if call.URL == "" && r.Kind != KindInvalid {
			require.Equal(t, "$DESTKIT_URL", r.Exchange().Request.URL)
			require.NotEmpty(t, c.redact.Leaks(r.Body))
		}
		if len(call.Body) > 0 {
			require.Equal(t, body, r.Request)
			require.Equal(t, `{"params":{"t":"$DESTKIT_TOKEN"}}`, r.Exchange().Request.Body.Text)
		}
	}
}

func TestWhichURLsAreShown(t *testing.T) {
	tests := []struct{ url, secret, shown string }{
		{"http://endpoint.test/rpc", "", "http://endpoint.test/rpc"},
		{"http://endpoint.test/rpc?a=b", "", "$DESTKIT_URL"},
		{"http://u@endpoint.test/rpc", "", "$DESTKIT_URL"},
		{"http://endpoint.test/hook/s3cr3t/x", "s3cr3t", "$DESTKIT_URL"},
	}
	for _, test := range tests {
		c := handlerClient(t, Options{URL: test.url}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true}`) })
		c.redact.Add(test.secret, "$DESTKIT_URL_SECRET")
		r := c.Do(t.Context(), Call{})
		require.Equal(t, test.shown, r.Exchange().Request.URL)
		require.False(t, r.Exchange().Request.OtherURL)
		require.Equal(t, `{"ok":true}`, r.Exchange().Response.Body.Text)
	}
}

func TestRecordedBodies(t *testing.T) {
	tests := []struct {
		name string
		body []byte
		want Body
	}{
		{"text", []byte("é"), Body{Text: "é", Size: 2}},
		{"empty", nil, Body{}},
		{"binary", []byte{0xff, 0xfe}, Body{Base64: "//4=", Size: 2}},
	}
	for _, test := range tests {
		c := handlerClient(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(test.body) })
		r := c.Do(t.Context(), Call{Body: test.body})
		require.Equal(t, test.want, r.Exchange().Request.Body, test.name)
		require.Equal(t, test.want, r.Exchange().Response.Body, test.name)
	}

	long := bytes.Repeat([]byte("é"), 700_000) // a cut would split one
	long = append([]byte("x"), long...)
	c := handlerClient(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long) })
	r := c.Do(t.Context(), Call{Body: long})
	require.Equal(t, len(long), len(r.Body))
	for limit, body := range map[int]Body{recordedRequest: r.Exchange().Request.Body, recordedResponse: r.Exchange().Response.Body} {
		require.EqualValues(t, len(long), body.Size)
		require.True(t, body.Truncated)
		require.Equal(t, limit-1, len(body.Text))
		require.True(t, utf8.ValidString(body.Text))
	}
}

func TestCurlCommands(t *testing.T) {
	c := handlerClient(t, Options{Token: "tok'en$1`x", Headers: map[string]string{"X-Team": "it's \"blue\""}},
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	tests := []struct {
		name string
		call Call
		want string
	}{
		{"plain", Call{Body: []byte(`{"a":"it's $HOME"}`)},
			`curl -sS 'http://endpoint.test/rpc' -H 'Content-Type: application/json' --compressed -H "Authorization: Bearer $DESTKIT_TOKEN" -H "X-Team: $DESTKIT_HEADER_X_TEAM" -d '{"a":"it'\''s $HOME"}'`},
		{"no token", Call{Body: []byte(`{}`), Header: http.Header{"Authorization": nil, "X-Team": nil, "Content-Type": nil, "X-E": {""}}},
			`curl -sS 'http://endpoint.test/rpc' --compressed -H 'X-E;' -H 'Content-Type:' -d '{}'`},
		{"secret in the body", Call{Body: []byte("{\"a\":\"tok'en$1`x\",\"b\":\"`\\\\\"}"), Header: http.Header{"X-Team": nil}},
			`curl -sS 'http://endpoint.test/rpc' -H 'Content-Type: application/json' --compressed -H "Authorization: Bearer $DESTKIT_TOKEN" -d "{\"a\":\"$DESTKIT_TOKEN\",\"b\":\"` + "\\`" + `\\\\\"}"`},
		{"other method and URL", Call{HTTPMethod: "GET", URL: "http://endpoint.test/x?k=v", Header: http.Header{"X-Team": nil, "Authorization": nil}},
			`curl -sS -X GET 'http://endpoint.test/x?k=v' -H 'Content-Type: application/json' --compressed`},
		{"file", Call{Check: "RES-002", Body: bytes.Repeat([]byte("1"), 3000), Header: http.Header{"X-Team": nil, "Authorization": nil}},
			`curl -sS 'http://endpoint.test/rpc' -H 'Content-Type: application/json' --compressed -d @destkit-bodies/RES-002-5.json`},
		{"binary", Call{Body: []byte{0xff}, Header: http.Header{"X-Team": nil, "Authorization": nil, "Accept-Encoding": nil}},
			`curl -sS 'http://endpoint.test/rpc' -H 'Content-Type: application/json' --data-binary @destkit-bodies/preflight-6.json`},
		{"at sign", Call{Body: []byte("@file"), Header: http.Header{"X-Team": nil, "Authorization": nil}, Chunked: true},
			`curl -sS 'http://endpoint.test/rpc' -H 'Content-Type: application/json' --compressed -H 'Transfer-Encoding: chunked' --data-raw '@file'`},
	}
	for _, test := range tests {
		e := c.Do(t.Context(), test.call).Exchange()
		require.Equal(t, test.want, Curl(e), test.name)
	}
}

// The shell gives curl exactly the body that was sent.
func TestCurlThroughAShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no POSIX shell here")
	}
	c := handlerClient(t, Options{Token: "secret-token"}, func(w http.ResponseWriter, _ *http.Request) {})
	for _, body := range []string{`{"a":"'$HOME' \"x\" \\ ` + "`id`" + `"}`, `secret-token$HOME"\` + "`", "a\nb  c", "!*?[a]~"} {
		e := c.Do(t.Context(), Call{Body: []byte(body)}).Exchange()
		cmd := exec.Command(sh, "-c", `curl() { for last; do :; done; printf %s "$last"; }; `+Curl(e))
		cmd.Env = []string{"DESTKIT_TOKEN=secret-token", "DESTKIT_URL=u"}
		got, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, body, string(got))
	}
}
