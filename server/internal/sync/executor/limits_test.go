package executor

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// busiest is the most that the journal of the destination saw in any second.
func busiest(entries []destsim.JournalEntry, weight func(destsim.JournalEntry) int) int {
	most := 0
	for i := range entries {
		sum := 0
		for j := i; j < len(entries) && entries[j].Received.Before(entries[i].Received.Add(time.Second)); j++ {
			sum += weight(entries[j])
		}
		most = max(most, sum)
	}
	return most
}

func TestTheDestinationSeesNoMoreThanItAllows(t *testing.T) {
	for _, c := range []struct {
		name              string
		speed             rpc.Speed
		requests          int64
		records, calls    int // allowed to be seen in a second
		largest, parallel int
	}{
		{"records", rpc.Speed{MaximumBatchSize: 50, MaximumParallelBatches: 8, MaximumRecordsPerSecond: 400}, 0, 450, 1000, 50, 8},
		{"requests", rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 8, MaximumRecordsPerSecond: 100_000}, 40, 100_000, 41, 10, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sim := people()
			sim.Speed, sim.RateLimit = c.speed, c.requests
			w := newWorld(t, setup{sim: sim})
			w.fill(1, 600)
			require.Equal(t, int64(600), w.sync().Updated)
			entries := w.sim.Journal(destsim.JournalFilter{Method: syncBatch}).Entries
			require.LessOrEqual(t, busiest(entries, func(e destsim.JournalEntry) int { return e.Records }), c.records)
			require.LessOrEqual(t, busiest(entries, func(destsim.JournalEntry) int { return 1 }), c.calls)
			for _, e := range entries {
				require.LessOrEqual(t, e.Records, c.largest)
			}
		})
	}
}

// TestFirstBytesKeepTheLimits: by the clock of the one who writes them there is
// no tolerance, though each connection must be made first (spec 8).
func TestFirstBytesKeepTheLimits(t *testing.T) {
	for _, c := range []struct {
		name     string
		speed    rpc.Speed
		requests int64
		most     int // batches in any second
	}{
		{"records", rpc.Speed{MaximumBatchSize: 5, MaximumParallelBatches: 20, MaximumRecordsPerSecond: 300}, 0, 60},
		{"requests", rpc.Speed{MaximumBatchSize: 5, MaximumParallelBatches: 20, MaximumRecordsPerSecond: 100_000}, 60, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sim := people()
			sim.Speed, sim.RateLimit = c.speed, c.requests
			w := newWorld(t, setup{sim: sim})
			w.fill(1, 700)
			var mu sync.Mutex
			var written []time.Time
			begun, connected := 0, make(chan struct{})
			// The first batches get their connection when many others are through. Then
			// the first byte follows.
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
				mu.Lock()
				begun++
				late := begun > 1 && begun <= 11
				mu.Unlock()
				if late {
					<-connected
				}
				mu.Lock()
				defer mu.Unlock()
				if written = append(written, w.clock.Now()); len(written) == 40 {
					close(connected)
				}
			}})
			w.run = 1
			require.Equal(t, int64(700), w.again(ctx).Updated)
			batches := written[1:] // after get_sync_speed
			require.Len(t, batches, 140)
			slices.SortFunc(batches, time.Time.Compare)
			for i := range batches[:len(batches)-c.most] {
				require.GreaterOrEqual(t, batches[i+c.most].Sub(batches[i]), time.Second, "batch %d", i)
			}
		})
	}
}

// crowd counts how many batches are there at once.
type crowd struct {
	instant
	speed      rpc.Speed
	held, open chan struct{}
}

func (c *crowd) Speed(context.Context) (destination.Speed, error) {
	return destination.Speed{Speed: c.speed}, nil
}

func (c *crowd) Send(ctx context.Context, p *destination.Plan, records [][]byte) (destination.Reply, error) {
	c.held <- struct{}{}
	<-c.open
	return c.instant.Send(ctx, p, records)
}

func TestNoMoreThanFiftyBatchesAtOnce(t *testing.T) {
	w := newWorld(t, setup{})
	c := &crowd{speed: rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 500, MaximumRecordsPerSecond: 1_000_000}, held: make(chan struct{}, 1000), open: make(chan struct{})}
	w.sender = c
	w.fill(1, 120)
	w.run = 1
	job, done := w.job(), make(chan Outcome, 1)
	go func() { done <- w.executor.Run(context.Background(), job) }()
	for range maxParallel {
		<-c.held
	}
	require.Empty(t, c.held)
	c.open <- struct{}{}
	<-c.held
	require.Empty(t, c.held, "one more when one has ended")
	close(c.open)
	require.Equal(t, int64(120), (<-done).Updated)
}

