package executor

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// mirrored is a world whose sync is a mirror, and the records of its deletes as
// they went over the wire.
func mirrored(t *testing.T, how string) (*world, *[]string) {
	t.Helper()
	w := newWorld(t, setup{})
	w.config.Operation = api.OperationMirror
	if how != "" {
		w.config.AdvancedConfiguration = map[string]json.RawMessage{"delete_records": api.Raw(how)}
	}
	sent := &[]string{}
	w.change = func(j *Job) { j.Destination = &deleteWatch{Sender: j.Destination, sent: sent} }
	return w, sent
}

const whole = "full"

// TestWholeDeletes: with delete_records full a delete carries the last sent
// record of the key, through updates, refusals and runs without changes.
func TestWholeDeletes(t *testing.T) {
	w, sent := mirrored(t, whole)
	w.fill(1, 12)
	require.Equal(t, api.RunCompleted, w.sync().Status)
	w.sql("UPDATE people SET level = 90 WHERE id IN (2, 3)")
	w.arm(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Identifier: api.Raw(3)}})
	require.EqualValues(t, 1, w.sync().Failed)
	require.NoError(t, w.sim.DisarmFault("f1"))
	w.sql("DELETE FROM people WHERE id IN (1, 2, 3)")
	var foreseen []string
	for _, s := range w.dry(3).Samples {
		foreseen = append(foreseen, string(s.Record))
	}
	o := w.sync()
	require.ElementsMatch(t, *sent, foreseen)
	require.Equal(t, [8]int64{9, 0, 3, 0, 3, 3, 0, 0}, counts(o))
	require.False(t, o.FullSync)
	// Of 3 the change was refused, so the destination has its old value.
	require.ElementsMatch(t, []string{
		`{"id":1,"name":"name 1","level":1}`, `{"id":2,"name":"name 2","level":90}`, `{"id":3,"name":"name 3","level":3}`,
	}, *sent)
	require.Equal(t, w.rows(), w.stored())
	require.Zero(t, w.sync().Processed)
}

// TestWholeDeleteThatIsRefused comes again with the same row.
func TestWholeDeleteThatIsRefused(t *testing.T) {
	w, sent := mirrored(t, whole)
	w.fill(1, 3)
	require.Equal(t, api.RunCompleted, w.sync().Status)
	w.sql("DELETE FROM people WHERE id = 2")
	w.arm(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Operation: rpc.OperationDelete}})
	require.EqualValues(t, 1, w.sync().Failed)
	require.NoError(t, w.sim.DisarmFault("f1"))
	*sent = nil
	require.EqualValues(t, 1, w.sync().Updated)
	require.Equal(t, []string{`{"id":2,"name":"name 2","level":2}`}, *sent)
}

// TestWholeDeletesSwitchedOn: the first run sends every row again, so that their
// rows are known; keys that are gone by then are deleted by their identifier.
func TestWholeDeletesSwitchedOn(t *testing.T) {
	w, sent := mirrored(t, "")
	w.fill(1, 4)
	require.Equal(t, api.RunCompleted, w.sync().Status)
	w.config.AdvancedConfiguration = map[string]json.RawMessage{"delete_records": api.Raw(whole)}
	w.sql("DELETE FROM people WHERE id = 1")
	o := w.sync()
	require.Equal(t, [8]int64{3, 3, 1, 0, 4, 4, 0, 0}, counts(o))
	require.True(t, o.FullSync)
	require.Contains(t, o.FullReason, "whole row")
	require.Equal(t, []string{`{"id":1}`}, *sent)
	require.Zero(t, w.sync().Processed, "once is enough")
	// Off and on again: records acknowledged without their rows are sent again.
	w.config.AdvancedConfiguration = nil
	w.sql("UPDATE people SET level = 50 WHERE id = 2")
	require.EqualValues(t, 1, w.sync().Updated)
	w.config.AdvancedConfiguration = map[string]json.RawMessage{"delete_records": api.Raw(whole)}
	require.EqualValues(t, 3, w.sync().Updated)
	*sent = nil
	w.sql("DELETE FROM people WHERE id = 2")
	require.EqualValues(t, 1, w.sync().Updated)
	require.Equal(t, []string{`{"id":2,"name":"name 2","level":50}`}, *sent)
}

// TestWholeDeletesOfAnotherMapping have no member that the plan has not.
func TestWholeDeletesOfAnotherMapping(t *testing.T) {
	w, sent := mirrored(t, whole)
	w.fill(1, 3)
	require.Equal(t, api.RunCompleted, w.sync().Status)
	before := w.config
	w.config = config(api.OperationMirror, "id:id", "name:name")
	w.config.AdvancedConfiguration = before.AdvancedConfiguration
	w.sql("DELETE FROM people WHERE id = 3")
	require.EqualValues(t, 3, w.sync().Updated)
	require.Equal(t, []string{`{"id":3,"name":"name 3"}`}, *sent)
}

// TestWholeDeletesAfterAKill: a record on its way when the process died is
// deleted with the row that was sent, acknowledged or not.
func TestWholeDeletesAfterAKill(t *testing.T) {
	for _, point := range deathPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, sent := mirrored(t, whole)
			w.fill(1, 60)
			w.killed(t.TempDir(), point, 1)
			w.sql("DELETE FROM people WHERE id <> 60") // that one comes last, and keeps the source from being empty
			stored := len(w.stored())
			o := w.again(t.Context())
			require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
			require.Equal(t, w.rows(), w.stored())
			require.GreaterOrEqual(t, len(*sent), stored-1)
			for _, record := range *sent {
				require.Contains(t, record, `"name":"name `, "the row that was sent")
			}
		})
	}
}

// deleteWatch writes down the records of delete batches.
type deleteWatch struct {
	destination.Sender
	mu   sync.Mutex
	sent *[]string
}

func (d *deleteWatch) Send(ctx context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error) {
	if plan.Operation == rpc.OperationDelete {
		d.mu.Lock()
		for _, record := range records {
			*d.sent = append(*d.sent, string(record))
		}
		d.mu.Unlock()
	}
	return d.Sender.Send(ctx, plan, records)
}
