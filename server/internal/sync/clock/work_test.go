package clock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSettleWaitsForBusy(t *testing.T) {
	c := open(t)
	done := c.Busy("upload")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, c.Settle(ctx), "settle clock: context canceled; still running: upload")
	settled := make(chan error, 1)
	go func() { settled <- c.Settle(t.Context()) }()
	done()
	done() // once more does nothing
	require.NoError(t, <-settled)
}

// TestSleepersAreQuiet: a run that waits for its next try does not hold up the
// settling, and Advance takes it further.
func TestSleepersAreQuiet(t *testing.T) {
	c := open(t)
	var d diary
	c.AfterFunc(0, "run", func(ctx context.Context) {
		for range 3 {
			d.note(c, "try")(ctx)
			require.NoError(t, c.Sleep(ctx, time.Hour))
		}
		d.note(c, "end")(ctx)
	})
	require.NoError(t, c.Settle(t.Context()))
	require.Equal(t, []string{"try 0s"}, d.read())
	require.Empty(t, c.Running())
	report := advance(t, c, 2*time.Hour)
	require.Zero(t, report.Count, "no function was started")
	require.Equal(t, []string{"try 0s", "try 1h0m0s", "try 2h0m0s"}, d.read())
	advance(t, c, 2*time.Hour)
	require.Equal(t, "end 3h0m0s", d.read()[3])
}

// TestDozersAreAtWork: a run that keeps a rate is not quiet between two batches while
// time runs. Frozen it is, since nothing would end the wait, and Advance takes it
// further.
func TestDozersAreAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		defer c.Close()
		sent := 0
		rate := func(ctx context.Context) {
			for range 3 {
				sent++
				if c.Doze(ctx, 500*time.Millisecond) != nil {
					return
				}
			}
		}
		c.AfterFunc(0, "run", rate)
		require.NoError(t, c.Settle(t.Context()))
		require.Equal(t, 3, sent)

		c.Freeze(true)
		c.AfterFunc(0, "run", rate)
		require.NoError(t, c.Settle(t.Context()))
		require.Equal(t, 4, sent)
		advance(t, c, time.Second)
		require.Equal(t, 6, sent)

		// Who gives up, and who is frozen while another waits, ends the wait.
		c.Freeze(false)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = c.Doze(ctx, time.Hour) }()
		synctest.Wait()
		settled := make(chan error, 1)
		go func() { settled <- c.Settle(t.Context()) }()
		synctest.Wait()
		require.Empty(t, settled)
		c.Freeze(true)
		require.NoError(t, <-settled)
		c.Freeze(false)
		go func() { settled <- c.Settle(t.Context()) }()
		synctest.Wait()
		cancel()
		require.NoError(t, <-settled)
	})
}

// TestWorkOfManyGoroutines: a run waits for its batches, which sleep; Pause
// and the resume by the last batch keep the clock honest.
func TestWorkOfManyGoroutines(t *testing.T) {
	c := open(t)
	var d diary
	c.AfterFunc(0, "run", func(ctx context.Context) {
		const batches = 4
		over, left := make(chan struct{}), make(chan int, 1)
		left <- batches
		works, ends := make([]context.Context, batches), make([]func(), batches)
		for i := range batches {
			works[i], ends[i] = c.Work(ctx, "batch")
		}
		resume := c.Pause(ctx)
		for i := range batches {
			go func() {
				defer ends[i]()
				require.NoError(t, c.Sleep(works[i], time.Duration(i+1)*time.Minute))
				if n := <-left; n > 1 {
					left <- n - 1
					return
				}
				resume() // before the waiter is woken
				close(over)
			}()
		}
		<-over
		resume()
		d.note(c, "all")(ctx)
	})
	advance(t, c, 10*time.Minute)
	require.Equal(t, []string{"all 4m0s"}, d.read())
}

func TestSleep(t *testing.T) {
	c := open(t)
	require.NoError(t, c.Sleep(t.Context(), 0))
	require.NoError(t, c.Sleep(t.Context(), -time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	slept := make(chan error, 1)
	work, done := c.Work(ctx, "sleeper")
	go func() {
		defer done()
		slept <- c.Sleep(work, time.Hour)
	}()
	require.NoError(t, c.Settle(t.Context()))
	cancel()
	require.ErrorIs(t, <-slept, context.Canceled)
	require.NoError(t, c.Settle(t.Context()))
	require.Empty(t, c.Waiting(), "a sleeper that gave up leaves nothing behind")
	require.ErrorIs(t, c.Sleep(ctx, time.Hour), context.Canceled)
	resume := c.Pause(t.Context()) // of no work
	resume()
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		var slept, ended error
		c.AfterFunc(0, "sleeper", func(ctx context.Context) { slept = c.Sleep(ctx, time.Hour) })
		c.AfterFunc(0, "worker", func(ctx context.Context) {
			<-ctx.Done()
			ended = ctx.Err()
		})
		work, done := c.Work(t.Context(), "work")
		go func() {
			<-work.Done()
			done()
		}()
		late := c.AfterFunc(time.Hour, "late", func(context.Context) { t.Error("ran after Close") })
		synctest.Wait()
		c.Close()
		require.ErrorIs(t, slept, ErrClosed)
		require.ErrorIs(t, ended, context.Canceled)
		require.False(t, late.Stop())
		require.False(t, c.AfterFunc(0, "more", func(context.Context) { t.Error("ran after Close") }).Stop())
		require.ErrorIs(t, c.Sleep(t.Context(), 1), ErrClosed)
		require.NoError(t, c.Settle(t.Context()))
		c.Close()
	})
}

