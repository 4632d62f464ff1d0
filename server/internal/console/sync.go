package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/controlapi"
)

// runsPerPage is how many runs the history of a sync lists.
const runsPerPage = 25

// syncPage is one sync as people think of it.
type syncPage struct {
	syncLine
	Source      api.Source
	Destination api.Destination
	Reads       string
	Mappings    []mappingLine
	Runs        []api.SyncRun
	Page, Pages int64
	Starts      string
}

// mappingLine is one mapping in words.
type mappingLine struct {
	From, Kind, To string
	Identifies     bool
	Generated      bool
}

// Previous and Later are pages of the history; 0: there is none.
func (p syncPage) Previous() int64 { return p.Page - 1 }
func (p syncPage) Later() int64 {
	if p.Page < p.Pages {
		return p.Page + 1
	}
	return 0
}

func (s *site) sync(r *console.Request) (any, error) {
	ctx, w, id := r.Context(), r.ID("workspace"), r.ID("sync")
	at := map[string]int64{"sync_id": id}
	got, err := perform[one[api.Sync]](ctx, s, w, "fetchSync", at, nil, nil)
	if err != nil {
		return nil, err
	}
	y := got.Data
	p := syncPage{syncLine: syncLine{Sync: y, Workspace: w, Next: s.NextStart(&y.SyncConfig)}, Page: 1, Starts: starts(&y.SyncConfig)}
	source, err := perform[one[api.Source]](ctx, s, w, "fetchSource", map[string]int64{"source_id": y.SourceAttributes.ConnectionID}, nil, nil)
	if err != nil {
		return nil, err
	}
	destination, err := perform[one[api.Destination]](ctx, s, w, "fetchDestination", map[string]int64{"destination_id": y.DestinationAttributes.ConnectionID}, nil, nil)
	if err != nil {
		return nil, err
	}
	p.Source, p.Destination, p.Reads = source.Data, destination.Data, reads(y.SourceAttributes.Object)
	for _, m := range y.Mappings {
		p.Mappings = append(p.Mappings, mappingOf(m))
	}
	if n, err := strconv.ParseInt(r.Query("page"), 10, 64); err == nil && n > 0 {
		p.Page = n
	}
	runs, err := perform[list[api.SyncRun]](ctx, s, w, "listSyncRuns", at, url.Values{"per_page": {fmt.Sprint(runsPerPage)}, "page": {fmt.Sprint(p.Page)}}, nil)
	if err != nil {
		return nil, err
	}
	p.Runs, p.Pages = runs.Data, runs.Pagination.LastPage
	if p.Page == 1 && len(p.Runs) > 0 {
		p.Last = &p.Runs[0]
	}
	return p, nil
}

// reads names what a sync reads.
func reads(o api.SourceObject) string {
	switch {
	case o.TableName != nil:
		return "table " + *o.TableName
	case o.Name != nil:
		return o.Type + " " + *o.Name
	case o.ID != nil:
		return fmt.Sprintf("%s %d", o.Type, *o.ID)
	}
	return o.Type
}

// starts describes when a sync runs.
func starts(c *api.SyncConfig) string {
	switch {
	case c.Mode != nil && c.Mode.Type == api.ModeLive:
		return "live, as messages come"
	case c.Mode == nil || c.Mode.Triggers == nil:
		return "by hand"
	}
	t := c.Mode.Triggers
	switch {
	case t.SyncSequence != nil:
		return fmt.Sprintf("after sync %d", t.SyncSequence.SyncID)
	case t.DBTCloud != nil:
		return "after the dbt Cloud job " + t.DBTCloud.JobID
	case t.Fivetran != nil:
		return "after the Fivetran job " + t.Fivetran.JobID + t.Fivetran.JobName
	case t.Schedule == nil || t.Schedule.Frequency == api.FrequencyNever:
		return "by hand"
	case t.Schedule.CronExpression != nil:
		return "by the expression " + *t.Schedule.CronExpression
	}
	return t.Schedule.Frequency
}

// mappingOf describes the source of a value.
func mappingOf(m api.Mapping) mappingLine {
	l := mappingLine{To: m.To, Identifies: m.IsPrimaryIdentifier, Kind: m.From.Type, Generated: m.GenerateField}
	var text string
	var constant api.Constant
	var template api.Template
	switch {
	case json.Unmarshal(m.From.Data, &text) == nil:
		l.From = text
	case m.From.Type == api.FromConstant && json.Unmarshal(m.From.Data, &constant) == nil:
		l.From = string(constant.Value)
	case m.From.Type == api.FromLiquid && json.Unmarshal(m.From.Data, &template) == nil:
		l.From = template.Text
	default:
		l.From = string(m.From.Data)
	}
	return l
}

// trigger starts a run.
func (s *site) trigger(r *console.Request) (string, error) {
	w, id := r.ID("workspace"), r.ID("sync")
	var body any
	if r.Checked("full") {
		body = map[string]bool{"force_full_sync": true}
	}
	made, err := perform[one[struct {
		ID int64 `json:"sync_run_id"`
	}]](r.Context(), s, w, "triggerSync", map[string]int64{"sync_id": id}, nil, body)
	if err != nil {
		return "", err
	}
	r.Done(fmt.Sprintf("Run %d is started.", made.Data.ID))
	return fmt.Sprintf("/workspaces/%d/runs/%d", w, made.Data.ID), nil
}

// pause pauses or resumes: the sync is sent back as it was read, with that changed.
func (s *site) pause(r *console.Request) (string, error) {
	w, id := r.ID("workspace"), r.ID("sync")
	at := map[string]int64{"sync_id": id}
	text, err := s.Perform(r.Context(), w, "fetchSync", at, nil, nil)
	if err != nil {
		return "", err
	}
	var read one[map[string]any]
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&read); err != nil {
		return "", fmt.Errorf("read sync %d: %w", id, err)
	}
	read.Data["paused"] = r.Form("paused") == "true"
	if _, err := s.Perform(r.Context(), w, "updateSync", at, nil, read.Data); err != nil {
		return "", err
	}
	if r.Form("paused") == "true" {
		r.Done("The sync is paused: nothing starts a run.")
	} else {
		r.Done("The sync goes on.")
	}
	return fmt.Sprintf("/workspaces/%d/syncs/%d", w, id), nil
}

func (s *site) deleteSync(r *console.Request) (string, error) {
	w, id := r.ID("workspace"), r.ID("sync")
	if _, err := s.Perform(r.Context(), w, "deleteSync", map[string]int64{"sync_id": id}, nil, nil); err != nil {
		return "", err
	}
	r.Done(fmt.Sprintf("Sync %d is deleted.", id))
	return fmt.Sprintf("/workspaces/%d", w), nil
}

// planPage is what a run would do (POST /_control/syncs/{id}/plan).
type planPage struct {
	Workspace, Sync int64
	Full            bool
	Plan            controlapi.DryRun
}

func (s *site) plan(r *console.Request) (any, error) {
	p := planPage{Workspace: r.ID("workspace"), Sync: r.ID("sync"), Full: r.Query("full") == "true"}
	if _, err := s.Perform(r.Context(), p.Workspace, "fetchSync", map[string]int64{"sync_id": p.Sync}, nil, nil); err != nil {
		return nil, err // it may be of another workspace
	}
	err := s.Control.Do(r.Context(), http.MethodPost, fmt.Sprintf("/_control/syncs/%d/plan", p.Sync), map[string]any{"full": p.Full, "limit": 25}, &p.Plan)
	return p, err
}
