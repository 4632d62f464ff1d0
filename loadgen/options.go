package loadgen

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Options of a run. Target, Write and Work.Objects must be there; the rest has
// defaults. At most one of Closed, AsDeclared, Stages with Burst, and Search
// sets how it is sent; none means AsDeclared.
type Options struct {
	Target    Target
	Transport Transport
	// Write allows records to be written into the objects of Work; a load without
	// it is refused.
	Write bool
	Work  Work
	// Service loads the REST API of a service instead of a destination: Work and what
	// follows from it do not count. nil: batches are sent.
	Service *Service

	// Closed sends on every connection as soon as the reply before has come.
	Closed bool
	// AsDeclared sends exactly what get_sync_speed and X-RateLimit-Limit allow.
	AsDeclared bool
	// Stages and Burst are an open loop: sent by the clock, whatever the replies.
	Stages []Stage
	Burst  Burst
	// InRecords means that the rates of Stages are records per second.
	InRecords bool
	// Search looks for the highest rate that holds its goal.
	Search *Search

	// AskSpeed is how often get_sync_speed is called again while it is sent as declared,
	// so that a change is followed; 30 s when 0, below 0: never.
	AskSpeed time.Duration

	// Connections at once; 0: maximum_parallel_batches, at most 50, for a closed
	// loop and as declared, 64 for an open loop.
	Connections int
	// Duration of the measurement; 10 s when 0 and there is no Count.
	Duration time.Duration
	// Count of requests; 0: no bound.
	Count int64
	// WarmUp is sent before, in the same way, and is not measured.
	WarmUp time.Duration
	// MaxRecords bounds the records of the whole run; 0: no bound.
	MaxRecords int64
	// AbortShare ends the run where this share of the records of the last five
	// seconds was not acknowledged, 0 to 1; 0: never.
	AbortShare float64
	// CatchUp is by how much late requests may be sent faster than requested; 2
	// when 0, +Inf: in bursts.
	CatchUp float64
	// StartAt is when the load begins, for several generators; zero: at once.
	StartAt time.Time

	// KeyTemplate, KeyFrom and KeyTo choose the identifiers; see Keys.
	KeyTemplate    string
	KeyFrom, KeyTo int64
	// RunID is in every string identifier; "" is made of the seed. Seed of all
	// that is chosen at random; 0: chosen, and reported.
	RunID string
	Seed  uint64
	// Journal is a file that lists, before anything is sent, the keys that
	// may be written; "": none.
	Journal string
	// Cleanup deletes the written records at the end, through delete batches.
	Cleanup bool

	// Verify reads back acknowledged records, after the load; nil: nothing.
	Verify *Verify

	// Control pauses, paces and stops the run from outside; nil: nothing does.
	Control *Control
	// Limits are held against the figures so far, at most once a second, for
	// Moment.Limits. They change nothing in the run.
	Limits []Threshold

	// Progress gets the figures of every interval, and once a second where intervals
	// are longer, from one goroutine at a time.
	Progress func(Moment)
	// Note gets messages during the run.
	Note func(string)
	// Version of the program, for the result.
	Version string
}

const (
	defaultDuration    = 10 * time.Second
	openConnections    = 64
	mostConnections    = 20_000
	mostRate           = 1e7
	mostBatch          = 1_000_000
	defaultPrime       = 10_000
	longestRun         = 30 * 24 * time.Hour
	abortWindow        = 5 * time.Second
	abortAtLeast       = 20 // records
	rememberedForMixes = 1024
)

