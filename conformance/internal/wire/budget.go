package wire

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/destkit/destkit/internal/quantity"
)

// The memory of all replies of a client that are in use, without small ones: 64 of them take 16 MiB.
const (
	memoryBudget = 64 << 20
	freeBytes    = 256 << 10
)

// budget counts the bytes of large bodies and trees that are alive, so that many huge replies
// at once cannot add up. They come back when the garbage collector finds the memory unused.
type budget struct {
	mu     sync.Mutex
	used   int64
	max    int64
	spare  func() // gives up memory that only saves time; nil: there is none
	alone  bool   // replies are read one after the other: none gives back while one waits
	gc     sync.Mutex
	lastGC time.Time
}

// take counts n bytes; false means that they must not be allocated.
func (b *budget) take(n int64) bool { return n <= freeBytes || b.tryTake(n) || b.collect(n) }

func (b *budget) tryTake(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.max {
		return false
	}
	b.used += n
	return true
}

// collect lets the garbage collector free unused memory, once for concurrent calls.
func (b *budget) collect(n int64) bool {
	asked := time.Now()
	b.gc.Lock()
	defer b.gc.Unlock()
	if b.lastGC.After(asked) {
		return b.tryTake(n)
	}
	if b.spare != nil {
		b.spare()
	}
	runtime.GC()
	b.lastGC = time.Now()
	// Cleanups run on their own goroutine shortly after the collection.
	for range 10 {
		if b.tryTake(n) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return b.tryTake(n)
}

// await is take that waits up to two and a half seconds: others may be done with theirs soon.
func (b *budget) await(n int64) bool {
	for pause := 10 * time.Millisecond; !b.take(n); pause *= 2 {
		if b.alone || pause > 1280*time.Millisecond {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// give returns n bytes that take had counted.
func (b *budget) give(n int64) {
	if n <= freeBytes {
		return
	}
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
}

// follow returns n bytes once the object of ptr is no longer reachable.
func follow[T any](b *budget, ptr *T, n int64) {
	if n > freeBytes {
		runtime.AddCleanup(ptr, b.give, n)
	}
}

// grower is a byte buffer of at most max bytes that takes from the budget before it grows. Where
// nothing is left it keeps the beginning and counts the rest, which distinguishes a body that is
// too large by itself from one among too many.
type grower struct {
	buf    []byte
	max    int64
	budget *budget
	past   int64 // bytes that were counted and not kept
	lost   error // why; nil while all are kept
}

const (
	lostHead = freeBytes / 4 // is kept by a grower that lost the rest
	scratch  = freeBytes / 2 // is the buffer that it reads on with, which is not counted
	// heavy bodies are themselves the reason why they do not fit into memory with others.
	heavy = 2 << 20
)

// ended is the error of a body that has come to its end, nil when all of it was kept.
func (g *grower) ended() error {
	if g.lost != nil && g.size() >= heavy {
		return tooLarge("the body has %s, and the bodies of all calls in flight are together larger than %d", quantity.Count(g.size(), "byte"), g.budget.max)
	}
	return g.lost
}

// size is how many bytes have come.
func (g *grower) size() int64 { return g.past + int64(len(g.buf)) }

// room makes space for at least one byte, or drops what was kept but its beginning. A total
// that is announced (0: none is) avoids waste, but is not believed beyond what has arrived.
func (g *grower) room(total int64) {
	if len(g.buf) < cap(g.buf) {
		return
	}
	old := int64(cap(g.buf))
	size := max(2*old, 4<<10)
	if total > old {
		size = min(total, max(2*old, 64<<10))
	}
	size = min(size, g.max+1) // one byte over the bound is enough to see that it is exceeded
	if g.lost == nil && g.budget.take(size) {
		g.buf = append(make([]byte, 0, size), g.buf...)
		g.budget.give(old)
		return
	}
	head := g.buf[:min(len(g.buf), lostHead)]
	g.past += int64(len(g.buf) - len(head))
	if g.buf = head; g.lost == nil {
		g.lost = unread("the bodies of all calls in flight are together larger than %s", quantity.Count(g.budget.max, "byte"))
		g.buf = append(make([]byte, 0, scratch), head...)
		g.budget.give(old)
	}
}

// take hands the bytes over; the budget follows their life from here on.
func (g *grower) take() []byte {
	buf := g.buf
	g.buf = nil
	if cap(buf) > 0 {
		follow(g.budget, &buf[:1][0], int64(cap(buf)))
	}
	return buf
}

// clip frees all but a short beginning: a body over its bound is not worth its memory.
func (g *grower) clip() []byte {
	head := bytes.Clone(g.buf[:min(len(g.buf), recordedResponse)])
	g.budget.give(int64(cap(g.buf)))
	g.buf = nil
	return head
}

// memoryListener is a net.Listener without a network.
type memoryListener struct {
	conns chan net.Conn
	done  <-chan struct{}
	close func()
}

func listenInMemory() *memoryListener {
	ctx, stop := context.WithCancel(context.Background())
	return &memoryListener{make(chan net.Conn), ctx.Done(), stop}
}

// Accept waits for the next connection.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close refuses new connections.
func (l *memoryListener) Close() error {
	l.close()
	return nil
}

// Addr is 127.0.0.1:2.
func (l *memoryListener) Addr() net.Addr { return serverAddr }

// dial connects to the listener, whatever the address.
func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	accepted := *serverAddr // a connection has its own address, as from the system
	select {
	case l.conns <- memoryConn{server, &accepted, clientAddr}:
		return memoryConn{client, clientAddr, serverAddr}, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: serverAddr, Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ServeHandler serves a handler in memory, until stop, to the clients of dial.
func ServeHandler(h http.Handler) (dial func(ctx context.Context, network, addr string) (net.Conn, error), stop func()) {
	l := listenInMemory()
	// A handler that panics shows as a closed connection, not on a user's standard error.
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(l) })
	return l.dial, func() {
		srv.Close()
		serving.Wait()
	}
}

var (
	clientAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	serverAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2}
)

// memoryConn is one end of a connection, with the addresses that handlers expect.
type memoryConn struct {
	net.Conn
	local, remote net.Addr
}

func (c memoryConn) LocalAddr() net.Addr  { return c.local }
func (c memoryConn) RemoteAddr() net.Addr { return c.remote }
