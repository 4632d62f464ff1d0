package destination

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/destkit/destkit/destsim/rpc"
)

// largeReplies is how many replies of more than rpc.LargeReply bytes are held at once
// in a process, of all destinations together: each may be as long as MaxReply, and
// every batch of every run waits for one.
const largeReplies = 3

var large = semaphore.NewWeighted(largeReplies)

// enter waits for a place among the large replies, which the exchange of the call
// holds until leave.
func enter(ctx context.Context) error {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	if x == nil || x.large {
		return nil
	}
	if err := large.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	x.large = true
	return nil
}

// leave gives the place back, when nothing of the reply is used any more.
func (x *Exchange) leave() {
	if x.large {
		x.large = false
		large.Release(1)
	}
}

// surplus is how many results a reply may have beyond two for each record: some
// destinations answer twice, and a few name records that were not sent.
const surplus = 100

// mostResults bounds the results that are read of a reply: each takes more memory
// than it has bytes.
func mostResults(records int) int { return 2*records + surplus }

// detached copies identifiers out of a large reply, so that its memory can go. An
// identifier longer than any record of the batch names none of them.
func detached(results []rpc.RecordResult, records [][]byte) {
	longest := 0
	for _, record := range records {
		longest = max(longest, len(record))
	}
	for i := range results {
		id := results[i].Identifier
		if results[i].Identifier = nil; len(id) <= longest {
			results[i].Identifier = append([]byte(nil), id...)
		}
	}
}
