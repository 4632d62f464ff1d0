package runs

import (
	"encoding/json"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// matchRate measures how many of the records that the last run sent to an
// audience the application recognises (spec 2.6). A run that sent nothing, and
// an object that is no audience, keep the earlier rate.
func (e *Engine) matchRate(y *store.Sync, run *store.SyncRun, destinationType string) (*api.MatchRate, error) {
	object := y.Config.DestinationAttributes.Object
	const page = 1000
	matched, sent := 0, int64(0)
	for after := int64(0); ; after += page {
		logged, total, err := e.Ledger().Sync(y.ID).Records(run.ID, ledger.Filter{Verdict: ledger.Acknowledged, Operation: api.OperationUpsert}, after, page)
		if err != nil {
			return y.MatchRate, err
		}
		sent = total
		keys := make([]json.RawMessage, len(logged))
		for i, record := range logged {
			keys[i] = record.Key
		}
		matched += e.Gate.Matched(destinationType, object, keys)
		if len(logged) < page {
			break
		}
	}
	if sent == 0 {
		return y.MatchRate, nil
	}
	return &api.MatchRate{MatchRate: float64(matched) / float64(sent), LastCalculatedAt: api.Time{Time: e.Clock.Now()}}, nil
}
