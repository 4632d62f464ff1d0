package chronicle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/internal/store"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunWithPostgres(m)) }

var schemas atomic.Int64

// processes are the chronicles of several processes on a schema of their own, the
// first of which is that of this test.
func processes(t testing.TB, names ...string) []*Chronicle {
	t.Helper()
	server := testkit.StartPostgres(t)
	s, err := store.Open(t.Context(), store.Options{MasterKey: make([]byte, 32), URL: fmt.Sprintf("postgres://%s:%s@/postgres?host=%s&port=%d&search_path=chronicle_%d",
		testkit.PostgresUser, testkit.PostgresPassword, server.Folder, server.Port, schemas.Add(1))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	var list []*Chronicle
	for _, name := range names {
		c := New(s.Pool(), name)
		require.NoError(t, c.Enter(t.Context()))
		list = append(list, c)
	}
	return list
}

// lives puts a process on the list of those that were seen some time ago.
func (c *Chronicle) lives(t testing.TB, ago string) {
	t.Helper()
	_, err := c.pool.Exec(t.Context(), `INSERT INTO processes (id, role, version, address, started, seen)
		VALUES ($1, 'all', '', '', clock_timestamp(), clock_timestamp() - $2::text::interval) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen`, c.process, ago)
	require.NoError(t, err)
}

func entriesOf(texts ...string) (list []Entry) {
	for _, text := range texts {
		list = append(list, Entry{Key: "key of " + text, Text: []byte(text)})
	}
	return list
}

// read is a journal behind a number, as "1 one, 2 two (2 of 2)".
func (c *Chronicle) read(t testing.TB, kind string, after int64) string {
	t.Helper()
	var list []string
	totals, err := c.Each(t.Context(), kind, after, func(number int64, text []byte) (bool, error) {
		list = append(list, fmt.Sprintf("%d %s", number, text))
		return true, nil
	})
	require.NoError(t, err)
	return fmt.Sprintf("%s (%d, %d dropped)", strings.Join(list, ", "), totals.All, totals.Dropped)
}

func TestJournal(t *testing.T) {
	both := processes(t, "one", "other")
	one, other := both[0], both[1]
	wide := Bounds{Entries: 100, Bytes: 1000}
	add := func(c *Chronicle, bounds Bounds, lost int64, texts ...string) {
		t.Helper()
		require.NoError(t, c.Add(t.Context(), "calls", bounds, Batch{Entries: entriesOf(texts...), Lost: lost}))
	}
	require.Equal(t, " (0, 0 dropped)", one.read(t, "calls", 0))
	add(one, wide, 0, "a", "b")
	add(other, wide, 3, "c")
	add(one, wide, 1)
	require.Equal(t, "1 a, 2 b, 6 c (7, 4 dropped)", one.read(t, "calls", 0))
	require.Equal(t, "6 c (7, 4 dropped)", other.read(t, "calls", 2))
	require.Equal(t, " (0, 0 dropped)", other.read(t, "requests", 0), "kinds are apart")

	number, text, err := other.Find(t.Context(), "calls", "key of b")
	require.NoError(t, err)
	require.Equal(t, "2 b", fmt.Sprintf("%d %s", number, text))
	number, _, err = other.Find(t.Context(), "calls", "key of z")
	require.NoError(t, err)
	require.Zero(t, number)

	t.Run("as many", func(t *testing.T) {
		add(other, Bounds{Entries: 3, Bytes: 1000}, 0, "d", "e")
		require.Equal(t, "6 c, 8 d, 9 e (9, 6 dropped)", one.read(t, "calls", 0), "those that were lost take no room")
	})
	t.Run("as large", func(t *testing.T) {
		add(other, Bounds{Entries: 100, Bytes: 100}, 0, strings.Repeat("x", 70), strings.Repeat("y", 45))
		require.Equal(t, "11 "+strings.Repeat("y", 45)+" (11, 10 dropped)", one.read(t, "calls", 0))
		add(one, Bounds{Entries: 100, Bytes: 100}, 0, strings.Repeat("z", 55))
		require.Len(t, one.read(t, "calls", 0), len("11 , 12  (12, 10 dropped)")+45+55, "the sum is right again")
	})
	t.Run("emptied", func(t *testing.T) {
		require.NoError(t, other.Clear(t.Context(), "calls"))
		require.Equal(t, " (0, 0 dropped)", one.read(t, "calls", 0))
		add(one, wide, 0, "f")
		require.Equal(t, "13 f (1, 0 dropped)", one.read(t, "calls", 0), "numbers go on")
	})
	t.Run("tried again", func(t *testing.T) {
		for _, again := range []bool{false, true} {
			require.NoError(t, one.Add(t.Context(), "tries", wide, Batch{Entries: entriesOf("a", "b"), Lost: 5, Again: again}))
			require.Equal(t, "6 a, 7 b (7, 5 dropped)", one.read(t, "tries", 0))
		}
		require.NoError(t, one.Add(t.Context(), "tries", wide, Batch{Entries: entriesOf("c"), Again: true}))
		require.Equal(t, "6 a, 7 b, 8 c (8, 5 dropped)", one.read(t, "tries", 0))
	})
	t.Run("ended early", func(t *testing.T) {
		seen := 0
		_, err := one.Each(t.Context(), "tries", 0, func(int64, []byte) (bool, error) { seen++; return seen < 2, nil })
		require.NoError(t, err)
		require.Equal(t, 2, seen)
		_, err = one.Each(t.Context(), "tries", 0, func(int64, []byte) (bool, error) { return true, errors.New("no more") })
		require.ErrorContains(t, err, "no more")
	})
}

// A reader who goes on from the last number that it saw misses nothing, however
// many write.
func TestReaderMissesNothing(t *testing.T) {
	const writers, batches = 4, 25
	list := processes(t, "reader", "a", "b", "c", "d")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range batches {
				err := list[w+1].Add(t.Context(), "calls", Bounds{Entries: 1000, Bytes: 1 << 20}, Batch{Entries: entriesOf(fmt.Sprintf("%d.%d", w, n), "end")})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	var numbers []int64
	for last := false; !last; {
		select {
		case <-ended:
			last = true // and once more
		default:
		}
		var after int64
		if len(numbers) > 0 {
			after = numbers[len(numbers)-1]
		}
		_, err := list[0].Each(t.Context(), "calls", after, func(number int64, _ []byte) (bool, error) {
			numbers = append(numbers, number)
			return true, nil
		})
		require.NoError(t, err)
	}
	require.Len(t, numbers, writers*batches*2)
	require.True(t, slices.IsSorted(numbers))
}

func TestNumbersAreTakenOnce(t *testing.T) {
	both := processes(t, "one", "other")
	var mu sync.Mutex
	var wg sync.WaitGroup
	var firsts []int64
	for _, c := range both {
		wg.Go(func() {
			for range 20 {
				first, err := c.Numbers(t.Context(), "ids", 10)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				firsts = append(firsts, first)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(firsts)
	for i, first := range firsts {
		require.EqualValues(t, 10*i+1, first)
	}
}

func TestSettings(t *testing.T) {
	both := processes(t, "one", "other")
	one, other := both[0], both[1]
	is := func(want string, version int64) {
		t.Helper()
		for _, c := range both {
			state, at, err := c.Setting(t.Context(), "faults")
			require.NoError(t, err)
			require.Equal(t, want, string(state))
			require.Equal(t, version, at)
		}
	}
	more := func(state []byte) ([]byte, error) { return append(state, 'x'), nil }
	is("", 0)
	version, err := one.Set(t.Context(), "faults", more)
	require.NoError(t, err)
	require.EqualValues(t, 1, version)
	is("x", 1)
	require.NoError(t, other.Count(t.Context(), "faults", more))
	is("xx", 1)
	refusal := errors.New("refused")
	_, err = other.Set(t.Context(), "faults", func([]byte) ([]byte, error) { return nil, refusal })
	require.Equal(t, refusal, err)
	is("xx", 1)

	var wg sync.WaitGroup
	for _, c := range both {
		wg.Go(func() {
			for range 20 {
				if _, err := c.Set(t.Context(), "faults", more); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	is(strings.Repeat("x", 42), 41)
}

// Who changes a setting waits for those that are alive, and not for ever.
func TestAwait(t *testing.T) {
	list := processes(t, "one", "other", "dead", "left")
	one, other, dead, left := list[0], list[1], list[2], list[3]
	one.lives(t, "0 s")
	dead.lives(t, "1 min")
	alone, err := one.Alone(t.Context())
	require.NoError(t, err)
	require.True(t, alone)
	for process, want := range map[string]bool{"one": true, "other": false, "dead": false} {
		lives, err := one.Lives(t.Context(), process)
		require.NoError(t, err)
		require.Equal(t, want, lives, process)
	}
	await := func(patience time.Duration, version int64) bool {
		t.Helper()
		one.timeout = patience
		late, err := one.Await(t.Context(), "faults", version)
		require.NoError(t, err)
		return late
	}
	require.False(t, await(time.Hour, 1), "nobody else is alive")
	other.lives(t, "0 s")
	alone, err = one.Alone(t.Context())
	require.NoError(t, err)
	require.False(t, alone)
	require.True(t, await(time.Millisecond, 1))
	require.NoError(t, other.Heard(t.Context(), "faults", 2))
	require.NoError(t, other.Heard(t.Context(), "faults", 1), "an answer that comes late")
	require.False(t, await(time.Hour, 2))
	require.True(t, await(time.Millisecond, 3))

	waits := make(chan bool)
	go func() {
		one.timeout = time.Hour
		late, err := one.Await(t.Context(), "faults", 3)
		waits <- late || err != nil
	}()
	require.NoError(t, other.Heard(t.Context(), "faults", 3))
	require.False(t, <-waits)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = one.Await(ctx, "faults", 9)
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, left.Heard(t.Context(), "faults", 9))
	require.NoError(t, left.Leave(t.Context()))
	left.lives(t, "0 s")
	require.NoError(t, other.Heard(t.Context(), "faults", 9))
	require.True(t, await(time.Millisecond, 9), "nothing is left of what it had heard")
}
