package destinations

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/internal/store"
)

// What a destination offers is cached in the store, where every process reads it.
// What a process keeps open for one (idle connections, the records of an emulated
// one) is its own, and the others are told when it holds no longer.

// Topic is the notice that a destination was changed or deleted.
const Topic = "objects"

// What notices say.
const (
	changed = "changed"
	gone    = "gone"
)

// notice is its text; the process that has sent it knows already.
func (k *Destinations) notice(id int64, what string) string {
	return fmt.Sprintf("%d %s %s", id, what, k.process)
}

// TellChanged tells the other processes of other credentials, when the change is committed.
func (k *Destinations) TellChanged(tx *store.Tx, id int64) error {
	return tx.Notify(Topic, k.notice(id, changed))
}

// TellGone tells the other processes of a deletion, when the change is committed.
func (k *Destinations) TellGone(tx *store.Tx, id int64) error {
	return tx.Notify(Topic, k.notice(id, gone))
}

// Drop removes what a deleted destination keeps outside the store, here and in the
// other processes.
func (k *Destinations) Drop(ctx context.Context, d *store.Destination) error {
	return errors.Join(k.gate.Remove(d.ID, d.Type), k.shared.Store.Tell(ctx, Topic, k.notice(d.ID, gone)))
}

// Hear lets go of what another process has changed.
func (k *Destinations) Hear(text string) {
	var id int64
	var what, process string
	if _, err := fmt.Sscan(text, &id, &what, &process); err != nil || process == k.process {
		return
	}
	if what != gone {
		k.gate.Idle(id)
		return
	}
	// Beside the bus: its records may be in a database that does not answer.
	k.work.Later(fmt.Sprintf("close destination %d", id), func(context.Context) {
		if err := k.gate.Forget(id); err != nil {
			k.log.Warn("a destination that is gone cannot be closed", "destination", id, "error", err)
		}
	})
}
