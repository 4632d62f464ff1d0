package executor

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// terms are the inputs of a run: the job, and the plan that it makes of that before it
// begins.
type terms struct {
	options   *Options
	job       Job
	began     time.Time
	plan      *mapping.Plan
	plans     map[string]*destination.Plan // of the batches, by their operation
	operation operation
	rows      bool       // the state keeps sent rows, for delete records
	stream    *stream    // nil unless the source is a topic
	highWater *highWater // nil without a high-water mark
	dry       *dryRun    // nil: a run
}

// prepare makes the plan of the records and of the batches.
func (t *terms) prepare() error {
	var problems []api.Problem
	t.began = t.options.Clock.Now()
	t.plan, problems = mapping.Compile(t.job.Config, t.job.DestinationObject, t.job.Columns, mapping.Env{
		RunID: t.job.Run, SyncID: t.job.Sync, Now: t.began, DestinationType: t.job.DestinationType,
		HiddenIdentifier: t.job.HiddenIdentifier, Segments: t.job.Segments,
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
	t.operation = operationOf(&t.job.Config)
	t.options.Deviations.operation(&t.operation, &t.job.Config)
	t.rows = t.operation.deletes && t.deletesWhole()
	if t.stream = streamOf(&t.job); t.stream != nil && t.stream.events {
		t.operation.changed, t.operation.events = false, false
	}
	t.plans = map[string]*destination.Plan{}
	for _, wire := range []string{t.operation.wire, rpc.OperationDelete} {
		t.plans[wire] = t.wirePlanOf(wire)
	}
	return nil
}

// deletesWhole reports whether a delete record carries the row that was sent last
// instead of the identifier alone.
func (t *terms) deletesWhole() bool {
	var how string
	_ = json.Unmarshal(t.job.Config.AdvancedConfiguration[mapping.DeleteRecords], &how) // checked with the sync
	return how == mapping.DeleteWhole
}

// wirePlanOf is the sync plan of batches.
func (t *terms) wirePlanOf(wire string) *destination.Plan {
	p := rpc.SyncPlan{
		Object:    rpc.ObjectRef{APIName: t.job.DestinationObject.FullName, Label: t.job.DestinationObject.Label},
		Operation: wire, SyncRunID: t.job.Run, SyncID: t.job.Sync, Schema: map[string]rpc.SchemaField{},
	}
	var order []string
	handling := map[string]destination.Handling{}
	for _, f := range t.plan.Fields() {
		p.Schema[f.FullName] = rpc.SchemaField{ActiveIdentifier: f.ActiveIdentifier, Field: destination.WireField(f.DestinationField)}
		order = append(order, f.FullName)
		handling[f.FullName] = destination.Handling{
			Preserve: f.PreserveValues, Merge: f.Merge, LookupObject: f.LookupObject, LookupField: f.LookupField,
		}
	}
	return destination.NewPlan(p, order).Handle(handling).Under(t.job.Settings)
}

// allowsEmpty reads the service's own key of the advanced configuration.
func (t *terms) allowsEmpty() bool {
	var allowed bool
	return json.Unmarshal(t.job.Config.AdvancedConfiguration[mapping.AllowEmptySource], &allowed) == nil && allowed
}

// swapper replaces the object, where the run is of that kind.
func (t *terms) swapper() (destination.Swapper, bool) {
	strategy := t.job.Config.MirrorStrategy
	swapper, able := t.job.Destination.(destination.Swapper)
	return swapper, able && t.job.Config.Operation == api.OperationMirror && strategy != nil && *strategy == api.MirrorSwap
}

func (t *terms) newSpool() *spool { return &spool{scratch: t.options.Scratch} }

func (t *terms) crash(point string) {
	if t.options.Crash != nil {
		t.options.Crash(point)
	}
}
