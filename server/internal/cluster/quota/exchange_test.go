package quota

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sync/pace"
)

// join opens the limits of one more process.
func join(t testing.TB, pool *pgxpool.Pool, log *slog.Logger) *Limits {
	l := New(pool, log)
	t.Cleanup(l.Close)
	return l
}

func limiter(l *Limits, id int64) *pace.Limiter {
	return pace.NewSharedLimiter(pace.ShareOptions{Source: l.Connection(id)})
}

// asks is a report of a process that holds nothing.
func asks(n int64) pace.Report { return pace.Report{Holder: rand.Uint64(), Want: n} }

// TestProcessesKeepOneLimit sends for real, by the clock of this machine; one of
// the processes is cut off from the database half way (spec 8).
func TestProcessesKeepOneLimit(t *testing.T) {
	process := installation(t, "together")
	const limit, processes = 200, 4
	end := time.Now().Add(1700 * time.Millisecond)
	var all sync.WaitGroup
	var mu sync.Mutex
	var sent []time.Time
	parts := make([]int, processes)
	for i := range processes {
		l := limiter(join(t, process(), nil), 7)
		l.Announce(limit)
		lost := join(t, process(), nil)
		cut := limiter(lost, 7)
		if i == 0 {
			all.Go(func() {
				own := drive(cut, 2, end.Add(-800*time.Millisecond))
				lost.Close()
				own = append(own, drive(cut, 2, end)...)
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, own...)
			})
		}
		all.Go(func() {
			own := drive(l, 3, end)
			mu.Lock()
			defer mu.Unlock()
			sent, parts[i] = append(sent, own...), len(own)
		})
	}
	all.Wait()
	// What was let go before anybody had announced the limit does not count.
	announced := sent[0]
	for _, at := range sent {
		if at.Before(announced) {
			announced = at
		}
	}
	var after []time.Time
	for _, at := range sent {
		if at.Sub(announced) > 500*time.Millisecond {
			after = append(after, at)
		}
	}
	require.LessOrEqual(t, densest(after), limit)
	for _, n := range parts {
		require.Positive(t, n, "nobody starves: %v", parts)
	}
	t.Logf("%d sent, %d at most in a second, by %v", len(sent), densest(after), parts)
}

// TestWhatOneHearsAllHear: a limit, a pause and the end of both.
func TestWhatOneHearsAllHear(t *testing.T) {
	process := installation(t, "heard")
	one, other := join(t, process(), nil), join(t, process(), nil)
	source := other.Connection(3)
	exchange := func(r pace.Report) pace.Grant {
		g, err := source.Exchange(t.Context(), r)
		require.NoError(t, err)
		return g
	}
	require.Equal(t, int64(pace.DefaultLimit), exchange(asks(1)).Limit)
	l := limiter(one, 3)
	eventually := func(holds func(g pace.Grant) bool) {
		t.Helper()
		require.Eventually(t, func() bool { return holds(exchange(asks(0))) }, 10*time.Second, time.Millisecond)
	}
	l.Announce(5)
	eventually(func(g pace.Grant) bool { return g.Limit == 5 })
	l.Pause(time.Now().Add(time.Minute))
	eventually(func(g pace.Grant) bool { return time.Until(g.Paused) > 30*time.Second })
	require.Empty(t, exchange(asks(1)).Chunks)
	require.Equal(t, int64(pace.DefaultLimit), func() int64 {
		g, err := other.Connection(4).Exchange(t.Context(), asks(0))
		require.NoError(t, err)
		return g.Limit
	}(), "another connection has its own")
	l.Reset()
	eventually(func(g pace.Grant) bool { return g.Limit == pace.DefaultLimit && time.Until(g.Paused) < 0 })
}

