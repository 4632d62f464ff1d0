package runs

import (
	"encoding/json"

	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Position is up to where a sync has settled the messages of its topic.
func Position(books *ledger.Ledger, syncID int64) (mark int64, err error) {
	meta, err := books.Sync(syncID).Meta()
	if err != nil || meta.Damaged || len(meta.HighWater) == 0 || json.Unmarshal(meta.HighWater, &mark) != nil {
		return 0, err // it reads everything again
	}
	return mark, nil
}
