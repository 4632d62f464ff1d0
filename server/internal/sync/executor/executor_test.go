package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

func TestUpsertSendsWhatIsNewOrChanged(t *testing.T) {
	w := newWorld(t, setup{})
	w.fill(1, 1234)
	o := w.sync()
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	require.Equal(t, [8]int64{1234, 1234, 0, 0, 1234, 1234, 0, 0}, counts(o))
	require.Equal(t, w.rows(), w.stored())

	o = w.sync()
	require.Equal(t, [8]int64{1234}, counts(o), "a run without changes shows 0")
	require.Zero(t, o.Calls)

	w.sql("UPDATE people SET name = 'changed' WHERE id % 100 = 5")
	w.fill(5000, 3)
	w.sql("DELETE FROM people WHERE id = 1")
	o = w.sync()
	require.Equal(t, [8]int64{1236, 16, 0, 0, 16, 16, 0, 0}, counts(o), "13 changed, 3 new")
	want := w.rows()
	want["1"] = `"name 1" 1`
	require.Equal(t, want, w.stored(), "an upsert deletes nothing")
}
