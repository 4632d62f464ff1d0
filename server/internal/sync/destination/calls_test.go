package destination

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/stretchr/testify/require"
)

// Errors of replies, with their names and messages.
func TestReplies(t *testing.T) {
	write := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	cases := []struct {
		name    string
		handler http.HandlerFunc
		outcome string
		want    string
	}{
		{"html", write(200, "<html>hello</html>"), OutcomeMalformed, "unknown error: the reply is not JSON"},
		{"garbage", write(200, "\x00\xff\xfe"), OutcomeMalformed, "unknown error: the reply is not JSON"},
		{"empty", write(200, ""), OutcomeMalformed, "unknown error: the reply is not JSON"},
		{"a list", write(200, "[]"), OutcomeMalformed, "unknown error: the reply is not an object"},
		{"old version", write(200, `{"jsonrpc":"1.0","id":"x","result":{}}`), OutcomeMalformed, `jsonrpc is not "2.0"`},
		{"wrong id", write(200, `{"jsonrpc":"2.0","id":"x","result":{}}`), OutcomeMalformed, "id is not the id of the request"},
		{"parse error with id null", write(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}`), OutcomeRPCError, "rpc error -32700: bad"},
		{"error object with 500", write(500, `{"jsonrpc":"2.0","id":null,"error":{"code":7,"message":"no"}}`), OutcomeRPCError, "rpc error 7: no"},
		{"status with html", write(502, "<h1>Bad Gateway</h1>"), OutcomeStatus, "http status 502 Bad Gateway: <h1>Bad Gateway</h1>"},
		{"status alone", write(503, ""), OutcomeStatus, "http status 503 Service Unavailable"},
		{"forbidden", write(403, "no entry"), OutcomeRefused, "http status 403 Forbidden: no entry"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/secret", http.StatusTemporaryRedirect)
		}, OutcomeStatus, "http status 307 Temporary Redirect; redirects are not followed"},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			w.Write(bytes.Repeat([]byte(" "), 5000))
		}, OutcomeTooLarge, "the reply is larger than 4096 bytes"},
		{"bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(bytes.Repeat([]byte(" "), 1<<20))
			z.Close()
		}, OutcomeTooLarge, "the reply is larger than 4096 bytes"},
		{"shorter than announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "{}")
		}, OutcomeNetwork, "the reply could not be read"},
		{"not gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "plain text, in truth")
		}, OutcomeNetwork, "the reply could not be read"},
		{"unknown encoding", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "x")
		}, OutcomeNetwork, `unknown content encoding "br"`},
		{"closed", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, OutcomeNetwork, "closed the connection"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"jsonrpc":"2.0"`)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, OutcomeNetwork, "the reply could not be read"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var seen Exchange
			g := newGate(t, Options{MaxReply: 4096, Observe: func(x Exchange) { seen = x }})
			_, failed := call(t.Context(), openURL(t, g, server(t, c.handler)), rpc.MethodGetSyncSpeed, nil)
			require.Equal(t, c.outcome, failed.Outcome, failed.Error())
			require.Contains(t, failed.Error(), c.want)
			require.True(t, strings.HasPrefix(failed.Error(), "call get_sync_speed: "), failed.Error())
			require.Equal(t, c.outcome, seen.Outcome)
			require.Equal(t, failed.Message, seen.Error)
			require.NotContains(t, failed.Error(), "elsewhere")
		})
	}
}

func TestCompressedReplies(t *testing.T) {
	const speed = `"result":{"maximum_batch_size":1,"maximum_parallel_batches":2,"maximum_records_per_second":3}`
	answer := endpoint(t, map[string]string{"get_sync_speed": speed})
	for _, encoding := range []string{"gzip", "deflate"} {
		var seen Exchange
		g := newGate(t, Options{Observe: func(x Exchange) { seen = x }})
		conn := openURL(t, g, server(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			var z io.WriteCloser = gzip.NewWriter(w)
			if encoding == "deflate" {
				z = zlib.NewWriter(w)
			}
			answer(&compressed{w, z}, r)
			z.Close()
		}))
		raw, failed := call(t.Context(), conn, rpc.MethodGetSyncSpeed, nil)
		require.Nil(t, failed, encoding)
		require.Contains(t, speed, string(raw))
		require.Equal(t, encoding, seen.Header.Get("Content-Encoding"))
	}
}

type compressed struct {
	http.ResponseWriter
	z io.Writer
}

func (c *compressed) Write(p []byte) (int, error) { return c.z.Write(p) }

// A call that hangs ends with its timeout, or with the caller's context, even after
// the start of its reply.
func TestHanging(t *testing.T) {
	for _, began := range []string{"", `{"jsonrpc":`} {
		t.Run(began, func(t *testing.T) { hanging(t, began) })
	}
}

