//go:build !unix

// Package postgrestest starts a PostgreSQL for tests, on Unix: elsewhere such
// tests are skipped.
package postgrestest

import "testing"

// Who may log in, and how.
const (
	User     = "tester"
	Password = "pg-s3cret-word"
)

// Server is a running one.
type Server struct {
	Folder string // of the socket, too
	Port   int
}

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
