package testkit

import (
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Serve runs a server until the test ends and gives its address. wrap may replace the listener; nil: it stays.
func Serve(t testing.TB, server interface {
	Serve(ln net.Listener) error
	Close() error
}, wrap func(net.Listener) net.Listener,
) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := ln.Addr().String()
	if wrap != nil {
		ln = wrap(ln)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return address
}
