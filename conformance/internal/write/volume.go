package write

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
	"golang.org/x/sync/errgroup"
)

// bodySizes of the large requests, in bytes; 100 KB is a common default limit.
var bodySizes = []int{200_000, 1_000_000, 4_000_000}

// largestText is the longest string of the large bodies: 64 KB.
const largestText = 65_000

// sendsLarge shares the records among three batches and fills each up to its
// size with long strings, as far as strings of 64 KB and the declared batch
// size go.
func (sc *Scenario) sendsLarge(s Set) ([]*Batch, error) {
	f, ok := sc.Object.writable(rpc.TypeString)
	if !ok {
		return nil, line.NotApplicable("%s has no string field to fill", sc.Object)
	}
	most := len(s.Records) / len(bodySizes)
	if sc.Catalog.Speed != nil {
		most = int(min(int64(most), sc.Catalog.Speed.MaximumBatchSize))
	}
	var out []*Batch
	for i, size := range bodySizes {
		if size/most > largestText {
			sc.Note("bodies of %s do not fit into %s", quantity.Count(size, "byte"), quantity.Count(most, "record"))
			break
		}
		filler := values.Quote(strings.Repeat("0123456789", size/most/10))
		part := slices.Clone(s.Records[i*most : (i+1)*most])
		for k := range part {
			part[k] = OnlyRequired(sc, part[k]).With(f.APIName, filler)
		}
		sent, err := sc.Write(s.Operation, part, Plan{})
		out = append(out, sent...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// sustained is the size of the batches that are sent at the declared rate.
const sustained = 50

// sendsAtRate sends batches as fast as the declared records per second allow, as
// many at once as is declared, until the records or the time of the load checks
// are used up (spec 8).
func (sc *Scenario) sendsAtRate(s Set) ([]*Batch, error) {
	speed := sc.Catalog.Speed
	if speed == nil {
		return nil, engine.Inconclusive("", "no speed is declared")
	}
	start := time.Now()
	slots := make(chan struct{}, line.ParallelCap(*speed))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var first error
	var late atomic.Bool // one missed deadline is enough
	var out []*Batch
	sent := 0
	for part := range slices.Chunk(s.Records, int(min(sustained, speed.MaximumBatchSize))) {
		// No free lane for so long: the endpoint has fallen behind for good, and
		// what is under way will show it.
		stuck := time.NewTimer(sc.Opts.BatchTimeout / 4)
		select {
		case slots <- struct{}{}:
			stuck.Stop()
		case <-stuck.C:
			late.Store(true)
		}
		if time.Since(start) > sc.Opts.LoadDuration || late.Load() {
			break
		}
		sent += len(part)
		wg.Go(func() {
			defer func() { <-slots }()
			b, err := sc.batch(sc, s.Operation, part, Plan{request: line.Request{Unrepeated: true}})
			if b != nil && b.Reply.Kind == wire.KindTimeout {
				late.Store(true)
			}
			mu.Lock()
			defer mu.Unlock()
			if b != nil {
				out = append(out, b)
			}
			if err != nil && first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	for _, b := range out {
		sc.Batches, sc.Replies = append(sc.Batches, b), append(sc.Replies, b.Reply)
	}
	due := float64(sent) / float64(speed.MaximumRecordsPerSecond)
	sc.Measured.Reached = new(due / max(time.Since(start).Seconds(), 1e-9))
	return out, first
}

// WitnessVersion is the version of the values that witnesses carry.
const WitnessVersion = 100

// Skipped reports whether a result reports a skip under the declared convention,
// else under the only one that is visible by itself.
func (sc *Scenario) Skipped(b *Batch, r *Record) bool {
	all := b.ResultsOf(r)
	if len(all) == 0 {
		return false
	}
	if sc.Opts.SkipConvention == conformance.SkipSuccessWithMessage {
		return SkipClass(all[0]) == conformance.SkipSuccessWithMessage
	}
	return b.Failed(r)
}

// lane is one record that is created and witnessed at once.
type lane struct{ Created, Witness *Batch }

// maxLanes is the number of records under way at once in sendsInLanes.
const maxLanes = 64

// sendsInLanes creates records one by one in parallel lanes; each lane sends its
// witness operation as soon as the creation is acknowledged (spec 4.2.2).
func (sc *Scenario) sendsInLanes(s Set) ([]*Batch, error) {
	create, records := s.Operation, s.Records
	witness := rpc.OperationUpdate
	if !sc.Object.Accepts(witness) {
		witness = rpc.OperationInsert
	}
	out := make([]lane, len(records))
	errs := make([]error, len(records))
	var lanes errgroup.Group
	lanes.SetLimit(maxLanes)
	for i, r := range records {
		lanes.Go(func() error {
			out[i], errs[i] = sc.RunLane(create, witness, r)
			return nil
		})
	}
	_ = lanes.Wait() // each lane has its error
	var sent []*Batch
	for i, l := range out {
		if errs[i] != nil {
			return sent, errs[i]
		}
		sent = append(sent, l.Created)
		sc.Batches, sc.Replies = append(sc.Batches, l.Created), append(sc.Replies, l.Created.Reply)
	}
	sc.Parallel.Lanes, sc.Parallel.Witness = out, witness
	return sent, nil
}

func (sc *Scenario) RunLane(create, witness string, r *Record) (lane, error) {
	var l lane
	var err error
	if l.Created, err = sc.batch(sc, create, []*Record{r}, Plan{}); err != nil || !l.Created.Succeeded(r) {
		return l, err
	}
	second := sc.Changed(r, WitnessVersion)
	if witness == rpc.OperationUpdate {
		second = second.Updateable()
	}
	l.Witness, err = sc.batch(sc, witness, []*Record{second}, Plan{})
	return l, err
}
