package wire

import (
	"io"
	"log"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newQuietLog() *log.Logger { return log.New(io.Discard, "", 0) }

// peakHeap runs do and gives the largest heap in bytes that was seen meanwhile,
// above what there was before, with the collector as users have it.
func peakHeap(do func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var stop atomic.Bool
	var peak uint64
	var watcher sync.WaitGroup
	watcher.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for !stop.Load() {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
			<-tick.C
		}
	})
	do()
	stop.Store(true)
	watcher.Wait()
	return peak - min(peak, before.HeapAlloc)
}

// skipMemory skips tests of memory alone with -short: the race detector has its own, and takes
// minutes for a bomb.
func skipMemory(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("measures memory")
	}
}

// Large replies that are kept alive use up the budget; once they are dropped
// their memory comes back.
func TestMemoryComesBack(t *testing.T) {
	skipMemory(t)
	body := strings.Repeat("a", 20<<20)
	c := newClient(t, Options{URL: rawServer(t, answer(ok(body), true))})
	var kept []*Reply
	for {
		r := c.Do(t.Context(), Call{Timeout: time.Minute})
		if r.Kind == KindTooLarge {
			require.ErrorContains(t, r.Err, "together")
			break
		}
		require.NoError(t, r.Err)
		require.Equal(t, len(body), len(r.Body))
		kept = append(kept, r)
		require.LessOrEqual(t, len(kept), 3)
	}
	require.NotEmpty(t, kept)
	kept = nil
	for range 4 {
		require.NoError(t, c.Do(t.Context(), Call{Timeout: time.Minute}).Err)
	}
	runtime.KeepAlive(kept)
}

func TestBodyBounds(t *testing.T) {
	for _, size := range []int{0, 999, 1000, 1001, 5000} {
		body := strings.Repeat("a", size)
		for name, reply := range map[string]string{
			"length":  ok(body),
			"close":   "HTTP/1.1 200 OK\r\n\r\n" + body,
			"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\na\r\n", size) + "0\r\n\r\n",
			"gzip": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" +
				string(pack(t, "gzip", []byte(body))),
		} {
			r := newClient(t, Options{URL: rawServer(t, answer(reply, true)), MaxBody: 1000}).Do(t.Context(), Call{})
			if size <= 1000 {
				require.NoError(t, r.Err, name)
				require.Equal(t, body, string(r.Body), name)
				continue
			}
			require.Equal(t, KindTooLarge, r.Kind, "%s %d: %v", name, size, r.Err)
			require.True(t, r.Exchange().Response.Body.Truncated)
			require.True(t, strings.HasPrefix(r.Exchange().Response.Body.Text, "aaa"))
		}
	}
}

func TestTreesStayWithinMemory(t *testing.T) {
	skipMemory(t)
	body := []byte("[" + strings.Repeat("[],", 5<<20) + "[]]")
	peak := peakHeap(func() {
		_, err := Parse(body)
		require.ErrorContains(t, err, "too many values")
	})
	require.Less(t, peak, uint64(160<<20))

	// The budget of the client bounds all trees together.
	medium := []byte("[" + strings.Repeat("[],", 150_000) + "[]]")
	r := &Reply{Content: Content{Body: medium}, budget: &budget{max: 60 << 20}}
	var kept []*Node
	for {
		n, err := r.JSON()
		if err != nil {
			require.ErrorContains(t, err, "too many values")
			break
		}
		kept = append(kept, n)
		require.Less(t, len(kept), 10)
	}
	require.NotEmpty(t, kept)
	clear(kept) // memory that is no longer held comes back to the budget
	_, err := r.JSON()
	require.NoError(t, err)
}

// Replies that are small compared with the bound, and too many at once, are not called too large:
// nothing is known about bodies that could not be kept.
func TestManyRepliesAtOnceAreUnread(t *testing.T) {
	skipMemory(t)
	body := strings.Repeat("a", 1<<20)
	c := newClient(t, Options{URL: rawServer(t, answer(ok(body), true))})
	var kept []*Reply
	for len(kept) < 80 {
		kept = append(kept, c.Do(t.Context(), Call{Timeout: time.Minute}))
	}
	kinds := map[Kind]int{}
	for _, r := range kept {
		kinds[r.Kind]++
		if r.Kind == KindUnread {
			require.ErrorContains(t, r.Err, "together")
		}
	}
	require.Greater(t, kinds[KindNone], 30)
	require.Equal(t, 80-kinds[KindNone], kinds[KindUnread], "%v", kinds)
	require.Positive(t, kinds[KindUnread])
}

// TestWhoIsAloneDoesNotWait: where one reply is read after the other, nothing gives
// memory back while the reader waits for it.
func TestWhoIsAloneDoesNotWait(t *testing.T) {
	for alone, least := range map[bool]time.Duration{true: 0, false: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			spared := 0
			b := &budget{max: 1 << 20, used: 1 << 20, alone: alone, spare: func() { spared++ }}
			began := time.Now()
			require.False(t, b.await(freeBytes+1))
			require.Positive(t, spared)
			took := time.Since(began)
			require.GreaterOrEqual(t, took, least)
			require.True(t, !alone || took < time.Second, "%s", took)
		})
	}
}
