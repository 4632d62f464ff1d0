// Package jobs hands sync runs to the processes that work, as jobs of River
// (riverqueue/river) in the PostgreSQL of the installation: it is the only door to
// River, and knows nothing of what a run is. A run is enqueued in the transaction
// that makes it, and any process with a free worker takes it up.
//
// The job of a run is the job of one turn: one attempt to work on it, which ends
// when the run does or when its process is lost. A lost process may be a slow one
// that comes back and has its say about its job, so a run that it has left does not
// go on in the same job: whoever finds it adds the next turn (Lost).
//
// A job grants nothing: two processes may well work on a run for a moment, and
// River's own rescue cannot know better. Who may write is decided by a lease.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

// ErrStop is the cause with which the context of a working run ends when the queue
// stops: the run goes on elsewhere.
var ErrStop = errors.New("the worker stops; the run goes on elsewhere")

// Run is one turn of a sync run.
type Run struct {
	ID, WorkspaceID, SyncID int64
	Turn                    int64 // counts the attempts to work on it
}

// Options of a queue. The zero values of Workers, Schema and Log will do.
type Options struct {
	Pool    *pgxpool.Pool // its search_path is Schema
	Schema  string        // "": the first of the search_path; at most 46 characters
	Process string        // the id of this process, under which it is in the table processes; at most 100 characters
	Workers int           // runs at once, to 10,000; 0: none work here

	// Work does a turn, or nothing where the turn is over. With again another
	// worker, or this one, goes on at once with the same turn, which keeps its
	// place before those that wait. With an error, which is logged, the turn is
	// done again after 1, 16 and then 60 seconds (less or more by a tenth), for as
	// long as that takes. The context ends by ErrStop alone: when the queue stops,
	// and after a week, when an error means again, too.
	Work func(ctx context.Context, run Run) (again bool, err error)
	Log  *slog.Logger // nil: nowhere
}

// Queue is the part that this process has in the queue of all.
type Queue struct {
	o      Options
	log    *slog.Logger
	clock  *databaseClock
	client *river.Client[pgx.Tx]
	wake   string // the channel on which River's workers listen

	working context.Context // ends when the queue stops
	stop    context.CancelCauseFunc
	started atomic.Bool
	rests   atomic.Bool   // the queue is paused
	aside   chan struct{} // closed when what goes on beside River has ended
	orphans *orphans
}

const (
	// A job that lasts longer is handed back and goes on. River takes jobs that are
	// an hour older for left behind by a dead process, and needs a bound for it; by
	// then the run has long gone on in another turn (Lost), and the job is only
	// cleared away.
	longest = 7 * 24 * time.Hour
	// The names of River's channels begin with the schema, and have 63 characters.
	longestSchema = 46
	// How long an ended job is kept.
	kept = 24 * time.Hour
	// Jobs are looked for when a notice comes, at most so often, and without any
	// notice in case it was lost.
	fetchCooldown, fetchInterval = 20 * time.Millisecond, time.Second
	// How often a queue looks at its clock and after its jobs, and how long a look
	// may take.
	lookInterval, lookTime = 5 * time.Second, 10 * time.Second
)

// Open makes the queue of this process, and brings the tables of River in the
// schema up to date; those of a newer program are ErrNewer. Nothing is worked on
// before Start.
func Open(ctx context.Context, o Options) (*Queue, error) { return open(ctx, o, time.Now) }

func open(ctx context.Context, o Options, own func() time.Time) (*Queue, error) {
	switch {
	case o.Pool == nil || o.Process == "":
		return nil, errors.New("open queue: a pool and the id of the process are needed")
	case o.Workers > 0 && o.Work == nil:
		return nil, errors.New("open queue: workers have nothing to do without Work")
	}
	if o.Schema == "" {
		if err := o.Pool.QueryRow(ctx, "SELECT current_schema()").Scan(&o.Schema); err != nil {
			return nil, fmt.Errorf("open queue: read schema: %w", err)
		}
	}
	if len(o.Schema) > longestSchema {
		return nil, fmt.Errorf("open queue: the name of the schema %s has more than %d characters", o.Schema, longestSchema)
	}
	q := &Queue{o: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), clock: &databaseClock{own: own}, wake: o.Schema + ".river_insert",
		aside: make(chan struct{}), orphans: &orphans{mine: map[int64]time.Time{}}}
	q.working, q.stop = context.WithCancelCause(context.Background())
	config := q.config()
	var err error
	if q.client, err = river.NewClient(riverpgxv5.New(o.Pool), config); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	if err := migrate(ctx, o, config.Logger); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	if err := q.clock.set(ctx, o.Pool); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}

func (q *Queue) config() *river.Config {
	config := &river.Config{
		ID: q.o.Process, Schema: q.o.Schema,
		Logger: slog.New(newQuiet(q.log.Handler())).With("by", "river"),
		// River says when a job is due by the clock of this process, else.
		Test: river.TestConfig{Time: q.clock},
	}
	if q.o.Workers == 0 {
		return config
	}
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: q.o.Workers}}
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, river.WorkFunc(q.work))
	config.FetchCooldown, config.FetchPollInterval = fetchCooldown, fetchInterval
	config.JobTimeout, config.RescueStuckJobsAfter = longest, longest+time.Hour
	config.CompletedJobRetentionPeriod, config.CancelledJobRetentionPeriod, config.DiscardedJobRetentionPeriod = kept, kept, kept
	config.RetryPolicy, config.ErrorHandler = errorHandler{q}, errorHandler{q}
	return config
}

// turn is what River keeps of a run: its JSON stays in the database.
type turn struct {
	Workspace int64 `json:"workspace"`
	Sync      int64 `json:"sync" river:"unique"`
	Run       int64 `json:"run" river:"unique"`
	Turn      int64 `json:"turn" river:"unique"`
}

// Kind is River's name for it.
func (turn) Kind() string { return "sync_run" }

func (t turn) run() Run {
	return Run{ID: t.Run, WorkspaceID: t.Workspace, SyncID: t.Sync, Turn: t.Turn}
}

// once keeps a turn from being there twice. A job that has ended is in no one's way:
// a world that was restored may count its runs anew.
var once = &river.InsertOpts{
	MaxAttempts: math.MaxInt16,
	UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}},
}

// Add enqueues the turn of a run when tx is committed; a turn (SyncID, ID, Turn) that
// is there already is not added again. A worker that is free has it some ten
// milliseconds later. tx is a transaction in the database of the installation.
func (q *Queue) Add(ctx context.Context, tx pgx.Tx, run Run) error {
	_, err := q.client.InsertTx(ctx, tx, turn{Workspace: run.WorkspaceID, Sync: run.SyncID, Run: run.ID, Turn: run.Turn}, once)
	if err == nil {
		// River gives notice of the first of several jobs in a row, also when its
		// transaction is rolled back; equal notices of a transaction are one.
		_, err = tx.Exec(ctx, "SELECT pg_notify($1, $2)", q.wake, notice)
	}
	if err != nil {
		return fmt.Errorf("enqueue run %d of sync %d: %w", run.ID, run.SyncID, err)
	}
	return nil
}

// notice is River's own.
const notice = `{"queue": "` + river.QueueDefault + `"}`
