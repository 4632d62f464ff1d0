package destination

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// bodySizes of the large requests, in bytes; 100 KB is a common default limit.
var bodySizes = []int{200_000, 1_000_000, 4_000_000}

// largestText is the longest string of the large bodies: 64 KB.
const largestText = 65_000

// sendsLarge shares the records among three batches and fills each up to its
// size with long strings, as far as strings of 64 KB and the declared batch
// size go.
func (sc *scenario) sendsLarge(s set) ([]*batch, error) {
	f, ok := sc.object.writable(rpc.TypeString)
	if !ok {
		return nil, notApplicable("%s has no string field to fill", sc.object)
	}
	most := len(s.records) / len(bodySizes)
	if sc.catalog.speed != nil {
		most = int(min(int64(most), sc.catalog.speed.MaximumBatchSize))
	}
	var out []*batch
	for i, size := range bodySizes {
		if size/most > largestText {
			sc.Note("bodies of %s do not fit into %s", quantity.Count(size, "byte"), quantity.Count(most, "record"))
			break
		}
		filler := values.Quote(strings.Repeat("0123456789", size/most/10))
		part := slices.Clone(s.records[i*most : (i+1)*most])
		for k := range part {
			part[k] = onlyRequired(sc, part[k]).with(f.APIName, filler)
		}
		sent, err := sc.write(s.operation, part, plan{})
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
func (sc *scenario) sendsAtRate(s set) ([]*batch, error) {
	speed := sc.catalog.speed
	if speed == nil {
		return nil, inconclusive("", "no speed is declared")
	}
	start := time.Now()
	slots := make(chan struct{}, parallelCap(*speed))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var first error
	var late atomic.Bool // one missed deadline is enough
	var out []*batch
	sent := 0
	for part := range slices.Chunk(s.records, int(min(sustained, speed.MaximumBatchSize))) {
		// No free lane for so long: the endpoint has fallen behind for good, and
		// what is under way will show it.
		stuck := time.NewTimer(sc.opts.BatchTimeout / 4)
		select {
		case slots <- struct{}{}:
			stuck.Stop()
		case <-stuck.C:
			late.Store(true)
		}
		if time.Since(start) > sc.opts.LoadDuration || late.Load() {
			break
		}
		sent += len(part)
		wg.Go(func() {
			defer func() { <-slots }()
			b, err := sc.batch(sc, s.operation, part, plan{request: request{unrepeated: true}})
			if b != nil && b.reply.Kind == wire.KindTimeout {
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
		sc.batches, sc.replies = append(sc.batches, b), append(sc.replies, b.reply)
	}
	due := float64(sent) / float64(speed.MaximumRecordsPerSecond)
	sc.measured.reached = new(due / max(time.Since(start).Seconds(), 1e-9))
	return out, first
}
