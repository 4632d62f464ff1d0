package loadgen

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := NewClient(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// Senders of a client never write the same key, whatever connects them.
func TestSendersOfAClientShareItsKeys(t *testing.T) {
	for name, transport := range map[string]Transport{"own": {}, "standard": {Standard: true}} {
		url := simulator(t, destsim.Config{})
		o := against(url)
		o.Transport = transport
		c := client(t, o)
		require.Equal(t, 5, c.BatchSize())
		var dialled atomic.Int32
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		var all sync.WaitGroup
		var ids sync.Map
		for _, d := range []func(ctx context.Context, network, address string) (net.Conn, error){dial, dial, nil} {
			s := c.Sender(d)
			all.Go(func() {
				for range 20 {
					sent, err := s.Send(t.Context())
					if err != nil || !sent.Good() {
						t.Errorf("%s: %v %+v", name, err, sent)
						return
					}
					_, twice := ids.LoadOrStore(sent.RequestID, true)
					require.False(t, twice, "an id was used twice")
					require.Equal(t, 200, sent.Status)
					require.Equal(t, []string{"contact", rpc.OperationUpsert}, []string{sent.Object, sent.Operation})
					require.Equal(t, []int{5, 5}, []int{sent.Records, sent.Acknowledged})
					require.Positive(t, sent.Took)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 2, dialled.Load(), name)
		require.Equal(t, 300, stored(t, url)["contact"], name)
	}
}

func TestErrorsOfABatchAreThoseOfThatBatch(t *testing.T) {
	url := simulator(t, destsim.Config{})
	s := client(t, against(url)).Sender(nil)
	arm(t, url, `{"kind":"http_status","status":503,"body":"<h1>no</h1>","when":{"method":"sync_batch","from":1,"to":1}}`)
	sent, err := s.Send(t.Context())
	require.NoError(t, err)
	require.False(t, sent.Good())
	require.True(t, sent.Untimed)
	require.Equal(t, 503, sent.Status)
	require.Zero(t, sent.Acknowledged)
	require.Len(t, sent.Errors, 1)
	require.Equal(t, wire.KindStatus, sent.Errors[0].Kind)
	sent, err = s.Send(t.Context())
	require.NoError(t, err)
	require.True(t, sent.Good(), "%+v", sent)
}

func TestAClientIsBounded(t *testing.T) {
	o := against(simulator(t, destsim.Config{}))
	o.MaxRecords = 12
	s := client(t, o).Sender(nil)
	for range 2 {
		_, err := s.Send(t.Context())
		require.NoError(t, err)
	}
	sent, err := s.Send(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, sent.Records, "what is left of 12")
	_, err = s.Send(t.Context())
	var used *UsedUpError
	require.ErrorAs(t, err, &used)
	require.ErrorContains(t, err, "max-records")
}

// The end of a context breaks a call, and so does its time.
func TestACallIsBroken(t *testing.T) {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	entered, release := make(chan struct{}), make(chan struct{})
	var hangs atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			entered <- struct{}{}
			<-release
			return
		}
		sim.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { close(release); server.Close(); require.NoError(t, sim.Close()) })
	o := against(server.URL + "/")
	o.Transport.Timeout = 150 * time.Millisecond
	s := client(t, o).Sender(nil)
	hangs.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	_, err = s.Send(ctx)
	require.ErrorIs(t, err, context.Canceled)
	go func() { <-entered }()
	sent, err := s.Send(t.Context())
	require.NoError(t, err)
	require.Equal(t, wire.KindTimeout, sent.Errors[0].Kind)
	require.False(t, sent.Untimed)
	hangs.Store(false)
	sent, err = s.Send(t.Context())
	require.NoError(t, err)
	require.True(t, sent.Good(), "%+v", sent)
}

// A batch under way when the context ends is waited for: the clean-up then covers all
// that the target has stored.
func TestACallThatIsAnsweredAfterTheEnd(t *testing.T) {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var late atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if late.CompareAndSwap(true, false) {
			cancel()
			time.Sleep(200 * time.Millisecond)
		}
		sim.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	c := client(t, against(server.URL+"/"))
	s := c.Sender(nil)
	late.Store(true)
	sent, err := s.Send(ctx)
	require.NoError(t, err)
	require.True(t, sent.Good(), "%+v", sent)
	_, err = s.Send(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, c.Cleanup(ctx).Left)
	require.Zero(t, stored(t, server.URL+"/")["contact"])
}

// A mix that only deletes writes its records first, and then runs out of them;
// the journal names the rest.
func TestAClientPreparesCleansAndTellsItsKeys(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := against(url)
	o.Work.Operations, o.Work.Prime = []Share{{Name: rpc.OperationDelete}}, 20
	c := client(t, o)
	require.Equal(t, 20, stored(t, url)["contact"])
	s := c.Sender(nil)
	for range 3 {
		sent, err := s.Send(t.Context())
		require.NoError(t, err)
		require.True(t, sent.Good(), "%+v", sent)
	}
	require.Equal(t, 5, stored(t, url)["contact"])
	text, err := json.Marshal(c.Journal())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "journal.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	keys, err := ReadKeys(path)
	require.NoError(t, err)
	require.EqualValues(t, 20, keys[0].Count)
	require.EqualValues(t, 20, c.Cleanup(t.Context()).Deleted)
	require.Zero(t, stored(t, url)["contact"])
}

func TestCheckRefusesWithoutAsking(t *testing.T) {
	good := against("http://127.0.0.1:1/")
	require.NoError(t, good.Check())
	for name, spoil := range map[string]func(*Options){
		"no permission": func(o *Options) { o.Write = false },
		"no URL":        func(o *Options) { o.Target.URL = "ftp://x" },
		"key template":  func(o *Options) { o.KeyTemplate = "x" },
	} {
		o := good
		spoil(&o)
		var usage *wire.UsageError
		require.True(t, errors.As(o.Check(), &usage), name)
	}
}
