package control

import (
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/sync/clock"
)

// change is one change that a caller made to the clock.
type change struct {
	Real   time.Time     `json:"at"`     // by the clock of the system
	Change string        `json:"change"` // advance, freeze, run or set
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"`
	Ran    *clock.Report `json:"ran,omitempty"` // what an advance did
}

// mostChanges bounds what is kept of the changes of the clock.
const mostChanges = 100

// changes keeps the last changes of the clock in this process.
type changes struct {
	mu   sync.Mutex
	list []change
}

func (k *changes) add(one change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list = append(k.list, one); len(k.list) > mostChanges {
		k.list = slices.Delete(k.list, 0, 1)
	}
}

// all are the changes, newest first.
func (k *changes) all() []change {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := append([]change{}, k.list...)
	slices.Reverse(list)
	return list
}
