package runs

import (
	"fmt"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// merged is what the store knows of the ledger of a sync: by it a run finds that files
// of the ledger are gone, or are those of an earlier day.
type merged struct {
	run       int64 // the newest run that the state has
	completed int64 // the newest of those that came to their end; 0: none
}

func mergedSetting(syncID int64) string { return fmt.Sprintf("merged of sync %d", syncID) }

func mergedOf(tx *store.Tx, syncID int64) (m merged, err error) {
	text, err := setting(tx, mergedSetting(syncID))
	if err == nil && text != "" {
		if _, err = fmt.Sscan(text, &m.run, &m.completed); err != nil {
			err = fmt.Errorf("read setting %s: %w", mergedSetting(syncID), err)
		}
	}
	return m, err
}

// tell passes it to a job, with the progress of an interrupted run.
func (m merged) tell(job *executor.Job, run *store.SyncRun) {
	job.Merged, job.Completed = m.run, m.completed > 0
	if n := run.Run.RecordsProcessed; n != nil {
		job.Reported = *n
	}
}

// KeepMerged notes a run that the state has taken over.
func KeepMerged(tx *store.Tx, syncID, runID int64, o executor.Outcome) error {
	if !o.Merged {
		return nil
	}
	m, err := mergedOf(tx, syncID)
	if err != nil {
		return err
	}
	if m.run = runID; o.Status == api.RunCompleted {
		m.completed = runID
	}
	return tx.SetSetting(mergedSetting(syncID), fmt.Sprint(m.run, m.completed))
}
