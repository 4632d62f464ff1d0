package httpfront

import (
	"crypto/tls"
	"io"
	"net"
	"time"

	"github.com/destkit/destkit/internal/callers"
)

// TLSListener serves TLS on the connections of inner, which Close closes; with
// plainToo also plain http, to clients that begin with it.
func TLSListener(inner net.Listener, cfg *tls.Config, plainToo bool) net.Listener {
	inner = callers.Listen(inner, 0)
	if !plainToo {
		return tls.NewListener(socketListener{inner}, cfg)
	}
	l := &eitherListener{newHanded(inner), cfg}
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
	*handedListener
	config *tls.Config
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
	first := make([]byte, 1)
	_, err := io.ReadFull(conn, first)
	close(stop)
	if err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	out := handed(conn, first)
	if first[0] == handshakeRecord {
		out = tls.Server(out, l.config)
	}
	l.give(out)
}