// withDefaults checks what can be checked before the target is called.
func (o Options) withDefaults() (Options, error) {
	if o.Service != nil {
		return o.serviceDefaults()
	}
	ways := 0
	for _, set := range []bool{o.Closed, o.AsDeclared, len(o.Stages) > 0 || o.Burst.Size > 0, o.Search != nil} {
		if set {
			ways++
		}
	}
	switch {
	case ways > 1:
		return o, wire.Usagef("a closed loop, rates, as declared and a search exclude each other")
	case ways == 0:
		o.AsDeclared = true
	}
	switch {
	case !o.Write && len(o.Work.Objects) == 0:
		return o, wire.Usagef("a load writes records into the destination: say so with --write, and name the object with --object NAME")
	case !o.Write:
		return o, wire.Usagef("a load writes records into %s of the destination: say so with --write", strings.Join(names(o.Work.Objects), " and "))
	case len(o.Work.Objects) == 0:
		return o, wire.Usagef("name the object that records may be written into: --object NAME")
	case o.Work.BatchSize < 0 || o.Work.BatchSize > mostBatch:
		return o, wire.Usagef("batch size %d is not from 1 to %d", o.Work.BatchSize, mostBatch)
	case o.Work.Repeats < 0 || o.Work.Repeats > 1:
		return o, wire.Usagef("the share of repeated keys must be from 0 to 1, not %v", o.Work.Repeats)
	case o.Work.Data != nil && len(o.Work.Template) > 0:
		return o, wire.Usagef("a data file and a template exclude each other")
	case o.MaxRecords < 0 || o.Work.Prime < 0:
		return o, wire.Usagef("a count cannot be negative")
	case o.Cleanup && o.Work.Data != nil && o.Work.Data.OwnKeys:
		return o, wire.Usagef("the identifiers of the file do not carry the run: they cannot be cleaned up")
	}
	if o.Verify != nil {
		if err := o.Verify.check(); err != nil {
			return o, err
		}
	}
	o, err := o.commonDefaults()
	if err != nil {
		return o, err
	}
	o.AskSpeed = cmp.Or(o.AskSpeed, askSpeedEvery)
	o.Work.Prime = cmp.Or(o.Work.Prime, defaultPrime)
	if o.Search != nil {
		search, err := o.Search.withDefaults()
		o.Search = &search
		return o, err
	}
	return o, nil
}

// commonDefaults checks what every load has.
func (o Options) commonDefaults() (Options, error) {
	switch {
	case o.Connections < 0 || o.Connections > mostConnections:
		return o, wire.Usagef("%s: at least 1 and at most %d", quantity.Count(o.Connections, "connection"), mostConnections)
	case o.Duration < 0 || o.Duration > longestRun || o.WarmUp < 0 || o.WarmUp > longestRun:
		return o, wire.Usagef("a duration must be longer than nothing and at most 30 days")
	case o.Count < 0:
		return o, wire.Usagef("a count cannot be negative")
	case o.AbortShare < 0 || o.AbortShare > 1:
		return o, wire.Usagef("the share of errors to abort at must be from 0 to 1, not %v", o.AbortShare)
	case o.CatchUp != 0 && o.CatchUp < 1 || math.IsNaN(o.CatchUp):
		return o, wire.Usagef("catching up must be 1 or more times the rate, not %v", o.CatchUp)
	}
	if err := checkStages(o.Stages, o.Burst); err != nil {
		return o, err
	}
	if err := wire.CheckProxy(o.Transport.Proxy); err != nil {
		return o, err
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64() >> 11 // survives a reader that keeps numbers as doubles
	}
	if o.RunID == "" {
		o.RunID = fmt.Sprintf("%06x", rand.New(rand.NewPCG(o.Seed, 1)).Uint64()&0xffffff)
	}
	if o.Duration == 0 && o.Count == 0 && o.Search == nil {
		if o.Duration = length(o.Stages); len(o.Stages) < 2 {
			o.Duration = defaultDuration
		}
	}
	return o, nil
}

// checkStages refuses rates that cannot be meant.
func checkStages(stages []Stage, burst Burst) error {
	whole := time.Duration(0)
	for _, s := range stages {
		if s.From < 0 || s.To < 0 || s.From > mostRate || s.To > mostRate || math.IsNaN(s.From+s.To) {
			return wire.Usagef("a rate must be from 0 to %.0f per second", mostRate)
		}
		if s.Duration <= 0 || s.Duration > longestRun {
			return wire.Usagef("a stage must be longer than nothing")
		}
		if whole += s.Duration; whole > longestRun {
			return wire.Usagef("the stages must be at most 30 days together")
		}
	}
	if len(stages) > 0 && !slices.ContainsFunc(stages, func(s Stage) bool { return s.From > 0 || s.To > 0 }) {
		return wire.Usagef("every rate is 0: nothing would be sent")
	}
	if burst.Size < 0 || burst.Size > mostBatch || burst.Every < 0 || (burst.Size > 0) != (burst.Every > 0) {
		return wire.Usagef("a burst is a number of requests and a time, such as 500 every 10s")
	}
	if burst.Size > 0 && float64(burst.Size)/burst.Every.Seconds() > mostRate {
		return wire.Usagef("bursts of %s every %s are more than %.0f per second", quantity.Count(burst.Size, "request"), burst.Every, mostRate)
	}
	return nil
}

// declaredRate is how many requests per second the target's own words allow:
// records by get_sync_speed, requests by the limit of the connection (spec 8).
func declaredRate(d targetWords, limit int64, batch int) float64 {
	return min(float64(d.Speed.MaximumRecordsPerSecond)/float64(batch), float64(limit))
}