func hanging(t *testing.T, began string) {
	arrived := make(chan struct{}, 8)
	release := make(chan struct{})
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // so that the server notices the client leaving
		if began != "" {
			io.WriteString(w, began)
			http.NewResponseController(w).Flush()
		}
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	hang := func(ctx context.Context, options Options) *CallError {
		_, failed := call(ctx, openURL(t, newGate(t, options), url), rpc.MethodSyncBatch, nil)
		require.NotNil(t, failed)
		return failed
	}

	failed := hang(t.Context(), Options{CallTimeout: time.Millisecond})
	require.Equal(t, OutcomeTimeout, failed.Outcome)
	require.Contains(t, failed.Message, "1ms in all")

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	failed = hang(ctx, Options{})
	require.Equal(t, OutcomeCanceled, failed.Outcome)

	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	failed = hang(ctx, Options{})
	require.Equal(t, OutcomeTimeout, failed.Outcome)

	results := openURL(t, newGate(t, Options{CallTimeout: time.Millisecond}), url).Test(t.Context())
	require.Equal(t, "test_connection failed", steps(results)[4])
}

// Retry-After of a refusal is handed on.
func TestRetryAfter(t *testing.T) {
	url := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	_, failed := call(t.Context(), openURL(t, newGate(t, Options{}), url), rpc.MethodSyncBatch, nil)
	require.Equal(t, "7", failed.RetryAfter)
	require.Equal(t, 429, failed.Status)
	require.Equal(t, OutcomeStatus, failed.Outcome)
}

// A handshake that never ends is bounded by ConnectTimeout.
func TestHangingHandshake(t *testing.T) {
	hold := make(chan struct{})
	port := silentListener(t, hold)
	t.Cleanup(func() { close(hold) })
	g := newGate(t, Options{ConnectTimeout: 250 * time.Millisecond})
	results := openURL(t, g, "https://127.0.0.1:"+port).Test(t.Context())
	require.Equal(t, "TLS failed", steps(results)[2])
	require.Contains(t, failure(results), "did not answer within 250ms to connect")
}

// Every call is observed, with what a journal needs and nothing else.
func TestObserve(t *testing.T) {
	var mu sync.Mutex
	var seen []Exchange
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	g := newGate(t, Options{
		Now: func() time.Time { return at },
		Observe: func(x Exchange) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, x)
		},
	})
	ids := make(chan string, 1)
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		q, err := rpc.DecodeRequest(body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		ids <- q.ID
		w.Header().Set("X-RateLimit-Limit", "77")
		w.Header().Set("X-Other", "not kept")
		w.Write([]byte(`{"jsonrpc":"2.0","id":"` + q.ID + `","result":{"a":1}}`))
	})
	c, err := g.Open(42, api.TypeCustomAPI, customCreds(t, g, `{"webhook_url":`+quote(url+"/secret-path-9")+`}`))
	require.NoError(t, err)
	big := map[string]string{"text": strings.Repeat("x", 100_000)}
	_, failed := call(t.Context(), c, rpc.MethodSyncBatch, big)
	require.Nil(t, failed)
	require.Len(t, seen, 1)
	x := seen[0]
	require.Equal(t, int64(42), x.Destination)
	require.Equal(t, api.TypeCustomAPI, x.Type)
	require.Equal(t, rpc.MethodSyncBatch, x.Method)
	require.Equal(t, url, x.Endpoint)
	require.Equal(t, <-ids, x.RequestID)
	require.Equal(t, at, x.Started)
	require.Equal(t, 200, x.Status)
	require.Equal(t, OutcomeOK, x.Outcome)
	require.Empty(t, x.Error)
	require.Greater(t, x.Sent, int64(100_000))
	require.Equal(t, int64(len(`{"jsonrpc":"2.0","id":"00000000000000000000000000000000","result":{"a":1}}`)), x.Received)
	require.Equal(t, "77", x.Header.Get("X-RateLimit-Limit"))
	require.NotContains(t, x.Header, "X-Other")
	require.Positive(t, x.Duration)
}

// A second call of one destination uses the connection of the first, also from
// another Connection; after Forget it does not.
func TestPool(t *testing.T) {
	var mu sync.Mutex
	remotes := map[string]int{}
	answer := endpoint(t, map[string]string{"get_sync_speed": `"result":{}`})
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		remotes[r.RemoteAddr]++
		mu.Unlock()
		answer(w, r)
	})
	g := newGate(t, Options{})
	for _, want := range []int{1, 1, 2} {
		if want == 2 {
			require.NoError(t, g.Forget(1))
		}
		_, failed := call(t.Context(), openURL(t, g, url), rpc.MethodGetSyncSpeed, nil)
		require.Nil(t, failed)
		require.Len(t, remotes, want)
	}
}
