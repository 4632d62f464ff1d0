package destination

import "context"

// Swapper is a Sender whose objects can be replaced as a whole, for
// mirror_strategy upload_and_swap (spec 2.6): local_files and emulated types.
type Swapper interface {
	// Swap begins a replacement of the plan's object, from nothing:
	// leftovers of an earlier one are dropped.
	Swap(ctx context.Context, plan *Plan) (Swap, error)
}

// Swap is one replacement. Until Commit has returned none of its records
// counts: after a crash all of them are sent again to a new Swap.
type Swap interface {
	// Send adds records, as Sender does.
	Send(ctx context.Context, plan *Plan, records [][]byte) (Reply, error)
	// Commit puts the new records in the place of the old ones, durably.
	Commit(ctx context.Context) error
	// Abort drops the new records; after Commit it does nothing.
	Abort() error
}
