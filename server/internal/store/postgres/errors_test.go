package postgres

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store/database"
)

// A server of any version and state, as far as its words go.
func TestWordsOfPostgres(t *testing.T) {
	for code, want := range map[string]error{
		"53100": database.ErrFull, "53300": ErrUnavailable, "57P01": ErrUnavailable, "57P03": ErrUnavailable, "25006": ErrUnavailable,
		"40001": ErrUnavailable, "40P01": ErrUnavailable, "08006": ErrUnavailable, "58030": ErrUnavailable, "XX001": database.ErrDamaged,
		"28P01": ErrUnfit, "3D000": ErrUnfit, "42501": ErrUnfit,
	} {
		require.ErrorIs(t, explained(&pgconn.PgError{Code: code}), want, code)
	}
	require.ErrorIs(t, explained(&net.OpError{Err: os.ErrDeadlineExceeded}), ErrUnavailable)
	require.EqualError(t, explained(context.DeadlineExceeded), "the database is not available: no answer in time")
	require.True(t, Harmless(explained(&pgconn.PgError{Code: "23503"})))
	require.False(t, Harmless(explained(&pgconn.PgError{Code: "42P01"})))
}
