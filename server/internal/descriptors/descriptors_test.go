package descriptors

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShares(t *testing.T) {
	s := Split(1024)
	require.EqualValues(t, 384, s.Runs.Figures().Most)
	require.EqualValues(t, 384, s.Connections.Figures().Most)
	require.EqualValues(t, most, Split(1<<40).Limit)
	require.EqualValues(t, 1, Split(0).Runs.Figures().Most, "there is always one")
}

// TestOneAfterTheOther: who comes first is served first, also where a later one wants
// less; who wants more than all gets all; nothing is given back twice.
func TestOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New("x", 10)
		first, ok := b.Try(8)
		require.True(t, ok)
		var order []string
		take := func(name string, n int64) (release func()) {
			got := make(chan func(), 1)
			go func() {
				release, err := b.Take(t.Context(), n, func() { order = append(order, name) })
				if err == nil {
					got <- release
				}
			}()
			synctest.Wait()
			return func() { (<-got)() }
		}
		all, small := take("all", 99), take("small", 1)
		require.Equal(t, Figures{8, 10, 2}, b.Figures())
		_, ok = b.Try(1)
		require.False(t, ok, "somebody waits for it")
		first()
		first()
		require.Equal(t, Figures{10, 10, 1}, b.Figures())
		all()
		require.Equal(t, Figures{1, 10, 0}, b.Figures())
		small()
		require.Equal(t, Figures{0, 10, 0}, b.Figures())
		require.Equal(t, []string{"all", "small"}, order)
	})
}

// TestTheWaitIsBounded by the time in which nothing comes free, and by the context; who
// gives up holds no one up.
func TestTheWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New("sync runs", 4)
		relieved := 0
		drop := b.Relief(func() { relieved++ })
		one, _ := b.Try(2)
		other, _ := b.Try(2)
		_ = other
		go func() {
			time.Sleep(Timeout - time.Second)
			one()
		}()
		go func() {
			release, err := b.Take(t.Context(), 1, nil)
			require.NoError(t, err, "it came free in time")
			_ = release
		}()
		synctest.Wait()
		begun := time.Now()
		_, err := b.Take(t.Context(), 2, nil)
		var none *ExhaustedError
		require.ErrorAs(t, err, &none)
		require.Equal(t, 2*Timeout-time.Second, time.Since(begun), "from what was given back last")
		require.EqualError(t, err, "no file descriptor came free for 3m59s (2 of the 4 for sync runs wanted): raise the limit of open files (ulimit -n), or let less run at once")
		require.Equal(t, 2, relieved)
		drop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = b.Take(ctx, 2, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2, relieved)
		require.Equal(t, Figures{3, 4, 0}, b.Figures())
	})
}

// TestTheLimitIsRaised: a process that is started with a low soft limit budgets the hard
// one.
func TestTheLimitIsRaised(t *testing.T) {
	if os.Getenv("DESTKIT_SHOW_LIMIT") != "" {
		println("limit", Process().Limit)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("limits are set by a shell of Linux")
	}
	command := exec.Command("sh", "-c", `ulimit -Sn 200 && ulimit -Hn 4000 && exec "$0" -test.run '^TestTheLimitIsRaised$'`, os.Args[0])
	command.Env = append(os.Environ(), "DESTKIT_SHOW_LIMIT=1")
	text, err := command.CombinedOutput()
	require.NoError(t, err, string(text))
	require.Regexp(t, "limit (3999|4000)\n", string(text), "the runtime leaves one")
}
