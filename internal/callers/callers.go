// Package callers bounds what the connections of a server hold whose request has not come
// yet: those at rest and those that stall in a head.
package callers

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxHead is http.Server.MaxHeaderBytes: with the 4 KiB that net/http adds, a head has
	// at most 16 KiB.
	MaxHead = 12 << 10
	// mostWaiting connections wait for a head at once; one with more than shortHead bytes
	// of it counts longHead times.
	mostWaiting = 2048
	longHead    = 6
	shortHead   = 4 << 10
	// quiet is how long a connection that has sent a part of a head must send nothing before
	// it gives way; patient, one that has sent nothing at all, or is in a TLS handshake. Who
	// sends a head little by little for longer than dripping gives way as well.
	quiet    = time.Second / 10
	patient  = 2 * time.Second
	dripping = 5 * time.Second
	// manyOpen connections leave memory behind that is given back to the system.
	manyOpen = 512
)

// Listener gives connections that are counted. Beyond the bounds, the one that has waited
// for a whole head the longest is closed; where none can be, Accept waits.
type Listener struct {
	net.Listener
	most int // connections of all kinds; 0: no bound

	mu         sync.Mutex
	waiting    list.List // of *Conn, the longest first
	weight     int       // of the waiting ones
	open, peak int
	trimming   bool
	closed     bool
}

// Listen counts the connections of inner, of which most are open at once; 0: any number.
// TLS goes on top. Connections that are counted already stay as they are.
func Listen(inner net.Listener, most int) *Listener { return &Listener{Listener: inner, most: most} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if _, secure := conn.(*tls.Conn); err != nil || secure || Of(conn) != nil { // servers know TLS by its type
		return conn, err
	}
	c := &Conn{Conn: conn, from: l}
	c.reading.Store(time.Now().UnixNano())
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && !l.trim(1) {
		l.mu.Unlock()
		time.Sleep(quiet / 20)
		l.mu.Lock()
	}
	l.open++
	l.peak = max(l.peak, l.open)
	l.enter(c)
	return c, nil
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.Listener.Close()
}

// trim closes connections until there is room for so many more; false: none can be closed.
func (l *Listener) trim(more int) bool {
	for l.weight+more > mostWaiting || l.most > 0 && l.open+more > l.most {
		if !l.closeLongest() {
			return false
		}
	}
	return true
}

// closeLongest closes the connection that has waited the longest and sends nothing.
func (l *Listener) closeLongest() bool {
	now := time.Now()
	for at := l.waiting.Front(); at != nil; at = at.Next() {
		c := at.Value.(*Conn)
		after := quiet
		if got := c.got.Load(); got == 0 || got <= shortHead && c.handshake.Load() {
			after = patient
		}
		since, first := c.reading.Load(), c.first.Load()
		drips := first != 0 && first < now.Add(-dripping).UnixNano()
		if !drips && (since == 0 || since > now.Add(-after).UnixNano()) || c.busy != nil && c.busy() {
			continue
		}
		_ = c.Conn.Close()
		l.closing(c)
		return true
	}
	return false
}

// trimSoon trims now, and again while that is not enough.
func (l *Listener) trimSoon() {
	if !l.trim(0) && !l.trimming && !l.closed {
		l.trimming = true
		time.AfterFunc(quiet, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.trimming = false
			l.trimSoon()
		})
	}
}

func (l *Listener) enter(c *Conn) {
	c.at, c.weight = l.waiting.PushBack(c), 1
	l.weight++
}

func (l *Listener) leave(c *Conn) {
	if c.at != nil {
		l.waiting.Remove(c.at)
		l.weight -= c.weight
		c.at = nil
	}
}

// closing counts a connection out.
func (l *Listener) closing(c *Conn) {
	l.leave(c)
	if c.closed {
		return
	}
	c.closed = true
	l.open--
	if l.peak >= manyOpen && l.open <= l.peak/4 {
		l.peak = l.open
		time.AfterFunc(time.Second, debug.FreeOSMemory)
	}
}

// Conn is a connection of a Listener. It waits for a head at first. The methods of nil do
// nothing.
type Conn struct {
	net.Conn
	from      *Listener
	reading   atomic.Int64 // when the Read under way began; 0: there is none
	got       atomic.Int64 // bytes since it rests
	first     atomic.Int64 // when the first of these came; 0: none has
	handshake atomic.Bool  // it has begun with TLS
	// Of the Listener's lock:
	at     *list.Element // nil: it has a request, or is closed
	weight int
	busy   func() bool
	closed bool
}

// Of is the Conn beneath others; nil: there is none.
func Of(conn net.Conn) *Conn {
	for {
		switch c := conn.(type) {
		case *Conn:
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// Plain is the connection itself without the count.
func Plain(conn net.Conn) net.Conn {
	if c, ok := conn.(*Conn); ok {
		return c.Conn
	}
	return conn
}

// State is a hook for http.Server.ConnState.
func State(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive, http.StateHijacked: // the head is there
		Of(conn).Work()
	case http.StateIdle:
		Of(conn).Rest(nil)
	}
}

// Rest notes that the next byte begins a head. While busy, which may be nil, reports true,
// the connection does not give way.
func (c *Conn) Rest(busy func() bool) {
	if c == nil {
		return
	}
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	if c.busy = busy; c.at == nil && !c.closed {
		c.got.Store(0)
		c.first.Store(0)
		c.from.enter(c)
		c.from.trimSoon()
	}
}

// Work notes that a whole head is there.
func (c *Conn) Work() {
	if c != nil {
		c.from.mu.Lock()
		defer c.from.mu.Unlock()
		c.from.leave(c)
	}
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	c.reading.Store(time.Now().UnixNano())
	n, err := c.Conn.Read(b)
	c.reading.Store(0)
	c.Received(b[:n])
	return n, err
}

// Received notes bytes that were read without Read.
func (c *Conn) Received(b []byte) {
	if c == nil || len(b) == 0 {
		return
	}
	n := int64(len(b))
	got := c.got.Add(n)
	if got == n {
		c.first.Store(time.Now().UnixNano())
		c.handshake.Store(b[0] == 0x16) // the type of its record
	}
	if got > shortHead && got-n <= shortHead {
		c.from.mu.Lock()
		defer c.from.mu.Unlock()
		if c.at != nil {
			c.from.weight += longHead - c.weight
			c.weight = longHead
			c.from.trimSoon()
		}
	}
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.from.mu.Lock()
	c.from.closing(c)
	c.from.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends one direction.
func (c *Conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// SetLinger lets a handler reset the connection.
func (c *Conn) SetLinger(seconds int) error {
	if conn, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return conn.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}
