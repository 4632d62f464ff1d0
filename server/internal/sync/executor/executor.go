// Package executor owns one run of a sync: it plans, reads the source, compares
// it with earlier acknowledgements, sends the difference in batches, and writes
// the verdict of every record into the ledger (spec 4.2, 7.2, 8). Its one
// promise: a record counts as sent when the destination's own acknowledgement of
// it is durable, and not before.
//
// It refuses to know workspaces, tokens, schedules, alerts and the REST API, and
// where anything but the ledger is stored: it gets a Job with everything open,
// and hands back an Outcome.
package executor

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// maxParallel is the most batches of one sync at once, whatever a destination
// allows.
const maxParallel = 50

// Options of an Executor. Clock and Ledger are needed; the rest has defaults.
type Options struct {
	Clock  *clock.Clock
	Ledger *ledger.Ledger
	// Limiter gives the limit that all calls on a connection share (spec 8); nil:
	// nothing is shared.
	Limiter func(connection int64) *pace.Limiter
	// Random draws from [0,1) for the jitter of backoffs; nil: math/rand. It is
	// called from many goroutines.
	Random func() float64
	// BatchTimeout bounds one sync_batch (60 s), PlanTimeout one get_sync_speed
	// (30 s); real time. How long requests may take is not published (spec 8).
	BatchTimeout, PlanTimeout time.Duration
	// Grace is how long calls on their way may go on when a run is cancelled
	// (5 s of real time).
	Grace   time.Duration
	Backoff Backoff
	// Scratch is the folder for what does not fit into memory; "" is the
	// system's.
	Scratch string
	// Payloads keeps sent records in the log of the run, for the list of its
	// records.
	Payloads bool
	// Crash is called at every named point at which a killed process must lose nothing:
	// before-send and after-send; the ledger has more. nil: no log.
	Crash func(point string)
	Log   *slog.Logger // nil: nowhere
	// Deviations are rules to break on purpose.
	Deviations Deviations
}

// Executor carries out runs. It is safe for parallel use; runs of the same sync
// must not overlap.
type Executor struct {
	options Options

	runs, wide *semaphore // places of all runs, and of those with wide rows
}

// New makes an executor. It does not own the clock and the ledger.
func New(o Options) *Executor {
	if o.Random == nil {
		o.Random = rand.Float64
	}
	o.BatchTimeout = cmp.Or(o.BatchTimeout, time.Minute)
	o.PlanTimeout = cmp.Or(o.PlanTimeout, 30*time.Second)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.Backoff = o.Backoff.withDefaults()
	if o.Limiter == nil {
		o.Limiter = func(int64) *pace.Limiter { return pace.NewLimiter() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Executor{options: o, runs: newSemaphore(o.Clock, "place of a sync run", MostRuns), wide: newSemaphore(o.Clock, "place of a sync run with wide rows", 1)}
}

// Job is one run with everything that it needs, open. The caller closes its
// parts.
type Job struct {
	Run, Sync int64 // numbers above 0
	Config    api.SyncConfig
	// Merged is the newest run that the caller knows to be in the state, 0 for none;
	// Completed means that some run of the sync has come to its end; Reported is how
	// many records this run had processed when it was interrupted. A ledger that knows
	// less has lost something.
	Merged    int64
	Completed bool
	Reported  int64
	// Log hears of the run, and names it in each line; nil: Options.Log, with Run and
	// Sync.
	Log *slog.Logger
	// Full sends every row again; FullReason is why, for sync_trigger_reason.
	Full       bool
	FullReason string
	// MappingReason is why the mappings have changed, should they have; "": by a user.
	MappingReason string

	Source  source.Reader
	Object  source.Object
	Columns []api.Column

	Destination       destination.Sender
	DestinationObject *api.DestinationObject
	DestinationType   string
	// HiddenIdentifier of the object, see destination.Gate.HiddenIdentifier.
	HiddenIdentifier string
	// Settings are the options of advanced_configuration for sending to the object.
	Settings catalogue.Settings
	// Segments for mappings of type segment_membership; nil: there are none.
	Segments []mapping.Segment
	// Connection is the id of the destination: runs with the same one share the
	// limit of requests per second (spec 8).
	Connection int64

	// Report gets the step and the counters, often and from one goroutine at a
	// time; nil: no report. It must not block.
	Report func(Progress)
}

// The steps of a run, for sync_run.current_step.
const (
	StepPlanning  = "planning"
	StepReading   = "reading"
	StepSending   = "sending"
	StepRetrying  = "retrying"
	StepDeleting  = "deleting"
	StepRecording = "recording"
)

// Progress is how far a run is.
type Progress struct {
	Step string
	Counters
}

// Counters of a run (spec 2.9): SourceRecords are the rows read, the invalid
// ones too; Processed = SourceUpdates + SourceDeletes at the end of a run, and
// always Updated + Failed. Deleted records count in Updated. A record that is
// sent again counts once.
type Counters struct {
	SourceRecords, SourceUpdates, SourceDeletes, SourceInvalids int64
	Processed, Updated, Failed, Invalid                         int64
}

// Outcome is how a run ended. Status is api.RunCompleted, api.RunFailed, or
// api.RunWorking after ErrStop: Run with the same number goes on then.
type Outcome struct {
	Status                string
	Canceled              bool
	Code, Message, Detail string // of a failure (spec 2.9)
	// Transient means that the run failed for a reason that may pass by itself. Cause
	// is the underlying error, for errors.Is; nil where there is none.
	Transient bool
	Cause     error
	Counters
	// FullSync means that every row counted as changed, FullReason is why.
	FullSync   bool
	FullReason string
	// Samples are the first invalid records with their reasons.
	Samples []Sample
	Calls   int64 // sync_batch calls, failed ones too
	// Merged means that the state has taken over the log of the run.
	Merged bool
	// Position is that of the newest message that a run over a topic has seen.
	Position int64
}

// Run carries out one run and returns when nothing of it is on its way any more.
// When ctx is cancelled acknowledged records stay, and the outcome is a failure
// with the code CANCELED (unless the cause is ErrStop). A run that was
// interrupted, by ErrStop or a killed process, is resumed by a Run with the same
// numbers: acknowledged records are not sent again, records on their way are.
func (e *Executor) Run(ctx context.Context, job Job) Outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if job.Log == nil {
		job.Log = e.options.Log.With("run", job.Run, "sync", job.Sync)
	}
	r := e.newRun(job, cancel)
	r.progress.step, r.sending.calls.backoff = StepPlanning, e.options.Backoff
	err := r.sending.room.enter(ctx)
	if err == nil {
		err = r.work(ctx)
		r.sending.room.leave()
	}
	o := r.outcome(ctx, err)
	if o.Status == api.RunWorking {
		job.Log.Info("sync run stopped here, and goes on", "records", o.SourceRecords, "updated", o.Updated, "failed", o.Failed, "calls", o.Calls)
	}
	return o
}
