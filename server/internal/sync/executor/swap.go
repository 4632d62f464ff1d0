package executor

import (
	"context"
	"errors"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
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
// knows none: there every row is sent and what is gone is deleted.
func (r *run) beginSwap(ctx context.Context) error {
	swapper, whole := r.swapper()
	if !whole {
		return nil
	}
	s, err := swapper.Swap(ctx, r.plans[r.operation.wire])
	if err != nil {
		return ofCall(err)
	}
	r.swap = &swap{s, r.newSpool()}
	return nil
}

// swapper replaces the object, where the run is of that kind.
func (r *run) swapper() (destination.Swapper, bool) {
	strategy := r.job.Config.MirrorStrategy
	swapper, able := r.job.Destination.(destination.Swapper)
	return swapper, able && r.job.Config.Operation == api.OperationMirror && strategy != nil && *strategy == api.MirrorSwap &&
		!r.e.options.Deviations.SwapsOwn
}

// endSwap drops a replacement that did not come to its end; after a commit it
// changes nothing.
func (r *run) endSwap() error {
	if r.swap == nil {
		return nil
	}
	return errors.Join(r.swap.Abort(), r.swap.accepted.close())
}

// commitSwap puts the new records in the place of the old ones and then writes
// the verdicts down: of what was sent, and of what is gone with the old table.
func (r *run) commitSwap(ctx context.Context) error {
	err := r.calls.persist(ctx, r.calls.backoff.Tries, 0, r.e.options.BatchTimeout, func(ctx context.Context) (int64, error) {
		return 0, r.swap.Commit(ctx)
	})
	var whole *wholeError
	switch {
	case errors.As(err, &whole):
		return ofCall(whole.cause)
	case err != nil:
		return err
	}
	if err := r.bookSpool(r.swap.accepted, r.operation.wire); err != nil {
		return err
	}
	return r.bookSpool(&r.removals, rpc.OperationDelete)
}

// bookSpool writes acknowledgements down in pieces of a batch.
func (r *run) bookSpool(from *spool, wire string) error {
	now := r.e.options.Clock.Now()
	pack := &packer{records: bookRecords, bytes: largestBatch, send: func(b *batch) error {
		return r.book(ledger.Batch{Operation: wire, StartedAt: now, CompletedAt: now, Records: r.entries(b, wire == rpc.OperationDelete)})
	}}
	if err := from.each(pack.add); err != nil {
		return err
	}
	return pack.flush()
}

// bookRecords is how many verdicts without a call of their own are written at
// once.
const bookRecords = 1000

func (r *run) entries(b *batch, deleted bool) []ledger.Record {
	log := make([]ledger.Record, len(b.items))
	for i := range b.items {
		log[i] = r.entry(&b.items[i], deleted)
	}
	return log
}
