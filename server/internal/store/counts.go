package store

import (
	"fmt"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Counts are the figures of a store.
type Counts struct {
	Rows  map[string]int64 // by table
	Runs  map[string]int64 // sync runs by status
	Bytes int64            // size of the database
}

// counted are the tables that figures show.
var counted = []string{
	"organizations", "users", "workspaces", "invitations", "destinations", "sources", "datasets", "models",
	"topics", "topic_messages", "syncs", "sync_runs", "webhooks", "webhook_deliveries", "open_alerts", "mails",
}

// Counts counts the rows of the store.
func (tx *Tx) Counts() (Counts, error) {
	counts := Counts{Rows: map[string]int64{}, Runs: map[string]int64{}}
	for _, table := range counted {
		n, err := tx.number("SELECT count(*) FROM " + table)
		if err != nil {
			return counts, fmt.Errorf("count %s: %w", table, err)
		}
		counts.Rows[table] = n
	}
	err := tx.query("SELECT status, count(*) FROM sync_runs GROUP BY status", func(c sqlite.Row) error {
		s := scan{cells: c}
		status := s.text()
		counts.Runs[status] = s.number()
		return nil
	})
	if err != nil {
		return counts, fmt.Errorf("count sync runs: %w", err)
	}
	if counts.Bytes, err = tx.number(sqlite.Size); err != nil {
		return counts, fmt.Errorf("measure store: %w", err)
	}
	return counts, nil
}
