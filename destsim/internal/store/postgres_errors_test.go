package store

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// TestWhatPassesIsAway: who may try again is told so, and no other.
func TestWhatPassesIsAway(t *testing.T) {
	for code, passes := range map[string]bool{
		"08006": true, "53300": true, "57P01": true, "25P03": true,
		"25006": false, "42501": false, "23505": false, "2": false,
	} {
		err := explainPostgres(&pgconn.PgError{Code: code, Message: "said"})
		require.Equal(t, passes, errors.Is(err, ErrAway), code)
		require.ErrorContains(t, err, "said (SQLSTATE "+code+")")
	}
}
