package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// draining is a world that drains when the test lets it.
type draining struct {
	began, let chan struct{}
	unready    atomic.Bool
	closing    chan struct{} // nil: at once
}

func (d *draining) Drain(ctx context.Context) error {
	d.unready.Store(true)
	close(d.began)
	select {
	case <-d.let:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *draining) Close() error {
	if d.closing != nil {
		<-d.closing
	}
	return nil
}

func (d *draining) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if d.unready.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, "served")
}

// ended runs an ending: what it serves at, what asks it to end, and how it ends.
func ended(t *testing.T, e *ending, world *draining) (url string, end context.CancelCauseFunc, over chan error) {
	t.Helper()
	world.began, world.let = make(chan struct{}), make(chan struct{})
	port := &command.Port{Addr: "127.0.0.1:0", Handler: world}
	ln, url, err := port.Open()
	require.NoError(t, err)
	ctx, end := context.WithCancelCause(t.Context())
	over = make(chan error, 1)
	go func() { over <- e.serve(ctx, port, ln, world) }()
	return url, end, over
}

// called makes one call, on a connection that is closed afterwards.
func called(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// TestEndOfAProcess: unready at once, answering while runs are handed back, and
// until balancers have noticed; then the port is closed.
func TestEndOfAProcess(t *testing.T) {
	for name, c := range map[string]struct {
		cause  error
		notice bool
		least  time.Duration
	}{
		"a person":         {context.Canceled, true, 0},
		"a supervisor":     {exit.ErrTerminated, true, 100 * time.Millisecond},
		"no one calls it":  {exit.ErrTerminated, false, 0},
		"the whole caller": {nil, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			e := &ending{timeout: time.Minute, notice: c.notice, log: slog.New(slog.NewTextHandler(&said, nil))}
			if c.least > 0 {
				e.timeout = noticeShare * c.least
			}
			world := &draining{}
			url, end, over := ended(t, e, world)
			status, body := called(t, url)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "served", body)
			began := time.Now()
			end(c.cause)
			<-world.began
			status, body = called(t, url)
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Equal(t, "served", body)
			close(world.let)
			require.NoError(t, <-over)
			require.GreaterOrEqual(t, time.Since(began), c.least)
			_, err := http.Get(url)
			require.Error(t, err)
			require.Contains(t, said.String(), "msg=draining")
			require.Contains(t, said.String(), "msg=drained")
		})
	}
}

// TestEndThatTakesTooLong: what does not come to an end keeps no one.
func TestEndThatTakesTooLong(t *testing.T) {
	var said bytes.Buffer
	e := &ending{timeout: time.Millisecond, notice: true, log: slog.New(slog.NewTextHandler(&said, nil))}
	world := &draining{closing: make(chan struct{})}
	_, end, over := ended(t, e, world)
	end(exit.ErrTerminated)
	require.NoError(t, <-over)
	require.Contains(t, said.String(), "runs are not handed back")
	err := e.close(world)
	require.ErrorIs(t, err, errStuck)
	require.ErrorContains(t, err, "end the service within 1ms")
	close(world.closing)
	require.NoError(t, (&ending{timeout: time.Minute}).close(world))
}

// TestEndsAlone: without a shared store there is no one to hand anything to.
func TestEndsAlone(t *testing.T) {
	require.Nil(t, (&Flags{}).ending())
	s := &Flags{}
	s.Config.Store, s.Config.Role, s.processes.drain = "postgres://…", "worker", time.Second
	require.False(t, s.ending().notice)
	require.NotNil(t, s.ending().log)
	s.Config.Role = "api"
	require.True(t, s.ending().notice)
}

func TestLogger(t *testing.T) {
	var said bytes.Buffer
	log, err := logger(&said, "info", "json", "process", "0a1b")
	require.NoError(t, err)
	log.Debug("not this")
	log.Warn("a run ended", "run", 7, "error", errors.New("no"))
	var line struct {
		Time                       time.Time
		Level, Msg, Process, Error string
		Run                        int
	}
	dec := json.NewDecoder(&said)
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&line))
	require.Equal(t, "WARN a run ended 0a1b no", line.Level+" "+line.Msg+" "+line.Process+" "+line.Error)
	require.False(t, dec.More())
	for level, format := range map[string]string{"loud": "text", "info": "xml"} {
		_, err = logger(&said, level, format)
		require.Error(t, err)
	}
	log, err = logger(&said, "off", "text")
	require.NoError(t, err)
	require.Nil(t, log)
}
