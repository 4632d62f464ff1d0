package httpfront

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
)

// echo is an endpoint that answers with the id of the call.
type echo struct{}

func (echo) Usual() bool       { return true }
func (echo) Apart(string) bool { return false }
func (echo) NewCall() Call     { return echo{} }
func (echo) Finish()           {}

func (echo) Run(_ *http.Request, body []byte) Reply {
	var q struct{ ID json.RawMessage }
	if err := json.Unmarshal(body, &q); err != nil {
		return Reply{Status: http.StatusBadRequest, Body: []byte(err.Error())}
	}
	return Reply{Status: http.StatusOK, Body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, q.ID)}
}

// overTLS serves over TLS, and gives a pool that trusts the certificate.
func overTLS(t testing.TB, server *Server) (address string, trust *x509.CertPool) {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS() // for its certificate of 127.0.0.1 alone
	defer certified.Close()
	trust = x509.NewCertPool()
	trust.AddCert(certified.Certificate())
	config := &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	return testkit.Serve(t, server, func(ln net.Listener) net.Listener { return TLSListener(ln, config, false) }), trust
}

func quietly() *log.Logger { return log.New(io.Discard, "", 0) }

func dialed(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	return conn
}

// request is one request in the usual form.
func request(target, body string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", target, len(body))
	return b.String() + body
}
