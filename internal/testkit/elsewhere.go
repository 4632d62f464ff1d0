//go:build !unix

package testkit

import "testing"

// StartPostgres skips the test.
func StartPostgres(t testing.TB) Postgres {
	t.Helper()
	t.Skip("PostgreSQL is started on Unix alone: its socket is a file, and its input ends it")
	return Postgres{}
}

// Credentials are those of a source of type postgres.
func (s Postgres) Credentials() map[string]any { return nil }

// StopPostgres has nothing to end.
func StopPostgres() error { return nil }

// RunWithPostgres is m.Run.
func RunWithPostgres(m *testing.M) int { return m.Run() }
