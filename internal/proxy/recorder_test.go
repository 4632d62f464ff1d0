package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/internal/proxy"
)

// observed shows a recorder a call whose request has a body of about that many bytes.
func observed(r *proxy.Recorder, number, size int) {
	r.Observe(&proxy.Seen{Sight: &conformance.Sight{
		Number: number, Timing: conformance.Timing{Started: time.Date(2026, 3, 4, 9, 30, number, 0, time.UTC), Total: time.Millisecond},
		Asked: conformance.Asked{Method: "POST", Target: "/", URL: "https://a.example/",
			RequestBody: fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"list_objects","params":{"x":%q},"id":"%d"}`, strings.Repeat("x", size), number)},
		Raw: []byte("HTTP/1.1 204 No Content\r\n\r\n"),
	}})
}

// TestKeptExchangesAreBounded: by their number, and by the bytes of their bodies; dropped
// ones are counted.
func TestKeptExchangesAreBounded(t *testing.T) {
	newRecorder := func(keep int) *proxy.Recorder {
		passive, err := destination.NewPassive(destination.Target{URL: "https://a.example/"}, conformance.Options{})
		require.NoError(t, err)
		r, err := proxy.NewRecorder(proxy.RecorderConfig{Passive: passive, Keep: keep})
		require.NoError(t, err)
		return r
	}
	numbers := func(r *proxy.Recorder) (list []int) {
		for _, k := range r.Recent(0) {
			list = append(list, k.Line.Number)
		}
		return list
	}
	r := newRecorder(3)
	require.Nil(t, r.CallerReport(), "nothing judges the caller")
	for n := 1; n <= 5; n++ {
		observed(r, n, 10)
	}
	require.Equal(t, []int{3, 4, 5}, numbers(r))
	dropped, seen := r.Dropped()
	require.EqualValues(t, 2, dropped)
	require.EqualValues(t, 5, seen)

	r = newRecorder(200)
	const large = 1000 << 10 // 32 of them have less than 32 MiB
	for n := 1; n <= 40; n++ {
		observed(r, n, large)
	}
	kept := numbers(r)
	require.Equal(t, 40, kept[len(kept)-1])
	require.Len(t, kept, 32)
	observed(r, 41, 10)
	require.Len(t, numbers(r), 33, "a small one takes little room")
	dropped, seen = r.Dropped()
	require.EqualValues(t, 8, dropped)
	require.EqualValues(t, 41, seen)
}

// TestACallThatItsCallerGaveUp: a later answer of the endpoint is recorded with the moment
// at which the caller went, also in files.
func TestACallThatItsCallerGaveUp(t *testing.T) {
	came := make(chan struct{}, 1)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if came <- struct{}{}; r.Header.Get("X-Late") != "" {
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, rpcReply)
	}))
	defer endpoint.Close()
	passive, err := destination.NewPassive(destination.Target{URL: endpoint.URL}, conformance.Options{})
	require.NoError(t, err)
	var journal, archive bytes.Buffer
	recorder, err := proxy.NewRecorder(proxy.RecorderConfig{Passive: passive, Journal: &journal, HAR: &archive})
	require.NoError(t, err)
	seen := &seenBy{}
	address, stop := running(t, proxy.Config{To: endpoint.URL + "/", Observer: both{seen, recorder}})
	for _, request := range []string{post, strings.Replace(post, "X-Odd", "X-Late", 1)} {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		_, err = io.WriteString(conn, request)
		require.NoError(t, err)
		if <-came; request == post {
			_, err = http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
		}
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		_, err = io.ReadAll(conn)
		require.NoError(t, err)
		conn.Close()
	}
	stop()
	require.NoError(t, recorder.Close())
	require.Len(t, seen.all, 2)
	require.Zero(t, seen.all[0].Sight.CallerLeft)
	left := seen.all[1].Sight
	require.Positive(t, left.CallerLeft)
	require.Less(t, left.CallerLeft, left.Total)
	for _, file := range []*bytes.Buffer{&journal, &archive} {
		var read []time.Duration
		_, err := proxy.ReadRecording(file, func(s *conformance.Sight) error { read = append(read, s.CallerLeft); return nil })
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, left.CallerLeft.Truncate(time.Microsecond)}, read)
	}
}

// both are two observers.
type both [2]proxy.Observer

func (b both) Observe(x *proxy.Seen) {
	for _, o := range b {
		o.Observe(x)
	}
}
