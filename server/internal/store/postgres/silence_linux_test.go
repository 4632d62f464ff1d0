package postgres

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
)

// passage is a way to the server on which nothing is heard any more once it is mute.
type passage struct {
	net.Listener
	to   string
	mute chan struct{}
	ways sync.WaitGroup
	gone context.Context
	end  context.CancelFunc
}

func newPassage(t *testing.T) *passage {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &passage{Listener: l, to: fmt.Sprintf("127.0.0.1:%d", testkit.StartPostgres(t).Port), mute: make(chan struct{})}
	p.gone, p.end = context.WithCancel(context.Background())
	context.AfterFunc(p.gone, func() { _ = l.Close() })
	p.ways.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			p.ways.Go(func() { p.carry(in) })
		}
	})
	t.Cleanup(func() { p.end(); p.ways.Wait() })
	return p
}

func (p *passage) carry(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer out.Close()
	defer context.AfterFunc(p.gone, func() { _ = in.Close() })()
	p.ways.Go(func() { _, _ = io.Copy(in, out) })
	text := make([]byte, 64<<10)
	for {
		n, err := in.Read(text)
		if err != nil {
			return
		}
		select {
		case <-p.mute:
		default:
			_, _ = out.Write(text[:n])
		}
	}
}

// silenceOf is TCP_USER_TIMEOUT of a connection in milliseconds.
func silenceOf(t *testing.T, c *pgx.Conn) (ms int) {
	t.Helper()
	raw, err := c.PgConn().Conn().(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { ms, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, 18) }))
	require.NoError(t, err)
	return ms
}

// A server that cannot be reached any more, and one that swallows what it is asked,
// hold no one up for ever, whatever the context of the statement says.
func TestSilence(t *testing.T) {
	way := newPassage(t)
	p, err := New(Options{URL: fmt.Sprintf("postgres://%s:%s@%s/postgres?sslmode=disable", testkit.PostgresUser, testkit.PostgresPassword, way.Addr())})
	require.NoError(t, err)
	c, err := p.dial(t.Context(), false)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, int(silence.Milliseconds()), silenceOf(t, c.whole))
	config, err := p.at.config()
	require.NoError(t, err)
	config.ConnConfig.Tracer = bounded(50 * time.Millisecond)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	defer way.end()
	never := context.Background()
	several := &pgx.Batch{}
	several.Queue("SELECT 1")
	asks := []func(c *pgxpool.Conn) error{
		func(c *pgxpool.Conn) error { _, err := c.Exec(never, "SELECT 1"); return err },
		func(c *pgxpool.Conn) error { return c.QueryRow(never, "SELECT 1").Scan(new(int)) },
		func(c *pgxpool.Conn) error { return c.SendBatch(never, several).Close() },
		func(c *pgxpool.Conn) error {
			_, err := c.CopyFrom(never, pgx.Identifier{"nowhere"}, []string{"n"}, pgx.CopyFromRows(nil))
			return err
		},
	}
	var conns []*pgxpool.Conn
	for range asks {
		one, err := pool.Acquire(never)
		require.NoError(t, err)
		defer one.Release()
		require.Equal(t, int(silence.Milliseconds()), silenceOf(t, one.Conn()))
		require.NoError(t, one.QueryRow(never, "SELECT 1").Scan(new(int)))
		conns = append(conns, one)
	}

	close(way.mute)
	c.timeout = 50 * time.Millisecond
	require.ErrorIs(t, c.command("SELECT 1"), ErrUnavailable)
	for i, ask := range asks {
		err := ask(conns[i])
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, Explained(err), ErrUnavailable)
	}
}
