package ledger

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/destkit/destkit/internal/matrixtest"
)

// TestMatrixOnPostgreSQL runs the tests of the other places where several processes
// keep their books; killed are processes. Outside of the matrix tier it does so with
// a sample of the kills, the wrong bytes and the histories.
func TestMatrixOnPostgreSQL(t *testing.T) {
	matrixtest.Long(t)
	matrixtest.NotShort(t)
	tests := map[string]func(*testing.T, place){
		"verdicts": verdictsOnTheState, "begin": beginRefuses, "append": appendRefuses, "never ended": runsThatNeverEnded,
		"parallel": parallelAppends, "drop": runsAndDrop, "scan": scanStandsStill, "killed": killedAtEachPoint,
		"killed while restoring": killedWhileRestoring, "wrong bytes": eachWrongByteIsNoticed, "cut": cutAnywhere,
		"damage": damageDuringARun, "meta": metaFiles, "restore": restoreRefuses, "history": testHistory,
		"fence": fenced, "two processes": twoProcesses, "model": modelOnServer,
	}
	if matrixtest.Whole() { // half a million records
		tests["memory"] = constantMemory
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, onServer) })
	}
}

func modelOnServer(t *testing.T, p place) {
	histories := 100
	if !matrixtest.Whole() {
		histories = 5
	}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n <= histories {
			likeAModel(rt, p.empty(t))
		}
	})
}
