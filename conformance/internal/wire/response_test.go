package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
