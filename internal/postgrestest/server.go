// Package postgrestest starts a PostgreSQL for tests: in a folder of its own, on
// a free port of the loopback and on a socket in that folder. It is for tests
// only, and refuses to know what they do with it. It does so on Unix; elsewhere
// such tests are skipped.
package postgrestest

// Who may log in, and how. The user is a superuser.
const (
	User     = "tester"
	Password = "pg-s3cret-word"
)

// Server is a running one.
type Server struct {
	Folder string // of the socket, too
	Port   int
}
