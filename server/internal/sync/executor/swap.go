package executor

import (
	"context"
	"errors"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// swap is a replacement of the whole object, for mirror_strategy upload_and_swap
// where the destination can do that. Its records count when the new table has
// taken the place of the old one, so their verdicts wait until then.
type swap struct {
	destination.Swap
	accepted *spool
}

// beginSwap starts one where the run is of that kind. A custom destination
// knows none: there every row is sent and missing ones are deleted.
func (s *sending) beginSwap(ctx context.Context) error {
	s.sends = s.job.Destination
	swapper, whole := s.swapper()
	if !whole {
		return nil
	}
	own, err := swapper.Swap(ctx, s.plans[s.operation.wire])
	if err != nil {
		return ofCall(err)
	}
	s.swap = &swap{own, s.newSpool()}
	s.sends = s.swap
	return nil
}

// endSwap drops a replacement that did not come to its end; after a commit it
// changes nothing.
func (s *sending) endSwap() error {
	if s.swap == nil {
		return nil
	}
	return errors.Join(s.swap.Abort(), s.swap.accepted.close())
}

// commitSwap puts the new records in the place of the old ones and then logs the verdicts: of
// sent records, and of those that are gone with the old table.
func (s *sending) commitSwap(ctx context.Context, gone *spool) error {
	err := s.calls.persist(ctx, s.calls.backoff.Attempts, 0, s.options.BatchTimeout, func(ctx context.Context) (int64, error) {
		return 0, s.swap.Commit(ctx)
	})
	var whole *wholeError
	switch {
	case errors.As(err, &whole):
		return ofCall(whole.cause)
	case err != nil:
		return err
	}
	if err := s.booking.bookSpool(s.swap.accepted, s.operation.wire); err != nil {
		return err
	}
	return s.booking.bookSpool(gone, rpc.OperationDelete)
}

// bookSpool writes acknowledgements down in pieces of a batch.
func (bk *booking) bookSpool(from *spool, wire string) error {
	now := bk.options.Clock.Now()
	pack := &packer{records: bookRecords, bytes: largestBatch, send: func(b *batch) error {
		return bk.book(ledger.Batch{Operation: wire, StartedAt: now, CompletedAt: now, Records: bk.entries(b, wire == rpc.OperationDelete)})
	}}
	if err := from.each(pack.add); err != nil {
		return err
	}
	return pack.flush()
}

// bookRecords is how many verdicts without a separate call are written at
// once.
const bookRecords = 1000

func (t *terms) entries(b *batch, deleted bool) []ledger.Record {
	log := make([]ledger.Record, len(b.items))
	for i := range b.items {
		log[i] = t.entry(&b.items[i], deleted)
	}
	return log
}
