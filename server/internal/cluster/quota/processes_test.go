//go:build unix

package quota

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
)

// childOf names the schema for a test program that is one of several processes.
const childOf = "DESTKIT_TEST_QUOTA_CHILD"

const childLimit = 150

func TestMain(m *testing.M) {
	if connection := os.Getenv(childOf); connection != "" {
		os.Exit(child(connection))
	}
	os.Exit(testkit.RunWithPostgres(m))
}

// child sends until it is killed, and prints the moments.
func child(connection string) int {
	pool, err := pgxpool.New(context.Background(), connection)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	l := limiter(New(pool, nil), 1)
	l.Announce(childLimit)
	var printing sync.Mutex
	for range 4 {
		go func() {
			for {
				taken := time.Now()
				if wait := l.Take(taken, nil, 0); wait > 0 {
					time.Sleep(wait)
				} else if l.Still(taken, nil, 0) {
					now := time.Now()
					printing.Lock()
					fmt.Println(now.UnixNano())
					printing.Unlock()
					l.Written(now, nil, 0)
				}
			}
		}()
	}
	select {}
}

// TestProcessesThatAreFrozenAndKilled are real ones, and what happens to them
// depends on how much they have sent together.
func TestProcessesThatAreFrozenAndKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	process := installation(t, "processes")
	connection := process().Config().ConnString()
	type line struct {
		child int
		at    time.Time
	}
	lines := make(chan line)
	ended := make(chan struct{})
	defer close(ended)
	children := make([]*exec.Cmd, 4)
	for i := range children {
		c := exec.Command(os.Args[0])
		c.Env, c.Stderr = append(os.Environ(), childOf+"="+connection), os.Stderr
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		defer func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		}()
		children[i] = c
		go func() {
			for in := bufio.NewScanner(out); in.Scan(); {
				if at, err := strconv.ParseInt(in.Text(), 10, 64); err == nil {
					select {
					case lines <- line{i, time.Unix(0, at)}:
					case <-ended:
						return
					}
				}
			}
		}()
	}
	signals := map[int]func() error{
		1 * childLimit:     func() error { return children[0].Process.Signal(syscall.SIGSTOP) },
		5 * childLimit / 4: func() error { return children[1].Process.Kill() },
		// The first one has lost what it held by now, and the third one not yet when it
		// goes on.
		5 * childLimit / 2:  func() error { return children[0].Process.Signal(syscall.SIGCONT) },
		11 * childLimit / 4: func() error { return children[2].Process.Signal(syscall.SIGSTOP) },
		23 * childLimit / 8: func() error { return children[2].Process.Signal(syscall.SIGCONT) },
	}
	var sent []time.Time
	parts := make([]int, len(children))
	for n := 1; n <= 7*childLimit/2; n++ {
		l := <-lines
		sent = append(sent, l.at)
		parts[l.child]++
		if signal := signals[n]; signal != nil {
			require.NoError(t, signal())
		}
	}
	require.LessOrEqual(t, densest(sent), childLimit)
	for _, n := range parts {
		require.Positive(t, n, parts)
	}
	t.Logf("%d sent in %s, by %v", len(sent), sent[len(sent)-1].Sub(sent[0]), parts)
}