// TestCloseDuringAdvance: the caller of Advance gets an error.
func TestCloseDuringAdvance(t *testing.T) {
	c := open(t)
	started := make(chan struct{})
	c.AfterFunc(time.Hour, "long", func(ctx context.Context) {
		close(started)
		<-ctx.Done()
	})
	failed := make(chan error, 1)
	go func() {
		_, err := c.Advance(t.Context(), 2*time.Hour)
		failed <- err
	}()
	<-started
	c.Close()
	require.ErrorIs(t, <-failed, ErrClosed)
}

// TestAdvanceWaitsForDozers: what dozes beyond the end of the way ends by itself when
// time runs on, so it is waited for; on a frozen clock it does not.
func TestAdvanceWaitsForDozers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		defer c.Close()
		ended := 0
		paced := func(ctx context.Context) {
			for range 3 {
				if c.Doze(ctx, 40*time.Second) != nil {
					return
				}
			}
			ended++
		}
		c.AfterFunc(time.Hour, "run", paced)
		advance(t, c, time.Hour)
		require.Equal(t, 1, ended)

		c.AfterFunc(time.Hour, "run", paced)
		ctx, giveUp := context.WithTimeout(t.Context(), time.Minute)
		defer giveUp()
		report, err := c.Advance(ctx, time.Hour)
		require.ErrorContains(t, err, "deadline exceeded; still running: run")
		require.Equal(t, report.From.Add(time.Hour), report.To, "the way was gone")

		c.Freeze(true)
		advance(t, c, time.Second)
		require.Equal(t, 1, ended)
		advance(t, c, 2*time.Minute)
		require.Equal(t, 2, ended)
	})
}

// TestSetBackKeepsWaits: a wait for a duration lasts no longer, even with time
// stopped; a wait for a moment lasts until then.
func TestSetBackKeepsWaits(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := New(nil)
			defer c.Close()
			c.Freeze(frozen)
			var d diary
			c.AfterFunc(time.Minute, "while", d.note(c, "while"))
			c.At(c.Now().Add(time.Minute), "moment", d.note(c, "moment"))
			slept := make(chan error, 2)
			go func() { slept <- c.Sleep(t.Context(), time.Minute) }()
			go func() { slept <- c.Doze(t.Context(), time.Minute) }()
			synctest.Wait()
			require.NoError(t, c.Set(c.Now().Add(-24*time.Hour)))
			advance(t, c, time.Minute)
			require.NoError(t, <-slept)
			require.NoError(t, <-slept)
			require.Len(t, d.read(), 1)
			require.Contains(t, d.read()[0], "while")
		})
	}
}

// TestAdvanceLeavesPauses that a destination requested: settling waits for them.
func TestAdvanceLeavesPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil)
		defer c.Close()
		ended := 0
		c.AfterFunc(time.Hour, "run", func(ctx context.Context) {
			_ = c.Rest(ctx, time.Minute)
			ended++
		})
		advance(t, c, time.Hour)
		require.Zero(t, ended)
		require.NoError(t, c.Settle(t.Context()))
		require.Equal(t, 1, ended)
	})
}

// TestSettleHearsOfSleepers: a sleeper without any work was all that was due. Who settles
// learns when it wakes, is called off or has to wait again.
func TestSettleHearsOfSleepers(t *testing.T) {
	for name, end := range map[string]func(c *Clock, cancel func()){
		"it wakes":         func(c *Clock, _ func()) { c.look() },
		"it is called off": func(_ *Clock, cancel func()) { cancel() },
		"time goes back":   func(c *Clock, _ func()) { _ = c.Set(c.Now().Add(-time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(nil)
				defer c.Close()
				c.Freeze(true)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = c.Sleep(ctx, time.Second) }()
				synctest.Wait()
				c.mu.Lock()
				c.queue[0].at = c.at // due, and the loop has not looked yet
				c.mu.Unlock()
				settled := make(chan error, 1)
				go func() { settled <- c.Settle(t.Context()) }()
				synctest.Wait()
				require.Empty(t, settled)
				end(c, cancel)
				synctest.Wait()
				require.Len(t, settled, 1)
			})
		})
	}
}
