//go:build !unix

package postgrestest

import "testing"

// Start skips the test.
func Start(t testing.TB) Server {
	t.Helper()
	t.Skip("PostgreSQL is started on Unix alone: its socket is a file, and its input ends it")
	return Server{}
}

// Credentials are those of a source of type postgres.
func (s Server) Credentials() map[string]any { return nil }

// Stop has nothing to end.
func Stop() error { return nil }

// Run is m.Run.
func Run(m *testing.M) int { return m.Run() }
