package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOldServersAreRefused(t *testing.T) {
	require.ErrorContains(t, checkServer(120019), "PostgreSQL is of version 12.19: 13 or newer is needed")
	require.NoError(t, checkServer(150003))
}
