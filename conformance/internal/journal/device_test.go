package journal

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDevicesAreNoJournals: a device that never ends is refused, not read.
func TestDevicesAreNoJournals(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("no /dev/zero here: ", err)
	}
	_, err := Open("/dev/zero")
	require.ErrorContains(t, err, "no regular file")
	_, err = Read("/dev/zero")
	require.ErrorContains(t, err, "no regular file")
	_, err = Create("/dev/zero", Header{Run: "r", Started: time.Unix(0, 0)})
	require.ErrorContains(t, err, "no regular file")
}
