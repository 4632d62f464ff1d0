package executor

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// batchDeadline is how long a batch may take, in real time, where a fault outlasts
// it; elsewhere nothing is to time out, however busy the machine is. The end of a
// replacement of a sheet reads all of it.
func batchDeadline(sheet bool) time.Duration {
	if sheet {
		return 3 * time.Second
	}
	return 700 * time.Millisecond
}

// faultScene is the life of one sync around a run that meets a fault.
type faultScene struct {
	t      testing.TB
	p      promise
	sheet  bool // an emulated spreadsheet, which takes append and can be replaced
	sim    *destsim.Sim
	job    Job
	clock  *clock.Clock
	ledger *ledger.Ledger
	e      *Executor
	model  *model
	rows   []row
	run    int64
	pairs  []string
}

// newFaultScene makes a destination with parallel batches, a twentieth of the
// records in each.
func newFaultScene(t testing.TB, p promise, sheet bool, records int, deadline time.Duration) *faultScene {
	t.Helper()
	s := &faultScene{t: t, p: p, sheet: sheet, model: newModel(p), pairs: matrixPairs}
	s.clock = clock.New(nil)
	t.Cleanup(s.clock.Close)
	s.clock.Freeze(true)
	var err error
	s.ledger, err = ledger.Open(ledger.Options{})
	require.NoError(t, err)
	s.e = New(Options{Clock: s.clock, Ledger: s.ledger, BatchTimeout: deadline, Random: func() float64 { return 0.5 }})
	s.job = Job{
		Sync: 7, Object: source.Object{Name: "t"}, Connection: 1,
		Columns: []api.Column{{Name: "id", Kind: api.KindInteger}, {Name: "level", Kind: api.KindInteger}, {Name: "at", Kind: api.KindInteger}},
	}
	speed := rpc.Speed{MaximumBatchSize: int64(records / 20), MaximumParallelBatches: 4, MaximumRecordsPerSecond: 1_000_000}
	if sheet {
		s.pairs = []string{"id:id", "level:amount"}
		s.openSheet(speed)
	} else {
		s.openCustom(speed)
	}
	s.model.swapped = sheet && p.strategy == api.MirrorSwap
	return s
}

func (s *faultScene) openCustom(speed rpc.Speed) {
	config := people()
	config.Speed, config.SkipConvention, config.Seed = speed, "success", 1
	config.Objects[0].Fields = append(config.Objects[0].Fields, destsim.FieldConfig{Name: "at", Type: rpc.TypeInteger})
	var err error
	s.sim, err = destsim.New(config)
	require.NoError(s.t, err)
	server := httptest.NewServer(s.sim)
	s.t.Cleanup(func() {
		server.Close()
		require.NoError(s.t, s.sim.Close())
	})
	s.connect(destination.New(destination.Options{}), api.TypeCustomAPI, destination.Credentials{"webhook_url": api.Raw(server.URL), "api_version": api.Raw(1)})
}

func (s *faultScene) openSheet(speed rpc.Speed) {
	gate := destination.New(destination.Options{Emulate: func(_ string, objects []catalogue.EmulatedObject) (*destination.Emulated, error) {
		config := destsim.Config{Speed: speed, SkipConvention: "success", Seed: 1}
		for _, o := range objects {
			config.Objects = append(config.Objects, destsim.Described(o.Object, o.Operations, o.Fields))
		}
		var err error
		s.sim, err = destsim.New(config)
		return &destination.Emulated{Endpoint: s.sim, Records: s.sim.RecordsJSON}, err
	}})
	s.t.Cleanup(func() { require.NoError(s.t, s.sim.Close()) })
	s.connect(gate, "google_sheets", destination.Credentials{"spreadsheet_id": api.Raw("1BxiMVs0XRA5nFMdKvBdBZ"), "service_account_key": api.Raw("{}")})
}

