package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// triggerRoutes say that a job of another product has finished, which starts the
// syncs that wait for it (dbt_cloud, fivetran).
func (h *Handlers) triggerRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/triggers/dbt_cloud", `{"project_id":"11","job_id":"12","status":"success"} is a finished dbt Cloud job: syncs with that trigger run`, h.dbtJob),
		call.Route("POST", "/triggers/fivetran", `{"job_id":"a","job_name":"Nightly","status":"success"} is a finished Fivetran job, by its id, its name or both: syncs with that trigger run`, h.fivetranJob),
	}
}

// The ends of a job. Only success starts syncs: the rows of a job that has failed
// are not there.
const (
	jobSucceeded = "success"
	jobFailed    = "error"
)

// finishedJob holds what both bodies have besides the names of the job.
type finishedJob struct {
	Status      string `json:"status"`
	WorkspaceID *int64 `json:"workspace_id"` // nil: every workspace
}

func (j *finishedJob) check() []api.Problem {
	switch j.Status {
	case "":
		j.Status = jobSucceeded
	case jobSucceeded, jobFailed:
	default:
		return []api.Problem{{Field: "status", Message: fmt.Sprintf("unknown value %q: must be %s or %s", foreign.Clip(j.Status, 64), jobSucceeded, jobFailed)}}
	}
	return nil
}

// startedRuns is the answer: the runs that the job has started, and the syncs that
// wait for it and are paused.
type startedRuns struct {
	Runs   []startedRun `json:"runs"`
	Paused []int64      `json:"paused_sync_ids"`
}

// startedRun is skipped while an earlier run of its sync is active.
type startedRun struct {
	SyncRunID   int64  `json:"sync_run_id"`
	SyncID      int64  `json:"sync_id"`
	WorkspaceID int64  `json:"workspace_id"`
	Status      string `json:"status"`
}

// dbtJob fires the trigger dbt_cloud.
func (h *Handlers) dbtJob(c *call.Control) (any, error) {
	var body struct {
		ProjectID string `json:"project_id"`
		JobID     string `json:"job_id"`
		finishedJob
	}
	if err := c.Body(&body); err != nil {
		return nil, err
	}
	problems := body.check()
	for _, part := range []struct{ field, value string }{{"project_id", body.ProjectID}, {"job_id", body.JobID}} {
		if part.value == "" {
			problems = append(problems, api.Problem{Field: part.field, Message: "is required: as the trigger of the sync has it"})
		}
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	fits := func(t *api.Triggers) bool {
		return t.DBTCloud != nil && *t.DBTCloud == api.DBTTrigger{ProjectID: body.ProjectID, JobID: body.JobID}
	}
	reason := api.TriggerReason{UITag: "dbt Cloud", UIDetail: fmt.Sprintf("dbt Cloud: job %s of project %s has finished", body.JobID, body.ProjectID)}
	return h.fire(c.R.Context(), body.finishedJob, fits, reason)
}

// fivetranJob fires the trigger fivetran. A trigger without a name is met by
// the id alone.
func (h *Handlers) fivetranJob(c *call.Control) (any, error) {
	var body struct {
		JobID   string `json:"job_id"`
		JobName string `json:"job_name"`
		finishedJob
	}
	if err := c.Body(&body); err != nil {
		return nil, err
	}
	problems := body.check()
	if body.JobID == "" && body.JobName == "" {
		problems = append(problems, api.Problem{Field: "job_id", Message: "is required, or job_name: as the trigger of the sync has them"})
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	fits := func(t *api.Triggers) bool {
		if t.Fivetran == nil {
			return false
		}
		byID := body.JobID == "" || t.Fivetran.JobID == body.JobID
		byName := body.JobName == "" || t.Fivetran.JobName == body.JobName || t.Fivetran.JobName == "" && body.JobID != ""
		return byID && byName
	}
	job := body.JobID
	switch {
	case job == "":
		job = body.JobName
	case body.JobName != "":
		job += " (" + body.JobName + ")"
	}
	return h.fire(c.R.Context(), body.finishedJob, fits, api.TriggerReason{UITag: "Fivetran", UIDetail: fmt.Sprintf("Fivetran: job %s has finished", job)})
}

// fire queues a run of each sync whose triggers fit a job that has succeeded: all
// of them in one change, or none.
func (h *Handlers) fire(ctx context.Context, job finishedJob, fits func(*api.Triggers) bool, reason api.TriggerReason) (any, error) {
	var queued []*store.SyncRun
	answer := startedRuns{Runs: []startedRun{}, Paused: []int64{}}
	err := h.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		if job.WorkspaceID != nil {
			_, err := store.Workspaces.Any(tx, *job.WorkspaceID)
			if errors.Is(err, store.ErrNotFound) {
				return problem.InvalidField("workspace_id", "there is no workspace %d", *job.WorkspaceID)
			}
			if err != nil {
				return err
			}
		}
		waiting, err := waitingSyncs(tx, job.WorkspaceID, fits)
		if err != nil || job.Status != jobSucceeded {
			return err
		}
		for _, y := range waiting {
			if y.Config.Paused {
				answer.Paused = append(answer.Paused, y.ID)
				continue
			}
			run := &store.SyncRun{WorkspaceID: y.WorkspaceID, SyncID: y.ID}
			if err := h.Runs.Queue(tx, run, false, reason); err != nil {
				return err
			}
			queued = append(queued, run)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, run := range queued {
		answer.Runs = append(answer.Runs, startedRun{run.ID, run.SyncID, run.WorkspaceID, run.Run.Status})
		h.Runs.Launch(run)
	}
	return answer, nil
}

// waitingSyncs are the syncs of one workspace, or of all, whose triggers fit.
func waitingSyncs(tx *store.Tx, workspaceID *int64, fits func(*api.Triggers) bool) (found []*store.Sync, err error) {
	const at = 500
	for after := int64(0); ; {
		some, err := tx.EverySync(after, at)
		if err != nil || len(some) == 0 {
			return found, err
		}
		for _, y := range some {
			after = y.ID
			if workspaceID != nil && y.WorkspaceID != *workspaceID {
				continue
			}
			if mode := y.Config.Mode; mode != nil && mode.Type == api.ModeTriggered && mode.Triggers != nil && fits(mode.Triggers) {
				found = append(found, y)
			}
		}
	}
}
