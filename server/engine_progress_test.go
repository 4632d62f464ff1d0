package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// TestProgressIsStoredTogether: where 20 runs stand is stored in one change, no run
// waits for the writer of the store meanwhile, and the counters at the end are those of
// the end.
func TestProgressIsStoredTogether(t *testing.T) {
	const runs = 20
	w := newSyncWorld(t)
	_, release := w.hold()
	list := make([]*store.SyncRun, runs)
	for i := range list {
		id := w.kept(nil).id("data.id")
		list[i] = &store.SyncRun{}
		list[i].ID = w.trigger(id)
	}
	for i := range list {
		require.Eventually(t, func() bool {
			w.view(func(tx *store.Tx) (err error) {
				list[i], err = store.SyncRuns.Any(tx, list[i].ID)
				return err
			})
			return list[i].Run.Status == api.RunWorking && list[i].Run.CurrentStep != nil && *list[i].Run.CurrentStep == executor.StepPlanning
		}, time.Minute, time.Millisecond)
	}

	writing, free := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- w.s.store.Update(t.Context(), func(*store.Tx) error {
			close(writing)
			<-free
			return nil
		})
	}()
	<-writing
	for i, run := range list {
		w.s.engine.Progress(t.Context(), run).Report(executor.Progress{Step: "one", Counters: executor.Counters{SourceRecords: int64(i + 1)}})
		w.s.engine.Progress(t.Context(), run).Report(executor.Progress{Step: "other", Counters: executor.Counters{SourceRecords: int64(i + 100)}})
	}
	close(free) // all of them were noted while the writer was taken
	require.NoError(t, <-ended)
	before := w.s.store.Generation()
	stored := func() (steps int) {
		w.view(func(tx *store.Tx) error {
			for i, run := range list {
				now, err := store.SyncRuns.Any(tx, run.ID)
				require.NoError(t, err)
				if *now.Run.CurrentStep == "other" {
					require.EqualValues(t, i+100, *now.Run.SourceRecordCount)
					steps++
				}
			}
			return nil
		})
		return steps
	}
	require.Eventually(t, func() bool { return stored() == runs }, time.Minute, time.Millisecond)
	require.LessOrEqual(t, w.s.store.Generation()-before, uint64(2), "a tick that fell between two notes is one more")

	release()
	w.settle()
	for _, run := range list {
		w.view(func(tx *store.Tx) error {
			now, err := store.SyncRuns.Any(tx, run.ID)
			require.NoError(t, err)
			require.Equal(t, api.RunCompleted, now.Run.Status)
			require.EqualValues(t, 1, *now.Run.SourceRecordCount)
			return nil
		})
	}
}
