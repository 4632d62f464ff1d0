package jobs

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ten processes that start at once make the tables once, and a schema of a newer
// program is left alone.
func TestTablesAreMadeOnce(t *testing.T) {
	f := newFleet(t, "jobs_tables")
	ctx := t.Context()
	open := func(i int) error {
		_, err := Open(ctx, Options{Pool: f.pool, Process: fmt.Sprint(i)}) // the schema is that of the search_path
		return err
	}
	var all sync.WaitGroup
	errs := make(chan error, 10)
	for i := range 10 {
		all.Go(func() { errs <- open(i) })
	}
	all.Wait()
	for range 10 {
		require.NoError(t, <-errs)
	}
	require.Equal(t, 1, f.number("SELECT count(*) FROM pg_tables WHERE tablename = 'river_job' AND schemaname = $1", f.schema))
	newest := f.number("SELECT max(version) FROM river_migration")

	f.execute("INSERT INTO river_migration (version, line) VALUES ($1, 'main')", newest+1)
	err := open(1)
	require.ErrorIs(t, err, ErrNewer)
	require.EqualError(t, err, fmt.Sprintf("open queue: the queue is of a newer version of destkit; use that one: schema jobs_tables has its tables in version %d, this program knows %d", newest+1, newest))
	f.execute("DELETE FROM river_migration WHERE version >= $1", newest) // an older one
	require.NoError(t, open(1))
	require.Equal(t, newest, f.number("SELECT max(version) FROM river_migration"))
}