func TestSpeedsThatCannotBeUsed(t *testing.T) {
	for _, speed := range []rpc.Speed{
		{MaximumBatchSize: 0, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1},
		{MaximumBatchSize: 1, MaximumParallelBatches: -1, MaximumRecordsPerSecond: 1},
		{MaximumBatchSize: 1, MaximumParallelBatches: 1},
	} {
		w := newWorld(t, setup{})
		w.fill(1, 1)
		w.sender = &crowd{speed: speed}
		o := w.sync()
		require.Equal(t, api.RunFailed, o.Status)
		require.Equal(t, CodeSpeed, o.Code)
	}
}

func TestADestinationThatIsNotThere(t *testing.T) {
	w := newWorld(t, setup{})
	w.fill(1, 10)
	gone := httptest.NewServer(nil)
	address := gone.URL
	gone.Close()
	sender, err := w.gate.Sender(9, api.TypeCustomAPI, destination.Credentials{"webhook_url": api.Raw(address), "api_version": api.Raw(1)})
	require.NoError(t, err)
	good := w.sender
	w.sender = sender
	o := w.sync()
	require.Equal(t, api.RunFailed, o.Status)
	require.Equal(t, CodeUnreachable, o.Code)
	require.True(t, o.Transient)
	w.sender = good
	require.Equal(t, int64(10), w.sync().Updated)
}

func TestASourceThatChangesUnderTheRun(t *testing.T) {
	w := newWorld(t, setup{})
	w.fill(1, 10)
	require.Equal(t, int64(10), w.sync().Updated)
	w.change = func(j *Job) { j.Columns = j.Columns[:2] }
	o := w.sync()
	require.Equal(t, CodeConfiguration, o.Code)
	require.Contains(t, o.Detail, "level")

	w.change = nil
	w.run++
	job := w.job()
	w.sql("ALTER TABLE people DROP COLUMN level")
	o = w.executor.Run(t.Context(), job)
	require.Equal(t, CodeSource, o.Code, "%+v", o)
	require.Contains(t, o.Message, "level")
	require.Len(t, w.stored(), 10)
}

// failing breaks off after some rows.
type failing struct {
	source.Reader
	after int
}

func (f failing) Rows(ctx context.Context, o source.Object, columns, order []string) (source.Rows, error) {
	rows, err := f.Reader.Rows(ctx, o, columns, order)
	return &failingRows{rows, f.after}, err
}

type failingRows struct {
	source.Rows
	left int
}

func (f *failingRows) Next() ([][]byte, error) {
	if f.left--; f.left < 0 {
		return nil, errors.New("the connection was lost")
	}
	return f.Rows.Next()
}

func TestASourceThatFailsInTheMiddleDeletesNothing(t *testing.T) {
	w := newWorld(t, setup{})
	w.config.Operation = api.OperationMirror
	w.fill(1, 100)
	require.Equal(t, int64(100), w.sync().Updated)
	w.sql("UPDATE people SET level = 77")
	w.sql("DELETE FROM people WHERE id < 5")
	w.change = func(j *Job) { j.Source = failing{j.Source, 50} }
	o := w.sync()
	require.Equal(t, CodeSource, o.Code)
	require.Contains(t, o.Message, "the connection was lost")
	require.Len(t, w.stored(), 100)
	require.Positive(t, o.Updated, "what was acknowledged stays")
	sent := o.Updated
	w.change = nil
	o = w.sync()
	require.Equal(t, 96-sent, o.SourceUpdates)
	require.Equal(t, w.rows(), w.stored())
}

func TestAnotherIdentifierDropsTheState(t *testing.T) {
	w := newWorld(t, setup{})
	w.config.Operation = api.OperationMirror
	w.fill(1, 10)
	require.Equal(t, int64(10), w.sync().Updated)
	w.config = config(api.OperationMirror, "name:code", "level:level")
	o := w.sync()
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	require.True(t, o.FullSync)
	require.Equal(t, [8]int64{10, 10, 0, 0, 10, 10, 0, 0}, counts(o), "no delete of old keys under a new name")
	require.Zero(t, w.sync().Processed)
}
