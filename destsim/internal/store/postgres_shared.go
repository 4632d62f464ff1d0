package store

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// State implements common.
func (s *postgresStore) State(have int64) (version int64, state []byte, err error) {
	ctx, cancel := s.patient()
	defer cancel()
	err = s.pool.QueryRow(ctx, "SELECT state_version, CASE WHEN state_version <> $1 THEN state END FROM destination", have).Scan(&version, &state)
	if err != nil {
		return 0, nil, fmt.Errorf("read common state: %w", explainPostgres(err))
	}
	return version, state, nil
}

// Publish implements common.
func (s *postgresStore) Publish(have int64, state []byte) (version int64, err error) {
	ctx, cancel := s.patient()
	defer cancel()
	err = s.pool.QueryRow(ctx, "UPDATE destination SET state = $2, state_version = state_version + 1 WHERE state_version = $1 RETURNING state_version",
		have, state).Scan(&version)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("write common state: %w", explainPostgres(err))
	}
	return version, nil
}

// Take implements common. The clock is the server's, so that those of several
// machines need not agree; what a crash of the server loses is a second's worth.
func (s *postgresStore) Take(bucket string, n, perSecond, burst int64) (bool, error) {
	ctx, cancel := s.patient()
	defer cancel()
	did, err := s.pool.Exec(ctx, `INSERT INTO buckets AS b (name, tokens, at)
		SELECT $1, $4::double precision - $2, clock_timestamp() WHERE $2 <= $4
		ON CONFLICT (name) DO UPDATE SET at = clock_timestamp(),
			tokens = LEAST($4, b.tokens + $3 * GREATEST(extract(epoch FROM clock_timestamp() - b.at), 0)) - $2
		WHERE LEAST($4, b.tokens + $3 * GREATEST(extract(epoch FROM clock_timestamp() - b.at), 0)) >= $2`,
		[]byte(bucket), float64(n), float64(perSecond), float64(burst))
	if err != nil {
		return false, fmt.Errorf("look at common limit: %w", explainPostgres(err))
	}
	return did.RowsAffected() == 1, nil
}
