package pace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// table is the one place of a window: with a way there and back that takes time,
// and clocks that are compared with an error.
type table struct {
	mu     sync.Mutex
	window *Window
	way    time.Duration
	fails  error
	asked  int
}

func newTable(limit int64) *table {
	return &table{window: NewWindow(limit, time.Time{}), way: time.Millisecond}
}

// times is how often it was asked.
func (x *table) times() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.asked
}

// rests is the end of its pause.
func (x *table) rests() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.window.paused
}

func (x *table) Exchange(_ context.Context, r Report) (Grant, error) {
	time.Sleep(x.way)
	later := func(list []Units) (moved []Units) {
		for _, u := range list {
			moved = append(moved, Units{u.At.Round(0).Add(x.way), u.N})
		}
		return moved
	}
	x.mu.Lock()
	x.asked++
	r.Sent, r.Stray = later(r.Sent), later(r.Stray)
	g, err := Grant{}, x.fails
	if err == nil {
		g = x.window.Exchange(time.Now().Round(0), r)
		state, _ := x.window.MarshalBinary()
		x.window = &Window{}
		err = x.window.UnmarshalBinary(state)
	}
	x.mu.Unlock()
	time.Sleep(x.way)
	g.Chunks, g.Until = later(g.Chunks), g.Until.Add(-x.way)
	return g, err
}

// crowd are the requests of one process, and when they were sent.
type crowd struct {
	limiter *Limiter
	mu      sync.Mutex
	sent    []time.Time
}

// work sends until a moment from so many senders, each of which is busy for a
// while with each request.
func (c *crowd) work(senders int, busy time.Duration, end time.Time) {
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for time.Now().Before(end) {
				if d := c.limiter.Take(time.Now(), nil, 0); d > 0 {
					time.Sleep(d)
					continue
				}
				c.mu.Lock()
				c.sent = append(c.sent, time.Now())
				c.mu.Unlock()
				c.limiter.Written(time.Now(), nil, 0)
				time.Sleep(busy)
			}
		})
	}
	all.Wait()
}

// densest is the most of any second.
func densest(sent []time.Time) (most int) {
	slices.SortFunc(sent, time.Time.Compare)
	from := 0
	for i, at := range sent {
		for !sent[from].Add(time.Second).After(at) {
			from++
		}
		most = max(most, i+1-from)
	}
	return most
}

func TestSharesReachTheLimitTogether(t *testing.T) {
	for _, limit := range []int64{1, 10, 100, 2000} {
		for _, processes := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%d of %d", limit, processes), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					x := newTable(limit)
					length := 4 * time.Second
					if limit <= 10 {
						length = 40 * time.Second
					}
					begin := time.Now()
					crowds := make([]crowd, processes)
					var all sync.WaitGroup
					for i := range crowds {
						crowds[i].limiter = NewSharedLimiter(ShareOptions{Source: x})
						all.Go(func() { crowds[i].work(8, 200*time.Microsecond, begin.Add(length)) })
					}
					all.Wait()
					time.Sleep(time.Minute) // shares that are not in use end their work
					var sent []time.Time
					for i := range crowds {
						sent = append(sent, crowds[i].sent...)
					}
					most := densest(sent)
					reached := float64(len(sent)-int(limit)) / float64(limit) / (length - time.Second).Seconds()
					t.Logf("%.4f of the limit, at most %d in a second, %d exchanges", reached, most, x.times())
					require.LessOrEqual(t, most, int(limit))
					require.GreaterOrEqual(t, reached, 0.95)
					// The first to ask had all that there was.
					late := func(sent []time.Time) (n int) {
						for _, at := range sent {
							if at.Sub(begin) > length/4 {
								n++
							}
						}
						return n
					}
					for i := range crowds {
						require.InDelta(t, 1, float64(late(crowds[i].sent)*processes)/float64(late(sent)), 0.2, "each has its part")
					}
					// Not as often as there are requests, unless they are few.
					require.Less(t, x.times(), 15*processes*int(length.Seconds()))
				})
			})
		}
	}
}
