package executor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// childEnv hands a child process of this test its work: it makes one run and is
// killed on the way.
const childEnv = "DESTKIT_EXECUTOR_CHILD"

type childWork struct {
	URL, Ledger, Source, Operation, Point string
	Run                                   int64
	At                                    int64 // the point's number at which the process dies
}

// do makes the run, in the child.
func (c childWork) do() error {
	var seen atomic.Int64
	crash := func(point string) {
		if point == c.Point && seen.Add(1) == c.At {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	opened, err := ledger.Open(ledger.Options{Dir: c.Ledger, Crash: crash})
	if err != nil {
		return err
	}
	time := clock.New(nil)
	gate := destination.New(destination.Options{})
	credentials := destination.Credentials{"webhook_url": api.Raw(c.URL), "api_version": api.Raw(1)}
	connection, err := gate.Open(1, api.TypeCustomAPI, credentials)
	if err != nil {
		return err
	}
	objects, err := connection.Objects(context.Background())
	if err != nil {
		return err
	}
	sender, err := gate.Sender(1, api.TypeCustomAPI, credentials)
	if err != nil {
		return err
	}
	kind, from := "sqlite", map[string]json.RawMessage{"path": api.Raw(c.Source)}
	log := &topic{}
	if c.ofTopic() {
		kind, from = "topic_log", nil
		_ = json.Unmarshal([]byte(c.Source), &log.messages)
	}
	src, err := source.Open(context.Background(), kind, from, source.Options{Topics: log})
	if err != nil {
		return err
	}
	object := source.Object{Name: "people"}
	columns, err := src.Columns(context.Background(), object)
	if err != nil {
		return err
	}
	e := New(Options{Clock: time, Ledger: opened, Crash: crash, Backoff: Backoff{First: 1}})
	job := Job{
		Run: c.Run, Sync: 7, Config: c.config(),
		Source: src.(source.Reader), Object: object, Columns: columns,
		Destination: sender, DestinationObject: objects[0], DestinationType: api.TypeCustomAPI, Connection: 1,
	}
	o := e.Run(context.Background(), job)
	if o.Status != api.RunCompleted {
		return errors.New(o.Message)
	}
	return nil
}

// ofTopic tells that Source is the list of the messages of a topic.
func (c childWork) ofTopic() bool { return strings.HasPrefix(c.Source, "[") }

// config is that of the parent; "mirror full" deletes with whole rows, and over a
// topic the second word is the family.
func (c childWork) config() api.SyncConfig {
	operation, deletes, _ := strings.Cut(c.Operation, " ")
	out := config(operation, "id:id", "name:name", "level:level")
	if c.ofTopic() {
		return ofTopic(out, deletes)
	}
	if deletes != "" {
		out.AdvancedConfiguration = map[string]json.RawMessage{"delete_records": api.Raw(deletes)}
	}
	return out
}

func TestAStoppedRunGoesOn(t *testing.T) {
	w := newWorld(t, setup{})
	w.fill(1, 500)
	ctx, stop := context.WithCancelCause(t.Context())
	w.change = func(j *Job) {
		j.Report = func(p Progress) {
			if p.Updated >= 100 {
				stop(ErrStop)
			}
		}
	}
	w.run = 1
	o := w.again(ctx)
	require.Equal(t, api.RunWorking, o.Status, "%+v", o)
	require.GreaterOrEqual(t, o.Updated, int64(100))
	require.Less(t, o.Updated, int64(500))
	before := o
	w.change = nil
	o = w.again(t.Context())
	require.Equal(t, api.RunCompleted, o.Status)
	require.Equal(t, int64(500), o.Updated, "each record counts once")
	require.Less(t, o.Calls, int64(50-before.Updated/10+5), "what was acknowledged is not sent again")
	require.Equal(t, w.rows(), w.stored())
}

func TestACancelledRunKeepsWhatWasAcknowledged(t *testing.T) {
	w := newWorld(t, setup{})
	w.fill(1, 500)
	ctx, cancel := context.WithCancel(t.Context())
	w.change = func(j *Job) {
		j.Report = func(p Progress) {
			if p.Updated >= 100 {
				cancel()
			}
		}
	}
	w.run = 1
	o := w.again(ctx)
	require.Equal(t, api.RunFailed, o.Status)
	require.Equal(t, CodeCanceled, o.Code)
	require.True(t, o.Canceled)
	w.change = nil
	o2 := w.sync()
	require.Equal(t, 500-o.Updated, o2.Updated)
	require.Equal(t, w.rows(), w.stored())
}

func TestThrottlingCostsNoAttemptAndWaitsOnTheClock(t *testing.T) {
	w := newWorld(t, setup{options: Options{Backoff: Backoff{Attempts: 1, First: time.Second}}})
	w.fill(1, 10)
	w.clock.Freeze(true)
	w.arm(destsim.Fault{Kind: "throttle", Seconds: 30, When: destsim.Trigger{Method: syncBatch, Times: 8}})
	w.run = 1
	start := w.clock.Now()
	done := make(chan Outcome, 1)
	ctx, end := w.clock.Work(context.Background(), "run")
	job := w.job()
	go func() {
		defer end()
		done <- w.executor.Run(ctx, job)
	}()
	for step := 0; len(done) == 0; step++ {
		require.Less(t, step, 100)
		_, err := w.clock.Advance(t.Context(), 30*time.Second)
		require.NoError(t, err)
	}
	o := <-done
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	require.Equal(t, int64(10), o.Updated)
	require.GreaterOrEqual(t, w.clock.Now().Sub(start), 8*30*time.Second, strconv.FormatInt(o.Calls, 10))
}
