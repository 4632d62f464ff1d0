package executor

import (
	"errors"

	"github.com/destkit/destkit/server/internal/sync/destination"
)

// keptCalls is how many calls of one batch the ledger keeps: a destination that
// throttles for an hour is called often.
const keptCalls = 16

// noteCall keeps the id of a call, also of one that failed, so that what became
// of a record can be explained by what went over the wire.
func (d *delivery) noteCall(id string, err error) {
	var call *destination.CallError
	if errors.As(err, &call) {
		id = call.Call
	}
	if id == "" {
		return
	}
	if len(d.calls) == keptCalls {
		d.calls = append(d.calls[:0:0], d.calls[1:]...)
	}
	d.calls = append(d.calls, id)
}
