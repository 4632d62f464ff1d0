package executor

import (
	"bytes"
	"context"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Parts is where the parts of a large run work: in processes beside this one.
type Parts interface {
	// Free is how many parts may work at once now, that of this process counted.
	// Below 2 the run is not cut.
	Free(ctx context.Context) int
	// Work has all parts worked on with RunPart, and tells of each how it is doing:
	// as often as it likes and in any order, the last time with Ended. job is that
	// of the run, for parts that work in this process. When ctx ends it ends them
	// all. It returns when none of them works any more, nor can write any more:
	// where it cannot know, the error is ErrStop, and the run goes on later, under
	// another fence. Any other error says why a part did not come to its end.
	Work(ctx context.Context, job Job, parts []PartJob, tell func(PartReport)) error
}

const (
	// cutRows is the least number of rows, or of keys in the state, of a run that
	// is cut; a part has half as many, or more.
	cutRows = 200_000
	// mostParts of one run.
	mostParts = 8
)

// PartJob is one part of a run, to be carried out by any process: it goes over
// the wire as JSON.
type PartJob struct {
	Run    int64 `json:"run"`
	Sync   int64 `json:"sync"`
	Number int   `json:"number"` // from 1
	Of     int   `json:"of"`
	// Deletes: the part has sent what is to be written, and now sends the deletes
	// that it found. Upserts precede deletes in the whole run, not only in each
	// part.
	Deletes bool `json:"deletes"`
	// From and To bound its keys: From <= key < To; nil is no bound.
	From []byte `json:"from"`
	To   []byte `json:"to"`
	// Config is the sync as the run began, and Mapping what it makes of it: a
	// part that makes something else fails.
	Config  api.SyncConfig     `json:"config"`
	Mapping ledger.Fingerprint `json:"mapping"`
	Now     time.Time          `json:"now"` // the moment of the run, for templates
	Full    bool               `json:"full"`
	Resumed bool               `json:"resumed"` // the run was interrupted before
	// Speed is what the whole run may do. Records per second are shared by who sends,
	// and of the batches at once each part that has not ended has its share. Working
	// are the numbers of all parts of this step.
	Speed   rpc.Speed `json:"speed"`
	Working []int     `json:"working"`
	// Snapshot is the moment of the source that all parts read; "" is none that has a
	// name.
	Snapshot string `json:"snapshot"`
	// Fence is that of the lease of the run, for the caller of RunPart in another
	// process to fill in: who takes the lease over ends all parts. 0 is none.
	Fence int64 `json:"fence"`
}

// PartReport is how far a part is. It goes over the wire as JSON.
type PartReport struct {
	Number int    `json:"number"`
	Step   string `json:"step"`
	// What the comparison has found so far: rows read, those among them that can
	// be sent and cannot, records to be written and deleted, and keys of the state
	// that have no row.
	Rows     int64 `json:"rows"`
	Valid    int64 `json:"valid"`
	Invalids int64 `json:"invalids"`
	Updates  int64 `json:"updates"`
	Deletes  int64 `json:"deletes"`
	Missing  int64 `json:"missing"`
	// What its log has, also from before an interruption; of Failed so many are
	// Open, on their way.
	Updated int64 `json:"updated"`
	Deleted int64 `json:"deleted"`
	Failed  int64 `json:"failed"`
	Open    int64 `json:"open"`
	Spared  int64 `json:"spared"` // deletes that were refused to the end
	Calls   int64 `json:"calls"`
	// Answered tells that a call brought a usable reply; Fault is why the last of
	// the others brought none.
	Answered bool     `json:"answered"`
	Fault    *Failure `json:"fault"`
	Resumed  bool     `json:"resumed"` // it goes on with what another process has begun
	// Opened is another number each time that its rows are opened; 0: not yet.
	Opened int64 `json:"opened"`

	// The end. Without Failure, Unordered, Moved and Stopped all went well.
	Ended     bool     `json:"ended"`
	Samples   []Sample `json:"samples"` // the first invalid records
	Failure   *Failure `json:"failure"`
	Unordered bool     `json:"unordered"` // the rows do not come in the order of their keys
	Moved     bool     `json:"moved"`     // the moment of the run cannot be read any more
	Stopped   bool     `json:"stopped"`   // it was called back, and can be made again
	closed    bool     // … with the clock of this process
}

// well tells that a part came to its end.
func (p *PartReport) well() bool {
	return p.Ended && p.Failure == nil && !p.Unordered && !p.Moved && !p.Stopped
}

// cuttable reports whether the run is of a kind that can be cut: each key by
// itself, rows in the order of the keys, the state in the ledger.
func (r *run) cuttable() (source.Ranger, bool) {
	from, ok := r.job.Source.(source.Ranger)
	return from, ok && (r.e.options.Parts != nil || r.e.options.PartsHere > 1) && r.plan.KeyColumn() != "" &&
		r.job.Warehouse == nil && r.stream == nil && r.swap == nil && !r.skipping && waterColumn(&r.job.Config) == "" &&
		!r.operation.all && r.e.options.Deviations == (Deviations{})
}

// cut decides whether several send this run, and where it is cut; no parts: it
// is whole. The cuts of a run that was interrupted stay.
func (r *run) cut(ctx context.Context) ([]ledger.Part, error) {
	from, ok := r.cuttable()
	if !ok {
		return nil, nil
	}
	most := r.mostParts(ctx)
	parts := r.log.Parts()
	switch {
	case len(parts) > 0 && most > 1 && int64(len(parts)) <= r.speed.MaximumParallelBatches:
		return parts, nil
	case len(parts) > 0, most < 2, r.resumed:
		return nil, nil
	}
	values, rows, err := from.Sample(ctx, r.job.Object, r.plan.KeyColumn())
	if err != nil {
		return nil, r.explain(ctx, &sourceError{err})
	}
	least := r.e.options.CutRows
	if rows = max(rows, r.before.Rows); rows < least {
		return nil, nil
	}
	keys := r.cutsOf(values, int(min(int64(most), rows/max(least/2, 1))))
	if len(keys) == 0 {
		return nil, nil
	}
	if err := r.log.Cut(keys); err != nil {
		return nil, failed(CodeState, err, "cut the run into parts: %v", err)
	}
	return r.log.Parts(), nil
}

// mostParts is how many parts may help: each has a batch under way at least, and
// a second's records are a batch for each.
func (r *run) mostParts(ctx context.Context) int {
	free := int64(r.e.options.PartsHere)
	if r.e.options.Parts != nil {
		free = int64(r.e.options.Parts.Free(ctx))
	}
	return int(min(free, mostParts, r.speed.MaximumParallelBatches, r.speed.MaximumRecordsPerSecond/r.speed.MaximumBatchSize))
}

// cutsOf are keys that cut a sample into so many pieces, or fewer.
func (r *run) cutsOf(sample [][]byte, pieces int) (keys [][]byte) {
	for i := 1; i < pieces; i++ {
		at := i * len(sample) / pieces
		if at == 0 {
			continue
		}
		key := r.keyOf(sample[at])
		if len(keys) == 0 || bytes.Compare(keys[len(keys)-1], key) < 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// keyOf is the key of a value of the key column, and valueOf the other way
// round: they differ where numbers are sent as text, and have the same order. A
// part finds out when this is not so.
func (r *run) keyOf(value []byte) []byte {
	if r.plan.KeyText() && len(value) > 0 && value[0] != '"' {
		return append(append([]byte{'"'}, value...), '"')
	}
	return value
}

func (r *run) valueOf(key []byte) []byte {
	for i := range r.job.Columns {
		c := &r.job.Columns[i]
		if c.Name == r.plan.KeyColumn() && c.Kind == api.KindInteger && len(key) > 1 && key[0] == '"' {
			return key[1 : len(key)-1]
		}
	}
	return key
}

// partJobs describes the parts of a step, which are of all parts those that have
// something to do.
func (r *run) partJobs(parts []ledger.Part, of int, deletes bool) []PartJob {
	jobs, working := make([]PartJob, len(parts)), make([]int, len(parts))
	for i, p := range parts {
		working[i] = p.Number
		jobs[i] = PartJob{
			Run: r.job.Run, Sync: r.job.Sync, Number: p.Number, Of: of, Deletes: deletes, From: p.From, To: p.To,
			Config: r.job.Config, Mapping: r.plan.Fingerprint(), Now: r.began, Full: r.full, Resumed: r.resumed,
			Speed: r.speed, Working: working,
		}
		if r.moment != nil {
			jobs[i].Snapshot = r.moment.Name()
		}
	}
	return jobs
}
