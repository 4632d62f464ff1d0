package ledger_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/cluster/shelf/shelftest"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// The ledger knows no database: here its tests get one.
func init() {
	ledger.PostgresRoom = func(t testing.TB) (ledger.Shelf, string) {
		t.Helper()
		room := shelftest.Take(t)
		text, err := json.Marshal(room)
		if err != nil {
			t.Fatal(err)
		}
		on, err := room.Shelf()
		if err != nil {
			t.Fatal(err)
		}
		return on, string(text)
	}
	ledger.JoinRoom = func(child string) (ledger.Shelf, error) {
		var room shelftest.Room
		if err := json.Unmarshal([]byte(child), &room); err != nil {
			return nil, err
		}
		return room.Shelf()
	}
	ledger.SetFence = func(on ledger.Shelf, sync, fence int64) error {
		return on.(*shelftest.Shelf).SetFence(sync, fence)
	}
}

// TestDamagedRows changes what lies in the tables: a wrong byte, a row that is
// missing, a row that is cut. The next run finds it, says so, and a full one mends
// it.
func TestDamagedRows(t *testing.T) {
	room := shelftest.Take(t)
	on, err := room.Shelf()
	require.NoError(t, err)
	pool, err := room.Pool()
	require.NoError(t, err)
	batch := ledger.Batch{Records: []ledger.Record{{Key: []byte("1"), Verdict: ledger.Acknowledged, Print: ledger.Fingerprint{1}}}}
	sync := int64(0)
	for file, reason := range map[string]string{"state": "the state file is damaged; " + ledger.UnknownDeletes, "run-2.open": "the log of run 2 is damaged; " + ledger.UnknownDeletes} {
		for what, text := range map[string]string{
			"byte":    "UPDATE ledger_parts SET data = set_byte(data, 7, get_byte(data, 7) # 1) WHERE file = $1 AND at = $2",
			"missing": "DELETE FROM ledger_parts WHERE file = $1 AND at = $2",
			"cut":     "UPDATE ledger_parts SET data = substring(data FOR 5) WHERE file = $1 AND at = $2",
		} {
			t.Run(file+" "+what, func(t *testing.T) {
				sync++
				l, err := ledger.Open(ledger.Options{Shelf: on, Scratch: t.TempDir()})
				require.NoError(t, err)
				s := l.Sync(sync)
				for run := range int64(2) {
					r, err := s.Begin(run+1, ledger.Meta{})
					require.NoError(t, err)
					require.NoError(t, r.Append(batch))
					require.NoError(t, r.Append(batch))
					if run == 0 {
						require.NoError(t, r.Finish(ledger.Meta{}))
					}
					require.NoError(t, r.Close())
				}
				var id, at int64
				require.NoError(t, pool.QueryRow(context.Background(), `SELECT file, max(at) FROM ledger_parts JOIN ledger_files USING (file)
					WHERE sync = $1 AND name = $2 AND at + octet_length(data) < size OR name = $2 AND sync = $1 AND at = 0 GROUP BY file`, room.First+sync, file).Scan(&id, &at))
				_, err = pool.Exec(context.Background(), text, id, at)
				require.NoError(t, err)
				r, err := s.Begin(2, ledger.Meta{})
				require.NoError(t, err)
				meta, err := s.Meta()
				require.NoError(t, err)
				require.True(t, meta.Damaged)
				require.Equal(t, reason, meta.Reason)
				require.NoError(t, r.Append(batch))
				require.NoError(t, r.Finish(ledger.Meta{}))
				meta, err = s.Meta()
				require.NoError(t, err)
				require.False(t, meta.Damaged)
			})
		}
	}
}
