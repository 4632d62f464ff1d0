package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/destkit/destkit/internal/source/rowsort"
)

// reading is the way of the rows: out of the source, along with the state, into
// the comparison.
type reading struct {
	*terms
	progress   *progress
	booking    *booking
	comparison *comparison
	sending    *sending
}

// readAll is the first pass over the source. Rows that turn out not to come in
// the order of their keys are sorted on disk, from the start: acknowledgements
// until then are in the state already.
func (r *reading) readAll(ctx context.Context, p *phase) error {
	if r.stream != nil {
		return r.readStream(ctx, p)
	}
	byColumn := r.plan.KeyColumn()
	for {
		err := r.readOnce(ctx, p, byColumn)
		if byColumn == "" || !errors.Is(err, errUnordered) {
			return err
		}
		byColumn = ""
		r.comparison.tally, r.comparison.samples = tally{}, nil
		err = r.comparison.removals.close()
		if p.refused != nil { // they come again
			err = errors.Join(err, p.refused.close())
		}
		if err != nil {
			return failed(CodeInternal, err, "%v", err)
		}
		if r.dry != nil {
			r.dry.reset()
			continue
		}
		r.booking.resumed = true
		if err := r.booking.restart(); err != nil {
			return err
		}
	}
}

func (r *reading) readOnce(ctx context.Context, p *phase, byColumn string) error {
	rows, err := r.openRows(ctx, byColumn)
	if err != nil {
		return explain(ctx, err)
	}
	defer rows.Close()
	before, err := r.booking.scan()
	if err != nil {
		return failed(CodeState, err, "read the state of the sync: %v", err)
	}
	defer before.Close()
	pack := r.sending.packer(ctx, p)
	if r.booking.skipping && r.dry == nil {
		pack = r.booking.skipper()
	}
	r.comparison.sink = pack.add
	return r.drain(ctx, pack, r.comparison.compare(ctx, &group{feed: rows}, before))
}

// drain sends the rest of a pass that ended with err and waits until
// nothing of it is on its way.
func (r *reading) drain(ctx context.Context, pack *packer, err error) error {
	if err == nil {
		err = pack.flush()
	}
	if err == nil && r.sending.inFlight.busy() {
		r.comparison.publish()
		r.progress.enter(StepSending)
	}
	r.sending.inFlight.wait(ctx)
	r.comparison.publish()
	if err == nil {
		err = r.booking.bookInvalid(r.comparison.tally.invalids, r.comparison.samples)
	}
	if own := r.progress.ended(); own != nil {
		return own
	}
	return explain(ctx, err)
}

// openRows starts to read. byColumn names the column whose order is that of the
// keys; "" sorts the mapped rows on disk.
func (r *reading) openRows(ctx context.Context, byColumn string) (feed, error) {
	var order []string
	if byColumn != "" {
		order = []string{byColumn}
	}
	columns, at := r.columns()
	own, cancel := context.WithCancel(ctx)
	widen := func() error { return r.sending.room.widen(own) }
	rows, err := r.job.Source.Rows(rowsort.WithWide(own, widen), r.job.Object, columns, order)
	if err != nil {
		cancel()
		return nil, &sourceError{err}
	}
	in := direct{rows: readAhead(rows, len(columns), widen, cancel), mapper: r.plan, generated: r.plan.Generated()}
	if r.highWater != nil {
		in.timed = &timed{Rows: in.rows, highWater: r.highWater, at: at, width: len(r.plan.Columns())}
		in.rows, in.at = in.timed, func() stamp { return stampOf(in.timed.now) }
	}
	if byColumn != "" {
		return &in, nil
	}
	out, err := rowsort.Sort(ctx, &mappedRows{direct: in}, []int{0}, r.options.Scratch)
	if err != nil {
		return nil, &sourceError{err}
	}
	if r.plan.Generated() {
		return &repeats{feed: &sorted{out}}, nil
	}
	return &sorted{out}, nil
}

// columns are the columns to read: those of the records, and the one of the
// mark.
func (t *terms) columns() (names []string, at int) {
	names = slices.Clone(t.plan.Columns())
	if t.highWater == nil {
		return names, 0
	}
	if at = slices.Index(names, t.highWater.column); at < 0 {
		names, at = append(names, t.highWater.column), len(names)
	}
	return names, at
}

// explain turns an error of reading into a failure.
func explain(ctx context.Context, err error) error {
	var src *sourceError
	switch {
	case err == nil, errors.Is(err, errUnordered):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &src):
		f := failed(CodeSource, err, "read the source: %v", src.cause)
		f.Transient = true
		return f
	}
	return err
}
