// Package cluster owns what the parts of a service ask of the processes that share an
// installation: which of them does what falls due, and how it is told of something.
package cluster

import (
	"context"
	"strconv"

	"github.com/destkit/destkit/server/internal/store"
)

// The topics by which processes tell each other of something, with the text that goes
// with each.
const (
	TopicSync   = "sync"   // a sync was created, changed or deleted: its id
	TopicRetry  = "retry"  // a run is to be made again: the id of its sync
	TopicLive   = "live"   // a run of a live sync has left something: the id of the sync
	TopicCancel = "cancel" // a run is to end: its id
	TopicLook   = "look"   // there is something to send: the name of the outbox
)

// Leader says which of the processes of an installation does what falls due. A process
// that is alone leads.
type Leader interface {
	// Leads reports whether this process does.
	Leads() bool
	// Tell lets the process that does know, when tx is committed.
	Tell(tx *store.Tx, topic, text string) error
	// Leading fails with lease.ErrLost when another process leads by now.
	Leading(ctx context.Context, tx *store.Tx) error
}

// Tell lets the other processes know of a change of what has an id, when tx is committed.
func Tell(tx *store.Tx, topic string, id int64) error {
	return tx.Notify(topic, strconv.FormatInt(id, 10))
}
