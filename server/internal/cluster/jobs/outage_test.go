package jobs

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// door stands before the server and can be shut: connections end, and new ones are
// refused.
type door struct {
	to, at string
	mu     sync.Mutex
	listen net.Listener
	inside map[net.Conn]bool
	all    sync.WaitGroup
}

func (d *door) open(t testing.TB) {
	l, err := net.Listen("tcp", d.at)
	require.NoError(t, err)
	d.at, d.listen, d.inside = l.Addr().String(), l, map[net.Conn]bool{}
	d.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", d.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			d.enter(in, out)
		}
	})
}

func (d *door) enter(in, out net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inside == nil { // shut meanwhile
		_, _ = in.Close(), out.Close()
		return
	}
	d.inside[in], d.inside[out] = true, true
	d.pass(in, out)
	d.pass(out, in)
}

func (d *door) pass(from, to net.Conn) {
	d.all.Go(func() {
		_, _ = io.Copy(to, from)
		_, _ = from.Close(), to.Close()
	})
}

func (d *door) shut() {
	_ = d.listen.Close()
	d.mu.Lock()
	for c := range d.inside {
		_ = c.Close()
	}
	d.inside = nil
	d.mu.Unlock()
	d.all.Wait()
}

// A queue whose connections are ended, or whose server is gone for a while, works on
// when it can.
func TestTheDatabaseGoesAwayAndComesBack(t *testing.T) {
	f := newFleet(t, "jobs_outage")
	api := f.process("api", 0, nil)
	d := &door{to: "127.0.0.1:" + strconv.Itoa(f.port), at: "127.0.0.1:0"}
	d.open(t)
	t.Cleanup(d.shut)
	_, port, err := net.SplitHostPort(d.at)
	require.NoError(t, err)
	direct := *f
	f.host = "127.0.0.1"
	f.port, err = strconv.Atoi(port)
	require.NoError(t, err)

	begun, release := make(chan Run), make(chan struct{})
	q := f.process("one", 2, func(_ context.Context, run Run) (bool, error) {
		begun <- run
		if run.ID == 2 {
			<-release // it works while the database is away
		}
		return false, nil
	})
	direct.add(api, Run{ID: 1, SyncID: 1, Turn: 1})
	<-begun
	direct.add(api, Run{ID: 2, SyncID: 1, Turn: 1})
	<-begun
	f.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND client_addr IS NOT NULL")
	direct.add(api, Run{ID: 3, SyncID: 1, Turn: 1})
	require.Equal(t, int64(3), (<-begun).ID)

	d.shut()
	direct.add(api, Run{ID: 4, SyncID: 1, Turn: 1})
	close(release) // its end is told once a process listens
	_, err = q.Lost(t.Context(), []Run{{ID: 4, SyncID: 1, Turn: 1}})
	require.Error(t, err)
	d.open(t)
	require.Equal(t, int64(4), (<-begun).ID)
	f.completed(4)
}