// connect plans: objects are fetched once, as a service that caches them does.
func (s *faultScene) connect(gate *destination.Gate, typ string, credentials destination.Credentials) {
	s.t.Helper()
	s.t.Cleanup(func() { require.NoError(s.t, gate.Close()) })
	connection, err := gate.Open(1, typ, credentials)
	require.NoError(s.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	objects, err := connection.Objects(ctx)
	require.NoError(s.t, err)
	s.job.DestinationObject = objects[0]
	s.job.Destination, err = gate.Sender(1, typ, credentials)
	require.NoError(s.t, err)
	s.job.DestinationType, s.job.HiddenIdentifier = typ, gate.HiddenIdentifier(typ, objects[0].FullName)
	s.job.Config = s.p.config(s.pairs...)
	s.job.Config.DestinationAttributes.Object = objects[0].FullName
}

// begin makes the runs before the fault, so that the next one has about so many
// records to write, and to remove where the operation does that.
func (s *faultScene) begin(records int) {
	s.t.Helper()
	level := func(by int) func(int) int { return func(id int) int { return id%7 + by } }
	before := records
	if s.p.once() {
		before = records / 10
	}
	s.rows = numberedRows(1, before, level(0))
	if s.p.operation == api.OperationUpdate {
		s.plant()
	} else {
		o := s.sync()
		require.Equal(s.t, api.RunCompleted, o.Status, "%+v", o)
		s.model.took(s.model.expect(s.rows, s.pairs), s.pairs)
	}
	defer func() { // as the source gives them, so that each run finds them in order
		slices.SortFunc(s.rows, func(a, b row) int { return strings.Compare(a.key(), b.key()) })
	}()
	if s.p.once() {
		s.rows = append(s.rows, numberedRows(before+1, before+records, level(3))...)
		return
	}
	s.rows = append(numberedRows(1, records*9/10, level(10)), numberedRows(records+1, records*11/10, level(20))...)
	if s.p.operation == api.OperationUpdate {
		s.rows = numberedRows(1, records, level(10))
	}
}

// plant gives the destination records through another sync.
func (s *faultScene) plant() {
	job := s.job
	job.Sync, job.Run, job.Source = 8, 1, &table{rows: s.rows}
	job.Config = promise{operation: api.OperationUpsert}.config(s.pairs...)
	job.Config.DestinationAttributes.Object = s.job.Config.DestinationAttributes.Object
	require.Equal(s.t, int64(len(s.rows)), s.drive(job).Updated)
}

// sync makes the next run.
func (s *faultScene) sync() Outcome {
	s.t.Helper()
	s.run++
	job := s.job
	job.Run, job.Source = s.run, &table{rows: s.rows}
	return s.drive(job)
}

// drive makes a run on a frozen clock, which is moved on whenever nothing
// happens any more: waits cost nothing, and the waits of production are used.
func (s *faultScene) drive(job Job) Outcome {
	s.t.Helper()
	ctx, end := s.clock.Work(context.Background(), "run")
	var over atomic.Bool
	var o Outcome
	go func() {
		defer end()
		defer over.Store(true)
		o = s.e.Run(ctx, job)
	}()
	for step := 0; !over.Load(); step++ {
		require.Less(s.t, step, 10_000, "the run does not end")
		_, err := s.clock.Advance(context.Background(), time.Minute)
		require.NoError(s.t, err)
	}
	return o
}

// content is what the destination holds.
func (s *faultScene) content() contents {
	s.t.Helper()
	return simContent(s.t, s.sim, s.job.DestinationObject.FullName, s.pairs)
}

// verdicts are the last words of the ledger about the records of a run.
func (s *faultScene) verdicts(verdict ledger.Verdict) map[string]string {
	s.t.Helper()
	list, total, err := s.ledger.Sync(7).Records(s.run, ledger.Filter{Verdict: verdict}, 0, 1<<20)
	if errors.Is(err, ledger.ErrNoRun) { // it ended before it had anything to write down
		return nil
	}
	require.NoError(s.t, err)
	require.Len(s.t, list, int(total))
	out := map[string]string{}
	for _, r := range list {
		out[strings.Trim(string(r.Key), `"`)] = r.Message
	}
	require.Len(s.t, out, int(total), "a record counts once")
	return out
}
