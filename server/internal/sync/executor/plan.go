package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/mapping"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// prepare makes the plan of the records and of the batches.
func (r *run) prepare() error {
	var problems []api.Problem
	r.began = r.e.options.Clock.Now()
	r.plan, problems = mapping.Compile(r.job.Config, r.job.DestinationObject, r.job.Columns, mapping.Env{
		RunID: r.job.Run, SyncID: r.job.Sync, Now: r.began, DestinationType: r.job.DestinationType,
		HiddenIdentifier: r.job.HiddenIdentifier, Segments: r.job.Segments, NullText: r.job.Settings.NullText,
	})
	if len(problems) > 0 {
		f := failed(CodeConfiguration, nil, "the sync does not fit its source and destination any more: %s", problems[0])
		lines := make([]string, len(problems))
		for i, p := range problems {
			lines[i] = p.String()
		}
		f.Detail = strings.Join(lines, "\n")
		return f
	}
	r.operation = operationOf(&r.job.Config)
	r.e.options.Deviations.operation(&r.operation, &r.job.Config)
	r.rows = r.operation.deletes && r.deletesWhole()
	if r.stream = streamOf(&r.job); r.stream != nil && r.stream.events {
		r.operation.changed, r.operation.events = false, false
	}
	r.removals.scratch = r.e.options.Scratch
	r.full, r.reason = r.job.Full, r.job.FullReason
	r.plans = map[string]*destination.Plan{}
	for _, wire := range []string{r.operation.wire, rpc.OperationDelete} {
		r.plans[wire] = r.wirePlanOf(wire)
	}
	return nil
}

// deletesWhole reports whether a delete record carries the row that was sent last
// instead of the identifier alone.
func (r *run) deletesWhole() bool {
	var how string
	_ = json.Unmarshal(r.job.Config.AdvancedConfiguration[mapping.DeleteRecords], &how) // checked with the sync
	return how == mapping.DeleteWhole
}

// wirePlanOf is the sync plan of batches.
func (r *run) wirePlanOf(wire string) *destination.Plan {
	p := rpc.SyncPlan{
		Object:    rpc.ObjectRef{APIName: r.job.DestinationObject.FullName, Label: r.job.DestinationObject.Label},
		Operation: wire, SyncRunID: r.job.Run, SyncID: r.job.Sync, Schema: map[string]rpc.SchemaField{},
	}
	var order []string
	handling := map[string]destination.Handling{}
	for _, f := range r.plan.Fields() {
		p.Schema[f.FullName] = rpc.SchemaField{ActiveIdentifier: f.ActiveIdentifier, Field: destination.WireField(f.DestinationField)}
		order = append(order, f.FullName)
		handling[f.FullName] = destination.Handling{
			Preserve: f.PreserveValues, Merge: f.Merge, LookupObject: f.LookupObject, LookupField: f.LookupField,
		}
	}
	return destination.NewPlan(p, order).Handle(handling).Under(r.job.Settings)
}

// pace asks how fast to send and sets the limits up (spec 8).
func (r *run) pace(ctx context.Context) error {
	r.calls.gate = &gate{clock: r.e.options.Clock, limiter: r.e.options.Limiter(r.job.Connection)}
	if r.e.options.Deviations.LimitOfRun {
		r.calls.gate.limiter = pace.NewLimiter()
	}
	tries := r.calls.backoff.Tries
	if r.e.options.Deviations.SpeedOnce {
		tries = 1
	}
	err := r.calls.persist(ctx, tries, 0, r.e.options.PlanTimeout, func(ctx context.Context) (int64, error) {
		speed, err := r.job.Destination.Speed(ctx)
		r.speed = speed.Speed
		return speed.RateLimit, err
	})
	var whole *wholeError
	if errors.As(err, &whole) {
		return ofCall(whole.cause)
	}
	if err != nil {
		return err
	}
	s := &r.speed
	if s.MaximumBatchSize < 1 || s.MaximumParallelBatches < 1 || s.MaximumRecordsPerSecond < 1 {
		return failed(CodeSpeed, nil, "get_sync_speed answered %d, %d and %d for maximum_batch_size, maximum_parallel_batches and maximum_records_per_second: each must be 1 or more",
			s.MaximumBatchSize, s.MaximumParallelBatches, s.MaximumRecordsPerSecond)
	}
	if !r.e.options.Deviations.Uncapped {
		s.MaximumParallelBatches = min(s.MaximumParallelBatches, maxParallel)
	}
	if !r.e.options.Deviations.LargeBatches {
		s.MaximumBatchSize = min(s.MaximumBatchSize, s.MaximumRecordsPerSecond)
	}
	if size := r.job.Settings.BatchSize; size > 0 {
		s.MaximumBatchSize = min(s.MaximumBatchSize, size)
	}
	r.calls.gate.records.Rate = s.MaximumRecordsPerSecond
	r.staff(int(s.MaximumParallelBatches))
	return nil
}

// staff lets so many batches be on their way at once.
func (r *run) staff(size int) {
	r.crew = newCrew(r.e.options.Clock, fmt.Sprintf("batch of sync %d", r.job.Sync), size)
}
