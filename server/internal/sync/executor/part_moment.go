package executor

import (
	"context"
	"errors"

	"github.com/destkit/destkit/internal/source"
)

// All parts of a run read the source as of one moment, as a whole run does that reads
// with one statement. Otherwise a row whose key moves from one range to another
// meanwhile would be seen by both or by none, and a mirror would delete it. Where the
// source cannot do that, or cannot any more, the run is made as a whole.

// keepMoment has the source keep the present moment until all parts have read it.
func (r *run) keepMoment(ctx context.Context) (err error) {
	from, ok := r.job.Source.(source.Snapshotter)
	if !ok {
		return nil
	}
	if r.moment, err = from.Snapshot(ctx); err != nil {
		r.moment = nil
		return r.explain(ctx, &sourceError{err})
	}
	return nil
}

func (r *run) leaveMoment() {
	if r.moment == nil {
		return
	}
	if err := r.moment.Close(); err != nil {
		r.job.Log.Warn("the snapshot of the source cannot be closed", "error", err)
	}
	r.moment = nil
}

// butMoved is nil where the run goes on as a whole.
func (r *run) butMoved(err error) error {
	if !errors.Is(err, source.ErrNoSnapshot) {
		return err
	}
	r.job.Log.Info("the run is made as a whole: its parts cannot read one moment of the source", "reason", err)
	return nil
}