// TestManyAskAtOnce: no exchange is lost or done twice, whoever comes between its
// reading and its writing.
func TestManyAskAtOnce(t *testing.T) {
	process := installation(t, "contended")
	const processes, each = 4, 10
	var all sync.WaitGroup
	var mu sync.Mutex
	var granted int64
	first := join(t, process(), nil)
	g, err := first.Connection(1).Exchange(t.Context(), pace.Report{Holder: 1, Limit: 25})
	require.NoError(t, err)
	require.Equal(t, int64(25), g.Limit)
	var before, after int64
	pool := process()
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT version FROM limits WHERE name = 'connection 1'").Scan(&before))
	for range processes {
		s := join(t, process(), nil).Connection(1)
		all.Go(func() {
			for range each {
				g, err := s.Exchange(t.Context(), asks(1))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, c := range g.Chunks {
					granted += c.N
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT version FROM limits WHERE name = 'connection 1'").Scan(&after))
	require.Equal(t, int64(processes*each), after-before)
	require.LessOrEqual(t, granted, int64(25))
	require.Positive(t, granted)
}

// TestACrashOfTheDatabase empties the table: nothing is granted until what was sent
// before is old, and the limit that a process has heard of holds on.
func TestACrashOfTheDatabase(t *testing.T) {
	process := installation(t, "crashed")
	pool := process()
	s := join(t, process(), nil).Connection(1)
	g, err := s.Exchange(t.Context(), asks(1))
	require.NoError(t, err)
	require.Len(t, g.Chunks, 1, "a new connection rests for nothing")
	execute(t, pool, "DELETE FROM limits")
	r := asks(1)
	r.Known = 77
	g, err = s.Exchange(t.Context(), r)
	require.NoError(t, err)
	require.Empty(t, g.Chunks)
	require.Equal(t, int64(77), g.Limit)
	require.Greater(t, time.Until(g.Paused), time.Second)
}

// TestADatabaseThatIsGone stops the sending, and no run is failed. The log says it
// once.
func TestADatabaseThatIsGone(t *testing.T) {
	process := installation(t, "gone")
	pool := process()
	var mu sync.Mutex
	var text bytes.Buffer
	lines := func(of string) int {
		mu.Lock()
		defer mu.Unlock()
		return strings.Count(text.String(), of)
	}
	l := limiter(join(t, process(), slog.New(slog.NewTextHandler(guarded{&mu, &text}, nil))), 1)
	sends := func() bool {
		if l.Take(time.Now(), nil, 0) > 0 {
			return false
		}
		l.Written(time.Now(), nil, 0)
		return true
	}
	require.Eventually(t, sends, 10*time.Second, time.Millisecond)
	execute(t, pool, "ALTER TABLE limits RENAME TO hidden")
	require.Eventually(t, func() bool { return !sends() && lines("cannot be reached") == 1 }, 10*time.Second, time.Millisecond)
	require.LessOrEqual(t, l.Take(time.Now(), nil, 0), 200*time.Millisecond)
	execute(t, pool, "ALTER TABLE hidden RENAME TO limits")
	require.Eventually(t, sends, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, lines("cannot be reached"))
	require.Equal(t, 1, lines("reached again"))
}

type guarded struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (g guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.to.Write(p)
}

func TestADamagedLimit(t *testing.T) {
	process := installation(t, "damaged")
	var text bytes.Buffer
	l := join(t, process(), slog.New(slog.NewTextHandler(&text, nil)))
	execute(t, process(), "INSERT INTO limits (name, version, state) VALUES ('connection 1', 1, 'x')")
	_, err := l.Connection(1).Exchange(t.Context(), asks(1))
	require.ErrorContains(t, err, `exchange limit "connection 1": read limit: its state is damaged`)
	_, err = l.Connection(2).Exchange(t.Context(), asks(1)) // of which the first says nothing
	require.NoError(t, err)
	_, err = l.Connection(1).Exchange(t.Context(), asks(1))
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(text.String(), "\n"), "said once")
	require.Contains(t, text.String(), `exchange limit \"connection 1\"`)
	l.Close()
	_, err = l.Connection(1).Exchange(t.Context(), asks(1))
	require.ErrorIs(t, err, errClosed)
}
