package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store"
)

// manySyncs fills the store with n syncs, past the API: the checks are not what
// is measured here.
func manySyncs(b testing.TB, w *world, n int) int64 {
	id := w.newSync()
	require.NoError(b, w.s.store.Update(b.Context(), func(tx *store.Tx) error {
		workspace, err := tx.WorkspaceByKey(w.key)
		if err != nil {
			return err
		}
		y, err := tx.Sync(workspace.ID, id)
		if err != nil {
			return err
		}
		for i := range n - 1 {
			more := *y
			more.ID, more.Version = 0, 0
			label := fmt.Sprintf("Sync %d", i)
			more.Config.Label = &label
			if err := tx.CreateSync(&more); err != nil {
				return err
			}
		}
		return nil
	}))
	return id
}

// discard is a writer that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
