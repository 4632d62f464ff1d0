package testkit

// Who may log in, and how. The user is a superuser.
const (
	PostgresUser     = "tester"
	PostgresPassword = "pg-s3cret-word"
)

// Postgres is a running one.
type Postgres struct {
	Folder string // of the socket, too
	Port   int
}
