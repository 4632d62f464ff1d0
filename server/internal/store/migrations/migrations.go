// Package migrations owns the tables of a store: the steps that make them, written once
// for SQLite and once for PostgreSQL, and their version. It leaves it to each database to
// take the steps.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"sync"

	"github.com/destkit/destkit/server/internal/store/database"
)

// The steps in their order; the number that a name begins with is the
// version of the database after it. A published one is never changed.
//
//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// The databases that the steps are written for.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Steps gives the statements of each step for one database.
func Steps(database string) (steps []string, err error) {
	names, err := fs.Glob(files, database+"/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, string(text))
	}
	return steps, nil
}

// Version is the one that this program makes and understands.
var Version = sync.OnceValue(func() int64 {
	names, _ := fs.Glob(files, SQLite+"/*.sql")
	return int64(len(names))
})

// ErrNewer refuses data of a version that this program does not know.
var ErrNewer = database.Unfit("made by a newer version of the program")

// Newer names the version that the data has.
func Newer(version int64) error {
	return fmt.Errorf("%w: the data has version %d, this program knows versions up to %d; start one that is as new as the data", ErrNewer, version, Version())
}

// Tables are those that a copy of a store has, in an order in which each row finds what
// it refers to.
var Tables = []string{
	"settings", "organizations", "users", "access_tokens", "workspaces", "memberships", "data_keys", "invitations",
	"workspace_invitations", "destinations", "object_caches", "sources", "source_tables", "refreshes", "datasets", "models",
	"segments", "topics", "topic_messages", "syncs", "schedules", "sync_runs", "webhooks", "webhook_deliveries", "open_alerts", "mails",
	"links",
}
