package destsim

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// These tests say what the kill matrix of the judge does not see of a violation.

// TestAHangingCallEndsWithItsCaller: RPC-010 gives no answer at all, and holds
// nothing once the caller has gone.
func TestAHangingCallEndsWithItsCaller(t *testing.T) {
	s := newSim(t, Config{Violate: []string{"RPC-010"}, Delays: Delays{Hang: time.Hour}})
	server := httptest.NewServer(s)
	defer server.Close() // waits for the call
	client := &http.Client{Timeout: 50 * time.Millisecond}
	_, err := client.Post(server.URL, "application/json", strings.NewReader(`{"jsonrpc":"2.0",`))
	require.ErrorContains(t, err, "Client.Timeout exceeded")
}

// TestProcessComesBack: it is gone for Delays.Down and no longer.
func TestProcessComesBack(t *testing.T) {
	var now atomic.Int64
	now.Store(int64(time.Hour))
	_, address := serve(t, Config{
		Clock: func() time.Time { return time.Unix(0, now.Load()) }, Delays: Delays{Down: 700 * time.Millisecond}, Violate: []string{"ERR-006"},
	})
	there := func() bool {
		_, _, err := httpCall(t, "http://"+address, rpc.MethodTestConnection, `{}`)
		return err == nil
	}
	require.True(t, there())
	_, err := http.Post("http://"+address, "application/json", strings.NewReader("zz not json"))
	require.Error(t, err)
	require.False(t, there())
	now.Add(int64(699 * time.Millisecond))
	require.False(t, there())
	now.Add(int64(time.Millisecond))
	require.True(t, there())
}

// sendBatch makes a call on a connection of its own and closes it, after 40
// bytes of the reply when it is cut.
func sendBatch(t *testing.T, address, params string, cut bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	body := requestBody(rpc.MethodSyncBatch, params, "id-1")
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	require.NoError(t, err)
	if cut {
		_, err = io.ReadFull(conn, make([]byte, 40))
		require.NoError(t, err)
		return ""
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(got)
}

// TestTakenBackRecordsStandAsBefore: what was there before the batch is there
// again, and what was not has its identifier alone.
func TestTakenBackRecordsStandAsBefore(t *testing.T) {
	sim, address := serve(t, Config{Violate: []string{"DUR-004"}})
	write(t, sim, "contact", "upsert", person("n19", "before"))
	params := planOf(sim, "contact", "upsert", "email", contacts(0, 20)...)
	sendBatch(t, address, params, true)
	sendBatch(t, address, params, false)
	require.Equal(t, person("n19", "before"), stored(t, sim, "contact", "email", `"n19"`))
	require.Equal(t, `{"email":"n18"}`, stored(t, sim, "contact", "email", `"n18"`))
}

// contacts are n records of contacts numbered from first.
func contacts(first, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"email":"n%d","last_name":"x"}`, first+i)
	}
	return list
}

// person is a contact.
func person(email, name string) string {
	return fmt.Sprintf(`{"email":%q,"last_name":%q}`, email, name)
}

// TestAPlainPortLetsNoOneWait: a client that says nothing keeps no one from
// being served, and holds nothing once the listener is closed.
func TestAPlainPortLetsNoOneWait(t *testing.T) {
	certificates, _ := newTestCertificates(t)
	config, err := certificates.TLSConfig("")
	require.NoError(t, err)
	s := newSim(t, Config{})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := TLSListener(inner, config, true)
	server := &http.Server{Handler: s}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	silent, err := net.Dial("tcp", inner.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	_, body, err := httpCall(t, "http://"+inner.Addr().String(), rpc.MethodTestConnection, `{}`)
	require.NoError(t, err)
	require.Contains(t, body, `"result":{"success":true}`)
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-done, http.ErrServerClosed)
	_, err = silent.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = listener.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
