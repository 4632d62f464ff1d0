package destination

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// TestIdleConnectionsEnd: a destination that is not called is left alone.
func TestIdleConnectionsEnd(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"x","result":{}}`)
	}))
	closed := make(chan struct{}, 10)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	g := newGate(t, Options{})
	require.Equal(t, idleTime, g.idle)
	g.idle = 10 * time.Millisecond
	_, _ = call(t.Context(), openURL(t, g, s.URL), rpc.MethodListObjects, nil) // the answer is to another id
	<-closed
}
