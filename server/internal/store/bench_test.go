package store

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// benchStores runs a benchmark over a workspace of 10,000 syncs.
func benchStores(b *testing.B, run func(b *testing.B, s *Store, workspace, sync int64)) {
	for _, kind := range []string{inMem, onDisk} {
		b.Run(kind, func(b *testing.B) {
			s := open(b, Options{}.a(b, kind))
			var w *world
			update(b, s, func(tx *Tx) {
				w = build(b, tx, "acme")
				for i := range 9_999 {
					sync := *w.Sync
					sync.Config.Label = api.Ptr(fmt.Sprint("sync ", i))
					require.NoError(b, Syncs.Create(tx, &sync))
				}
			})
			b.ReportAllocs()
			b.ResetTimer()
			run(b, s, w.Workspace.ID, w.Sync.ID)
		})
	}
}

// BenchmarkReadSync reads a sync, and the little of it that most calls need.
func BenchmarkReadSync(b *testing.B) {
	for name, read := range map[string]func(tx *Tx, workspace, sync int64) error{
		"whole": func(tx *Tx, workspace, sync int64) error { _, err := Syncs.Read(tx, workspace, sync); return err },
		"head":  func(tx *Tx, workspace, sync int64) error { _, err := Syncs.Head(tx, workspace, sync); return err },
	} {
		b.Run(name, func(b *testing.B) {
			benchStores(b, func(b *testing.B, s *Store, workspace, sync int64) {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						require.NoError(b, s.View(context.Background(), func(tx *Tx) error { return read(tx, workspace, sync) }))
					}
				})
			})
		})
	}
}

// BenchmarkListSyncs lists 100 of 10,000, the first page and one in the middle; heads are for a
// server that keeps the replies.
func BenchmarkListSyncs(b *testing.B) {
	for _, page := range []int64{1, 50} {
		for _, heads := range []bool{false, true} {
			b.Run(fmt.Sprint("page=", page, ",heads=", heads), func(b *testing.B) {
				benchStores(b, func(b *testing.B, s *Store, workspace, _ int64) {
					for range b.N {
						require.NoError(b, s.View(b.Context(), func(tx *Tx) error {
							var found, total int
							if heads {
								list, n, err := Syncs.Heads(tx, workspace, Page{Number: page, PerPage: 100})
								found, total = len(list), int(n)
								require.NoError(b, err)
							} else {
								list, n, err := Syncs.List(tx, workspace, Page{Number: page, PerPage: 100})
								found, total = len(list), int(n)
								require.NoError(b, err)
							}
							require.Equal(b, []int{100, 10_000}, []int{found, total})
							return nil
						}))
					}
				})
			})
		}
	}
}

// BenchmarkOpen starts an empty store in memory.
func BenchmarkOpen(b *testing.B) {
	for range b.N {
		s, err := Open(b.Context(), Options{})
		require.NoError(b, err)
		require.NoError(b, s.Close())
	}
}

// BenchmarkNewOrganization is what a test that wants to be alone pays for.
func BenchmarkNewOrganization(b *testing.B) {
	for _, kind := range []string{inMem, onDisk} {
		b.Run(kind, func(b *testing.B) {
			s := open(b, Options{}.a(b, kind))
			for range b.N {
				require.NoError(b, s.Update(b.Context(), writeRound))
			}
		})
	}
}

// BenchmarkChange is the smallest change: one row, and its commit.
func BenchmarkChange(b *testing.B) {
	for _, kind := range []string{inMem, onDisk} {
		b.Run(kind, func(b *testing.B) {
			s := open(b, Options{}.a(b, kind))
			for range b.N {
				require.NoError(b, s.Update(b.Context(), func(tx *Tx) error { return tx.SetSetting("k", "v") }))
			}
		})
	}
}

// BenchmarkRestore replaces a workspace of 10,000 syncs by a copy of it.
func BenchmarkRestore(b *testing.B) {
	benchStores(b, func(b *testing.B, s *Store, _, _ int64) {
		data := copyOf(b, s)
		b.ResetTimer()
		for range b.N {
			require.NoError(b, s.Restore(b.Context(), bytes.NewReader(data)))
		}
	})
}
