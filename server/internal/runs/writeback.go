package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/records"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/states"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// writebackTime bounds the writing of one log, in real time.
const writebackTime = 5 * time.Minute

// writebackRows is how many rows of a log are written at once: each page of them is
// looked for from the beginning of the run's records.
const writebackRows = 20_000

// Writeback writes the logs of runs into warehouses.
type Writeback struct {
	Planning
	sources *sources.Sources
	states  *states.States
}

// NewWriteback has written none.
func NewWriteback(p Planning, from *sources.Sources, of *states.States) *Writeback {
	return &Writeback{Planning: p, sources: from, states: of}
}

// Write writes what became of the records of a run into the warehouse that they
// come from, where its source is set to keep such logs, and removes rows
// that are too old. A run that is ended twice writes its rows once. A warehouse that
// does not take them takes nothing from the run: what it has sent is sent.
func (b *Writeback) Write(ctx context.Context, y *store.Sync, run *store.SyncRun, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writebackTime)
	defer cancel()
	var src *store.Source
	var access sources.Access
	err := b.Shared.Store.View(ctx, func(tx *store.Tx) (err error) {
		if src, err = tx.Source(y.WorkspaceID, y.SourceID); err == nil && src.WritebackRetention != nil {
			access, err = b.sources.Access(tx, src)
		}
		return err
	})
	if err == nil && src.WritebackRetention != nil {
		err = b.writeLog(ctx, y, run, access, time.Duration(*src.WritebackRetention)*24*time.Hour)
	}
	if err != nil {
		log.Warn("the log of a run cannot be written into its warehouse", "source", y.SourceID, "error", access.Clean(err.Error()))
	}
}

func (b *Writeback) writeLog(ctx context.Context, y *store.Sync, run *store.SyncRun, access sources.Access, keep time.Duration) error {
	name, err := b.states.Installation(ctx)
	if err != nil {
		return err
	}
	from, err := access.Open(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	log, ok := source.LogIn(from)
	if !ok {
		return fmt.Errorf("write log: %w", source.ErrReadOnly)
	}
	now, event := b.Clock.Now(), records.EventField(y)
	for first := int64(0); ; first += writebackRows {
		logged, total, err := b.Ledger().Sync(y.ID).Records(run.ID, ledger.Filter{}, first, writebackRows)
		if err != nil && !errors.Is(err, ledger.ErrNoRun) { // it ended before it sent anything
			return err
		}
		var rows []source.LogRow
		for i := range logged {
			r := &logged[i]
			if r.Verdict != ledger.Acknowledged && r.Verdict != ledger.Rejected {
				continue // it was never sent
			}
			row := logRow(y, run, r, event, now)
			row.ID = fmt.Sprintf("%s-%d-%d", name, run.ID, first+int64(i))
			rows = append(rows, row)
		}
		if len(rows) > 0 {
			if err := log.Append(ctx, rows); err != nil {
				return err
			}
		}
		if first+writebackRows >= total {
			return log.Expire(ctx, now.Add(-keep))
		}
	}
}

// logRow is one record in the columns of published facts.
func logRow(y *store.Sync, run *store.SyncRun, l *ledger.Logged, event string, now time.Time) source.LogRow {
	shown := records.Shown(l, event)
	row := source.LogRow{
		SyncID: y.ID, RunID: run.ID, Identifier: string(shown.Identifier), Payload: shown.RecordPayload,
		StartedAt: l.Batch.StartedAt.UTC(), CompletedAt: l.Batch.CompletedAt.UTC(), Operation: shown.Operation, Status: shown.Status,
		Message: shown.StatusMessage, LoggedAt: now.UTC(), DestinationID: y.DestinationID,
		DestinationObjectID: y.Config.DestinationAttributes.Object, SourceID: y.SourceID, SourceObjectID: sourceObjectName(&y.Config.SourceAttributes.Object),
	}
	var text string
	if json.Unmarshal(shown.Identifier, &text) == nil { // people look for it as it is
		row.Identifier = text
	}
	switch row.Operation {
	case api.OperationInsert, api.OperationAppend:
		row.Operation = "create"
	}
	return row
}

// sourceObjectName names what a sync reads: a table by its names, anything else by
// its type and id.
func sourceObjectName(o *api.SourceObject) string {
	if o.TableName == nil {
		if o.ID == nil {
			return o.Type
		}
		return fmt.Sprintf("%s:%d", o.Type, *o.ID)
	}
	name := *o.TableName
	for _, part := range []*string{o.TableSchema, o.TableCatalog} {
		if part != nil && *part != "" {
			name = *part + "." + name
		}
	}
	return name
}
