package executor

import (
	"context"
	"encoding/binary"
	"math/bits"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// gate is what a send of one run must pass: the pause and the requests of the
// connection, and the records per second of the sync (spec 8).
type gate struct {
	clock   *clock.Clock
	limiter *pace.Limiter

	mu      sync.Mutex
	records pace.Pacer
}

// pass waits until n records may be sent in one request.
func (g *gate) pass(ctx context.Context, n int) error {
	for {
		d := g.try(int64(n))
		if d <= 0 {
			return ctx.Err()
		}
		if err := g.wait(ctx, d); err != nil {
			return err
		}
	}
}

// wait lets d pass. Between two batches the run is at work: it ends by itself as long
// as time runs. Pauses after a 429 may come again and again for an hour.
func (g *gate) wait(ctx context.Context, d time.Duration) error {
	if g.limiter.Rest(g.clock.Now()) > 0 {
		return g.clock.Rest(ctx, d)
	}
	return g.clock.Doze(ctx, d)
}

func (g *gate) try(n int64) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limiter.Take(g.clock.Now(), &g.records, n)
}

// written notes that a send with n records is on its way.
func (g *gate) written(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limiter.Written(g.clock.Now(), &g.records, int64(n))
}

// The constants of the fingerprint are stored with every state: changing one
// sends every record of every sync again.
const (
	printKey0 = 0xa0761d6478bd642f
	printKey1 = 0xe7037ed1a0b428db
	printKey2 = 0x8ebc6af09c88c6e3
	printKey3 = 0x589965cc75374cc3
)

// printOf is the fingerprint of a record's bytes: two lanes that each multiply
// and fold 16 bytes at a time. It only has to distinguish the old and the new
// content of one key, so it is made for speed and not against forgery.
func printOf(record []byte) ledger.Fingerprint {
	a, b := uint64(len(record))^printKey0, uint64(printKey1)
	for len(record) >= 16 {
		x, y := binary.LittleEndian.Uint64(record), binary.LittleEndian.Uint64(record[8:])
		a, b = fold(x^printKey2, y^a), fold(bits.RotateLeft64(y, 29)^printKey3, x^b)
		record = record[16:]
	}
	var tail [16]byte
	copy(tail[:], record)
	x, y := binary.LittleEndian.Uint64(tail[:]), binary.LittleEndian.Uint64(tail[8:])
	a, b = fold(x^printKey1, y^a), fold(y^printKey0, bits.RotateLeft64(x, 31)^b)
	var p ledger.Fingerprint
	binary.LittleEndian.PutUint64(p[:], fold(a^printKey3, b^printKey2))
	binary.LittleEndian.PutUint64(p[8:], a+bits.RotateLeft64(b, 17))
	if p == (ledger.Fingerprint{}) {
		p[0] = 1 // zero means that nothing was acknowledged
	}
	return p
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
