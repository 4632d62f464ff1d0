package httpfront

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// TLSListener serves TLS on the connections of inner, which Close closes; with
// plainToo also plain http, to clients that begin with it.
func TLSListener(inner net.Listener, cfg *tls.Config, plainToo bool) net.Listener {
	if !plainToo {
		return tls.NewListener(socketListener{inner}, cfg)
	}
	l := &eitherListener{Listener: inner, config: cfg, conns: make(chan net.Conn), done: make(chan struct{})}
	go l.accept()
	return l
}

// sniffing bounds the wait for the first byte of a connection.
const sniffing = 30 * time.Second

// handshakeRecord is the first byte of TLS (RFC 8446 section 5.1); no HTTP
// request begins with it.
const handshakeRecord = 0x16

// eitherListener looks at the first byte of each connection. net/http knows a
// TLS connection by its type, so the decision cannot wait for the first Read.
type eitherListener struct {
	net.Listener
	config *tls.Config
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once
	failed error // of the inner listener; read after done
}

// accept takes connections until the inner listener fails or is closed.
func (l *eitherListener) accept() {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.end(err)
			return
		}
		go l.sniff(conn)
	}
}

// sniff hands a connection on once its first byte is there.
func (l *eitherListener) sniff(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(sniffing))
	stop := make(chan struct{})
	go func() { // a listener that is closed leaves no reader behind
		select {
		case <-l.done:
			_ = conn.SetReadDeadline(time.Unix(1, 0))
		case <-stop:
		}
	}()
	reader := bufio.NewReaderSize(conn, 16)
	first, err := reader.Peek(1)
	close(stop)
	if err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	var out net.Conn = &sniffed{Conn: conn, reader: reader}
	if first[0] == handshakeRecord {
		out = tls.Server(out, l.config)
	}
	select {
	case l.conns <- out:
	case <-l.done:
		_ = conn.Close()
	}
}

func (l *eitherListener) end(err error) {
	l.once.Do(func() { l.failed = err; close(l.done) })
}

// Accept gives a *tls.Conn or a plain connection.
func (l *eitherListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, l.failed
	}
}

// Close closes the inner listener.
func (l *eitherListener) Close() error {
	l.end(net.ErrClosed)
	return l.Listener.Close()
}

// sniffed is a connection whose first bytes have been looked at.
type sniffed struct {
	net.Conn
	reader *bufio.Reader
}

func (s *sniffed) Read(b []byte) (int, error) { return s.reader.Read(b) }

// SetLinger lets a handler reset the connection, as it can on one that nothing
// has looked at.
func (s *sniffed) SetLinger(seconds int) error {
	if conn, ok := s.Conn.(interface{ SetLinger(int) error }); ok {
		return conn.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}
