package proxy_test

import (
	"fmt"
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
		Number: number, Started: time.Date(2026, 3, 4, 9, 30, number, 0, time.UTC), Total: time.Millisecond, Method: "POST", Target: "/", URL: "https://a.example/",
		RequestBody: fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"list_objects","params":{"x":%q},"id":"%d"}`, strings.Repeat("x", size), number),
		Raw:         []byte("HTTP/1.1 204 No Content\r\n\r\n"),
	}})
}

// TestKeptExchangesAreBounded: by their number, and by the bytes of their bodies; what is
// dropped is counted.
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
