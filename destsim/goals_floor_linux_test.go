package destsim

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
	"unsafe"
)

// The floor is the least that two processes can do over loopback: raw epoll, one
// thread, no request looked at but for its length and no reply made. The
// simulator is measured against it, by the same client.

// poller is one epoll instance over non-blocking connections.
type poller struct {
	fd     int
	events [64]syscall.EpollEvent
}

func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(0)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	return &poller{fd: fd}, nil
}

// want adds or removes room to write among the awaited events.
func (p *poller) want(fd int, room bool) {
	events := uint32(syscall.EPOLLIN)
	if room {
		events |= syscall.EPOLLOUT
	}
	_ = syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_MOD, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)})
}

func (p *poller) add(fd int) error {
	return syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

// wait gives the descriptors that can be read.
func (p *poller) wait() ([]syscall.EpollEvent, error) {
	for {
		n, err := syscall.EpollWait(p.fd, p.events[:], 1000)
		if !errors.Is(err, syscall.EINTR) {
			return p.events[:max(n, 0)], err
		}
	}
}

// serveFloor accepts on a port of loopback that ready gets, and answers
// every size bytes of a connection with reply.
func serveFloor(size int, reply []byte, ready func(address string)) error {
	ln, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	if err := syscall.Bind(ln, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if err := syscall.Listen(ln, 128); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	at, err := syscall.Getsockname(ln)
	if err != nil {
		return fmt.Errorf("name socket: %w", err)
	}
	p, err := newPoller()
	if err != nil {
		return err
	}
	if err := p.add(ln); err != nil {
		return fmt.Errorf("watch listener: %w", err)
	}
	ready(fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port))
	have, buf := map[int]int{}, make([]byte, 1<<20)
	for {
		events, err := p.wait()
		if err != nil {
			return err
		}
		for _, e := range events {
			fd := int(e.Fd)
			if fd == ln {
				conn, _, err := syscall.Accept4(ln, syscall.SOCK_NONBLOCK)
				if err != nil {
					return fmt.Errorf("accept: %w", err)
				}
				_ = syscall.SetsockoptInt(conn, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
				if err := p.add(conn); err != nil {
					return fmt.Errorf("watch connection: %w", err)
				}
				continue
			}
			n := rawRead(fd, buf)
			if n <= 0 {
				_ = syscall.Close(fd)
				delete(have, fd)
				continue
			}
			sum := have[fd] + n
			for ; sum >= size; sum -= size {
				rawWrite(fd, reply)
			}
			have[fd] = sum
		}
	}
}

// hammer is a closed loop over raw epoll in one thread. Bodies are taken in
// turn, and each reply is compared with the one that is expected.
type hammer struct {
	requests [][]byte
	replies  [][]byte // bodies; nil: anything under status 200
	next     int
	poll     *poller
	conns    map[int32]*hammered
	done     int
}

type hammered struct {
	fd   int
	sent int // the request that is under way
	rest []byte
	full bool // the socket takes no more for now
	buf  []byte
	have int
}

func (h *hammer) dial(address string, connections int) error {
	var err error
	if h.poll, err = newPoller(); err != nil {
		return err
	}
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return err
	}
	h.conns = map[int32]*hammered{}
	for range connections {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			return fmt.Errorf("open socket: %w", err)
		}
		if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		if err := syscall.SetNonblock(fd, true); err != nil {
			return err
		}
		h.conns[int32(fd)] = &hammered{fd: fd, buf: make([]byte, 256<<10)}
		if err := h.poll.add(fd); err != nil {
			return err
		}
	}
	return nil
}

func (h *hammer) close() {
	for _, c := range h.conns {
		_ = syscall.Close(c.fd)
	}
	_ = syscall.Close(h.poll.fd)
}

// run keeps every connection busy for d, or until so many requests are
// answered, and returns their number.
func (h *hammer) run(d time.Duration, count int) (answered int, took time.Duration, err error) {
	h.done = 0
	start := time.Now()
	for _, c := range h.conns {
		h.send(c)
	}
	busy := len(h.conns)
	for ending := false; busy > 0; {
		events, err := h.poll.wait()
		if err != nil {
			return 0, 0, err
		}
		if !ending {
			ending = time.Since(start) >= d || count > 0 && h.done >= count
		}
		for _, e := range events {
			c := h.conns[e.Fd]
			if e.Events&syscall.EPOLLOUT != 0 {
				h.flush(c)
			}
			if e.Events&^syscall.EPOLLOUT == 0 {
				continue
			}
			ended, err := h.receive(c)
			switch {
			case err != nil:
				return 0, 0, err
			case !ended:
			case ending:
				busy--
			default:
				h.send(c)
			}
		}
	}
	return h.done, time.Since(start), nil
}

func (h *hammer) send(c *hammered) {
	c.sent = h.next
	if h.next++; h.next == len(h.requests) {
		h.next = 0
	}
	c.have, c.rest = 0, h.requests[c.sent]
	h.flush(c)
}

// flush writes what the socket takes; the rest waits, which only large bodies do.
func (h *hammer) flush(c *hammered) {
	for len(c.rest) > 0 {
		n := rawWrite(c.fd, c.rest)
		if n <= 0 {
			if !c.full {
				c.full = true
				h.poll.want(c.fd, true)
			}
			return
		}
		c.rest = c.rest[n:]
	}
	if c.full {
		c.full = false
		h.poll.want(c.fd, false)
	}
}

var (
	endOfHead     = []byte("\r\n\r\n")
	contentLength = []byte("Content-Length: ")
	statusOK      = []byte("HTTP/1.1 200 ")
)

// receive reads the available bytes; true when the reply is whole.
func (h *hammer) receive(c *hammered) (bool, error) {
	n := rawRead(c.fd, c.buf[c.have:])
	if n <= 0 {
		return false, fmt.Errorf("connection ended after %d bytes of a reply", c.have)
	}
	c.have += n
	got := c.buf[:c.have]
	end := bytes.Index(got, endOfHead)
	if end < 0 {
		return false, nil
	}
	at := bytes.Index(got[:end], contentLength)
	if at < 0 || !bytes.HasPrefix(got, statusOK) {
		return false, fmt.Errorf("reply %q", got[:end])
	}
	length := 0
	for _, digit := range got[at+len(contentLength) : end] {
		if digit < '0' || digit > '9' {
			break
		}
		length = 10*length + int(digit-'0')
	}
	body := got[end+len(endOfHead):]
	if len(body) < length {
		return false, nil
	}
	if h.replies != nil && !bytes.Equal(body, h.replies[c.sent]) {
		return false, fmt.Errorf("request %d: answer %.300q, expected %.300q", c.sent, body, h.replies[c.sent])
	}
	h.done++
	return true, nil
}

// rawRead and rawWrite bypass the scheduler of Go: the descriptors never
// block, and notifying it is most of the cost.
func rawRead(fd int, b []byte) int {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return -1
	}
	return int(n)
}

func rawWrite(fd int, b []byte) int {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return -1
	}
	return int(n)
}
