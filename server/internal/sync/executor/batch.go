package executor

import (
	"sync"

	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

const (
	// batchMemory bounds the bytes of all batches on their way, whatever sizes
	// a destination requests; a batch holds one record at least.
	batchMemory = 32 << 20
	// largestBatch bounds the bytes of one batch.
	largestBatch = 4 << 20
)

// item is one record on its way.
type item struct {
	key     []byte // canonical JSON text of the identifier
	record  []byte // what is sent
	print   ledger.Fingerprint
	message string // why it was refused last
	stamp   stamp
	place   ledger.Place // of the promise to send it
}

// batch collects items; all their bytes are its own.
type batch struct {
	items []item
	arena []byte
}

// add copies an item into the batch. Items that were added before stay valid
// when the arena grows: they keep the old one.
func (b *batch) add(it item) {
	start := len(b.arena)
	b.arena = append(b.arena, it.record...)
	middle := len(b.arena)
	b.arena = append(b.arena, it.key...)
	end := len(b.arena)
	b.items = append(b.items, item{
		key: b.arena[middle:end:end], record: b.arena[start:middle:middle], print: it.print, message: it.message, stamp: it.stamp,
	})
}

func (b *batch) reset() { b.items, b.arena = b.items[:0], b.arena[:0] }

// batches hands out empty batches.
var batches = sync.Pool{New: func() any { return new(batch) }}

// packer cuts a stream of items into batches for the semaphore.
type packer struct {
	records, bytes int // at most so many in one batch
	send           func(*batch) error
	open           *batch
	wide           func(bytes int) // waits before a wide record is copied; nil: nothing
}

// add puts an item into the open batch, which is sent when it is full.
func (p *packer) add(it item) error {
	if p.open != nil && len(p.open.arena)+len(it.record)+len(it.key) > p.bytes {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if size := len(it.record) + len(it.key); p.wide != nil && size > rowsort.WideRow {
		p.wide(size)
	}
	if p.open == nil {
		p.open = batches.Get().(*batch)
	}
	p.open.add(it)
	if len(p.open.items) < p.records {
		return nil
	}
	return p.flush()
}

// flush sends the pending records.
func (p *packer) flush() error {
	if p.open == nil {
		return nil
	}
	b := p.open
	p.open = nil
	return p.send(b)
}
