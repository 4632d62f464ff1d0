package snapshot

import (
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"

	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// TestFullDisk: also where it is no store that has no room.
func TestFullDisk(t *testing.T) {
	for _, err := range []error{
		store.ErrFull,
		&os.PathError{Op: "write", Path: "/secret/place", Err: syscall.ENOSPC},
		sqlite.ResultFull.ToError(),
	} {
		f := problem.Of(Refused(fmt.Errorf("restore: %w", err)))
		require.Equal(t, http.StatusInsufficientStorage, f.Code)
		require.NotContains(t, f.Message, "secret")
	}
}
