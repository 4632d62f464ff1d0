package executor

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// TestMatrixKillsAroundTheWarehouse kills the process in a run whose state lives
// in the warehouse, at each of its own points and at those of the ledger, and
// goes on with the same run or with the next one: nothing is lost, nothing is
// sent for nothing, and the warehouse ends with an entry for each record.
func TestMatrixKillsAroundTheWarehouse(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each point")
	}
	points := slices.Concat(WarehouseCrashPoints(), []string{"before-send", "after-send"}, ledger.CrashPoints())
	for _, operation := range []string{api.OperationMirror, api.OperationUpsert} {
		for i, point := range points {
			for _, resume := range []bool{true, false} {
				own := i < len(WarehouseCrashPoints()) && operation == api.OperationMirror && resume == (i%2 == 0)
				if !own && !matrixtest.Whole() {
					continue
				}
				t.Run(fmt.Sprint(operation, " ", point, " resumed ", resume), func(t *testing.T) {
					killAroundTheWarehouse(t, operation, point, resume)
				})
			}
		}
	}
}

func killAroundTheWarehouse(t *testing.T, operation, point string, resume bool) {
	credentials, sql := warehouseDatabase(t, peopleColumns)
	dir := t.TempDir()
	opened, err := ledger.Open(ledger.Options{Dir: dir})
	require.NoError(t, err)
	w := newWorld(t, setup{options: Options{Ledger: opened}})
	w.fromPostgres(credentials)
	state := w.advanced()
	server := httptest.NewServer(w.sim)
	t.Cleanup(server.Close)
	w.config.Operation = operation
	sql(fmt.Sprintf(fillPeople, 1, 100))
	require.Equal(t, api.RunCompleted, w.sync().Status)
	require.NoError(t, opened.Close())

	sql("UPDATE people SET level = 50 WHERE id <= 40")
	sql("DELETE FROM people WHERE id > 80")
	sql(fmt.Sprintf(fillPeople, 200, 219))
	w.run++
	from, err := json.Marshal(credentials)
	require.NoError(t, err)
	work, err := json.Marshal(childWork{server.URL, dir, string(from), operation, point, w.run, 1})
	require.NoError(t, err)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+string(work))
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "the child was not killed: %s", out)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), "%s", out)

	// What the process had in its hands is in doubt: the source goes back.
	sql("UPDATE people SET level = id % 7 WHERE id <= 20")
	sql("DELETE FROM people WHERE id > 210")
	sql(fmt.Sprintf(fillPeople, 90, 94))
	opened, err = ledger.Open(ledger.Options{Dir: dir})
	require.NoError(t, err)
	w.ledger, w.executor.options.Ledger = opened, opened
	if !resume {
		w.run++
	}
	o := w.again(t.Context())
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	require.False(t, o.FullSync, "nothing is in doubt: %+v", o)
	stored, want := w.stored(), 96 // 1 to 80, 90 to 94, 200 to 210
	for id := 1; id <= 80; id++ {
		level := id % 7
		if id > 20 && id <= 40 {
			level = 50
		}
		require.Equal(t, fmt.Sprintf(`"name %d" %d`, id, level), stored[fmt.Sprint(id)])
	}
	if operation == api.OperationMirror {
		require.Len(t, stored, want)
		require.Len(t, wholeOf(t, state), want)
	}
	require.Zero(t, w.sync().Processed)
	require.NoError(t, opened.Close())
}
