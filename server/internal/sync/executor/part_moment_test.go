package executor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// moves takes rows from the second of two ranges into the first, and one the other
// way; the halves are told apart by the digits of their keys.
var moves = []string{
	"UPDATE people SET id = -id WHERE id BETWEEN 390 AND 399", "UPDATE people SET id = 4000 WHERE id = 1",
	"INSERT INTO people VALUES (12345, 'new', 0), (5000, 'new', 0)",
}

// TestPartsReadOneMoment: the source is changed between the beginnings of two parts.
// Of PostgreSQL both read what was there when the run was cut. Of SQLite, and where the
// snapshot is gone, the run is made as a whole, and reads what is there then.
func TestPartsReadOneMoment(t *testing.T) {
	for _, test := range []struct {
		name     string
		postgres bool
		gone     bool // the transaction that has the snapshot is ended
		whole    bool
	}{
		{name: "PostgreSQL", postgres: true},
		{name: "PostgreSQL without its snapshot", postgres: true, gone: true, whole: true},
		{name: "SQLite", whole: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &processes{t: t, dir: t.TempDir(), free: 2}
			books, err := ledger.Open(ledger.Options{Dir: p.dir})
			require.NoError(t, err)
			w := newWorld(t, setup{options: Options{Parts: p, CutRows: 20, Ledger: books}, table: keyedTable})
			p.w = w
			w.config = config(api.OperationMirror, "id:id", "name:name", "level:level")
			w.fill(1, 400)
			change := func() {
				for _, text := range moves {
					w.sql(text)
				}
			}
			before := w.rows()
			if test.postgres {
				credentials, exec := warehouseDatabase(t, "id bigint PRIMARY KEY, name text, level int")
				exec("INSERT INTO people SELECT v, 'name ' || v, v % 7 FROM generate_series(1, 400) v")
				w.fromPostgres(credentials)
				same := change
				change = func() {
					same()
					exec(strings.Join(moves, "; "))
					if test.gone {
						exec("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = 'warehouse' AND application_name = 'destkit' AND state = 'idle in transaction'")
					}
				}
			}
			require.EqualValues(t, 400, w.sync().Updated)
			p.inTurn = func(number int) {
				if number == 2 {
					change()
					p.inTurn = func(int) {}
				}
			}
			w.run++
			o := w.again(t.Context()) // no dry run foresees what changes under a run
			require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
			require.Equal(t, 2, w.partsOf(w.run))
			p.inTurn = nil
			if test.whole {
				require.Equal(t, [8]int64{402, 13, 11, 0, 24, 24, 0, 0}, counts(o))
			} else {
				require.Equal(t, [8]int64{400, 0, 0, 0, 0, 0, 0, 0}, counts(o))
				require.Equal(t, before, w.stored())
				require.Equal(t, [8]int64{402, 13, 11, 0, 24, 24, 0, 0}, counts(w.sync()))
			}
			require.Equal(t, w.rows(), w.stored())
			require.Zero(t, w.sync().Processed)
		})
	}
}
