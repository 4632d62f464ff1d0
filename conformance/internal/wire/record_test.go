package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
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

func TestResponses(t *testing.T) {
	big := strings.Repeat("x", 100_000)
	tests := []struct {
		name, reply string
		kind        Kind
		body        string
		framing     string
		says        string
	}{
		{"length", ok("{}"), KindNone, "{}", FramingLength, ""},
		{"large", ok(big), KindNone, big, FramingLength, ""},
		{"no length", "HTTP/1.1 200 OK\r\n\r\nabc", KindNone, "abc", FramingClose, ""},
		{"http 1.0", "HTTP/1.0 200 OK\r\nContent-Type: a\r\n\r\nabc", KindNone, "abc", FramingClose, ""},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", KindNone, "a", FramingLength, ""},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", KindNone, "a", FramingLength, ""},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\nA \r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n", KindNone, "abc0123456789", FramingChunked, ""},
		{"interim", "HTTP/1.1 102 Wait\r\nA: b\r\n\r\nHTTP/1.1 103 Early\r\n\r\n" + ok("a"), KindNone, "a", FramingLength, ""},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", KindNone, "", FramingNone, ""},
		{"same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\nContent-Length: 1\r\n\r\na", KindNone, "a", FramingLength, ""},
		{"html", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>", KindNone, "<html>", FramingLength, ""},

		{"nothing", "", KindClosed, "", "", "read response head"},
		{"half a head", "HTTP/1.1 200 OK\r\nContent-", KindTruncated, "", "", "unexpected EOF"},
		{"only interim", "HTTP/1.1 100 Continue\r\n\r\n", KindTruncated, "", "", "read response head"},
		{"length too long", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", KindTruncated, "abc", FramingLength, "read response body"},
		{"empty of five", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", KindTruncated, "", FramingLength, ""},
		{"length too short", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcde", KindMalformed, "ab", FramingLength, "3 bytes come after the end"},
		{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", KindTruncated, "abc", FramingChunked, ""},
		{"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", KindTruncated, "abc", FramingChunked, ""},
		{"no trailer end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", KindTruncated, "", FramingChunked, ""},
		{"chunk too long", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", KindMalformed, "ab", FramingChunked, "not by a line break"},
		{"bad chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n", KindMalformed, "", FramingChunked, "chunk size"},
		{"bare LF in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", KindMalformed, "", FramingChunked, "carriage return"},
		{"negative chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n", KindMalformed, "", FramingChunked, "chunk size"},
		{"endless chunk line", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("a", 9000), KindMalformed, "", FramingChunked, "too long"},
		{"both framings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", KindMalformed, "", "", "both"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", KindMalformed, "", "", "two Content-Lengths"},
		{"signed length", "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc", KindMalformed, "", "", "decimal"},
		{"huge length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc", KindMalformed, "", "", "decimal"},
		{"gzip transfer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", KindMalformed, "", "", "Transfer-Encoding"},
		{"chunked in 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", KindMalformed, "", "", "HTTP/1.0"},
		{"not http", "{\"jsonrpc\":\"2.0\"}\n", KindMalformed, "", "", "status line"},
		{"http 2", "HTTP/2 200 OK\r\n\r\n", KindMalformed, "", "", "status line"},
		{"bad code", "HTTP/1.1 20x OK\r\n\r\n", KindMalformed, "", "", "three digits"},
		{"folded", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", KindMalformed, "", "", "folded"},
		{"space before colon", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", KindMalformed, "", "", "name and colon"},
		{"no colon", "HTTP/1.1 200 OK\r\nAb\r\n\r\n", KindMalformed, "", "", "name and colon"},
		{"bare CR", "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", KindMalformed, "", "", "carriage return"},
		{"NUL in header", "HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n", KindMalformed, "", "", "control characters"},
		{"switching", "HTTP/1.1 101 Switch\r\n\r\n", KindMalformed, "", "", "101"},
		{"interim flood", strings.Repeat("HTTP/1.1 103 E\r\n\r\n", 40) + ok("a"), KindMalformed, "", "", "interim"},
		{"header flood", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Flood: abcdefgh\r\n", 20_000), KindTooLarge, "", "", "head of the response"},
		{"one endless header", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 300_000), KindTooLarge, "", "", "head of the response"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			url := rawServer(t, answer(test.reply, true))
			r := newClient(t, Options{URL: url}).Do(t.Context(), Call{Body: []byte("{}"), Timeout: time.Minute})
			require.Equal(t, test.kind, r.Kind, "%v", r.Err)
			require.Equal(t, test.body, string(r.Body))
			require.Equal(t, test.framing, r.Framing)
			require.Equal(t, test.kind == KindNone, r.OK())
			require.Equal(t, string(test.kind), r.Exchange().Kind)
			require.LessOrEqual(t, len(r.RawHeaders), shownLines)
			if test.kind == KindNone {
				require.NoError(t, r.Err)
				require.Empty(t, r.Exchange().Error)
			} else {
				require.ErrorContains(t, r.Err, test.says)
				require.Contains(t, r.Exchange().Error, string(test.kind)+": ")
			}
		})
	}
}

func TestHeadersKeepOrderAndDuplicates(t *testing.T) {
	url := rawServer(t, answer("HTTP/1.1 200 OK\r\nx-b: 1\r\nX-A:  2 \r\nX-B: 3\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", true))
	r := newClient(t, Options{URL: url}).Do(t.Context(), Call{})
	require.Equal(t, []Header{{"x-b", "1"}, {"X-A", "2"}, {"X-B", "3"}, {"Connection", "close"}, {"Content-Length", "0"}}, r.RawHeaders)
	require.Equal(t, []string{"1", "3"}, r.Header.Values("X-B"))
	require.Equal(t, r.RawHeaders, r.Exchange().Response.Header)
	require.True(t, r.CloseAnnounced)
	require.True(t, r.ConnClosed)
}

func TestTrailersAreRead(t *testing.T) {
	url := rawServer(t, answer("HTTP/1.1 103 E\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\n\r\n", true))
	r := newClient(t, Options{URL: url}).Do(t.Context(), Call{})
	require.True(t, r.OK())
	require.Equal(t, []int{103}, r.Interim)
}

func pack(t *testing.T, coding string, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	default:
		w, _ = flate.NewWriter(&b, -1)
	}
	_, err := w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestContentEncodings(t *testing.T) {
	plain := []byte(`{"result":"` + strings.Repeat("a", 2000) + `"}`)
	zipped := pack(t, "gzip", plain)
	broken := bytes.Clone(zipped)
	broken[len(broken)-6] ^= 0xff // the checksum
	tests := []struct {
		name, coding string
		raw          []byte
		kind         Kind
		body         []byte
		header       http.Header
		shown        string // beginning of the recorded text
	}{
		{"gzip", "gzip", zipped, KindNone, plain, nil, `{"result":"`},
		{"x-gzip", "X-GZIP", zipped, KindNone, plain, nil, `{"result":"`},
		{"zlib", "deflate", pack(t, "zlib", plain), KindNone, plain, nil, `{"result":"`},
		{"raw deflate", "deflate", pack(t, "flate", plain), KindNone, plain, nil, `{"result":"`},
		{"identity", "identity", plain, KindNone, plain, nil, `{"result":"`},
		{"two layers", "deflate, gzip", pack(t, "gzip", pack(t, "zlib", plain)), KindNone, plain, nil, `{"result":"`},
		{"empty body", "gzip", nil, KindNone, nil, nil, ""},
		{"plain called gzip", "gzip", plain, KindEncoding, plain, nil, `{"result":"`},
		{"plain called deflate", "deflate", plain, KindEncoding, plain, nil, `{"result":"`},
		{"cut gzip", "gzip", zipped[:len(zipped)-4], KindEncoding, zipped[:len(zipped)-4], nil, `{"result":"`},
		{"wrong checksum", "gzip", broken, KindEncoding, broken, nil, `{"result":"`},
		{"garbage behind", "gzip", append(bytes.Clone(zipped), "xx"...), KindEncoding, append(bytes.Clone(zipped), "xx"...), nil, `{"result":"`},
		{"br unasked", "br", []byte("\x0b\x02\x80{}\xff\x03"), KindEncoding, []byte("\x0b\x02\x80{}\xff\x03"), nil, ""},
		{"gzip unasked", "gzip", zipped, KindEncoding, zipped, http.Header{"Accept-Encoding": {"identity"}}, ""},
		{"gzip refused", "gzip", zipped, KindEncoding, zipped, http.Header{"Accept-Encoding": {"gzip;q=0, *"}}, ""},
		{"any allowed", "gzip", zipped, KindNone, plain, http.Header{"Accept-Encoding": nil}, `{"result":"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reply := "HTTP/1.1 200 OK\r\nContent-Encoding: " + test.coding + "\r\nContent-Length: " + itoa(len(test.raw)) + "\r\n\r\n" + string(test.raw)
			r := newClient(t, Options{URL: rawServer(t, answer(reply, true))}).Do(t.Context(), Call{Header: test.header})
			require.Equal(t, test.kind, r.Kind, "%v", r.Err)
			require.Equal(t, string(test.body), string(r.Body))
			require.Equal(t, string(test.raw), string(r.Raw))
			require.True(t, r.OK())
			shown := r.Exchange().Response.Body
			require.Empty(t, shown.Base64)
			require.True(t, strings.HasPrefix(shown.Text, test.shown))
			require.Equal(t, test.shown == "" && len(test.raw) > 0, shown.Text == "" && shown.Truncated)
		})
	}
}
