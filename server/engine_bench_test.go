//go:build unix

package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkRunWithoutChanges is a run of a table of three rows that finds nothing to
// send: what a run costs before its first record, its source and its plan above all.
func BenchmarkRunWithoutChanges(b *testing.B) {
	files := func(w *world) origin {
		w.sourceFile()
		return origin{
			connection: map[string]any{"name": "Shop", "type": "sqlite", "credentials": map[string]any{"path": w.source}},
			object:     map[string]any{"type": "table", "table_catalog": "main", "table_schema": "main", "table_name": "customers"},
		}
	}
	for _, of := range []struct {
		name    string
		open    func(*world) origin
		changes map[string]any
	}{
		{"sqlite", files, nil},
		{"sqlite-all-properties", files, map[string]any{"field_behavior": "sync_all_properties"}},
		{"postgres", func(w *world) origin { o, _ := postgresOrigin(w); return o }, nil},
	} {
		b.Run(of.name, func(b *testing.B) {
			w := newWorld(b)
			id := w.syncFrom(of.open(w), of.changes)
			require.Equal(b, "completed", w.runs(id).at("data.status"))
			for b.Loop() {
				w.runs(id)
			}
		})
	}
}
