package migrations

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachStepIsWrittenForBoth(t *testing.T) {
	one, err := Steps(SQLite)
	require.NoError(t, err)
	other, err := Steps(Postgres)
	require.NoError(t, err)
	require.Len(t, other, len(one), "each step is written for both")
}
