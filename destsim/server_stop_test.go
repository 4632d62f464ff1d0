package destsim

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/internal/testkit"
)

// TestServerStops: calls under way are answered, connections that wait are
// closed, and nothing is left behind.
func TestServerStops(t *testing.T) {
	before := goleak.IgnoreCurrent()
	entered, leave := make(chan struct{}), make(chan struct{})
	sim, err := New(Config{})
	require.NoError(t, err)
	sim.store = slowStore{sim.store, entered, leave}
	server := &Server{Sim: sim, ErrorLog: quietly(), IdleTimeout: time.Minute, ReadHeaderTimeout: time.Minute}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()

	silent, waiting, busy := dialed(t, ln.Addr().String()), dialed(t, ln.Addr().String()), dialed(t, ln.Addr().String())
	_, err = io.WriteString(waiting, request("/", testCall))
	require.NoError(t, err)
	_, err = http.ReadResponse(bufio.NewReader(waiting), nil)
	require.NoError(t, err)
	_, err = io.WriteString(busy, request("/", requestBody("sync_batch", fourRecords(sim, "upsert"), "a")))
	require.NoError(t, err)
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(context.Background()) }()
	require.ErrorIs(t, <-done, http.ErrServerClosed)
	for _, conn := range []net.Conn{silent, waiting} {
		_, _ = io.Copy(io.Discard, conn) // until the server has closed it
		require.NoError(t, conn.Close())
	}
	_, err = net.Dial("tcp", ln.Addr().String())
	require.Error(t, err)
	select {
	case err := <-stopped:
		t.Fatal("a call was under way", err)
	default:
	}
	close(leave)
	answer, err := io.ReadAll(busy)
	require.NoError(t, err)
	require.Contains(t, string(answer), "Connection: close\r\n")
	require.Contains(t, string(answer), `"success":true`)
	require.NoError(t, busy.Close())
	require.NoError(t, <-stopped)
	require.ErrorIs(t, server.Serve(ln), http.ErrServerClosed)
	require.NoError(t, sim.Close())
	goleak.VerifyNone(t, before)
}

// slowStore lets a test stop every batch at its beginning.
type slowStore struct {
	store.Store
	entered, leave chan struct{}
}

func (s slowStore) Begin() (store.Unit, error) {
	s.entered <- struct{}{}
	<-s.leave
	return s.Store.Begin()
}

// TestServerIsNotHeldUp: who sends a part of a head, or nothing, is cut off; who
// takes his time with a body is not.
func TestServerIsNotHeldUp(t *testing.T) {
	t.Parallel()
	s := newSim(t, Config{})
	address := testkit.Serve(t, &Server{Sim: s, ReadHeaderTimeout: 30 * time.Millisecond, IdleTimeout: 30 * time.Millisecond}, nil)
	for name, text := range map[string]string{
		"nothing":             "",
		"half a head":         request("/", testCall)[:20],
		"a head after a call": request("/", testCall) + request("/", testCall)[:20],
		"idle after a call":   request("/", testCall),
	} {
		conn := dialed(t, address)
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
		got, err := io.ReadAll(conn) // ends by the deadline of the server
		require.NoError(t, err, name)
		require.Equal(t, strings.Count(text, testCall), strings.Count(string(got), `"success":true`), name)
		require.NoError(t, conn.Close())
	}
	require.Equal(t, int64(2), s.Journal(JournalFilter{}).Total)
}

// TestServerSurvivesAPanic: the connection ends, the others go on.
func TestServerSurvivesAPanic(t *testing.T) {
	t.Parallel()
	s := newSim(t, Config{})
	s.store = brokenStore{}
	complaints := make(lines, 1)
	address := testkit.Serve(t, &Server{Sim: s, ErrorLog: log.New(complaints, "", 0)}, nil)
	require.Empty(t, raw(t, address, request("/", requestBody("sync_batch", fourRecords(s, "upsert"), "a"))))
	require.Contains(t, raw(t, address, request("/", testCall)), `"success":true`)
	require.Contains(t, <-complaints, "store on fire")
	require.Zero(t, s.Figures().InFlight)
}

// lines passes on written lines.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

type brokenStore struct{ store.Store }

func (brokenStore) Begin() (store.Unit, error) { panic("store on fire") }
