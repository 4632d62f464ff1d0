package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
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

// starts says in words when a sync runs.
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

// mappingOf says where a value comes from.
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
	Plan            struct {
		Label          *string      `json:"label"`
		Operation      string       `json:"operation"`
		FullSync       bool         `json:"full_sync"`
		FullSyncReason *string      `json:"full_sync_reason"`
		Rows           int64        `json:"source_record_count"`
		Actions        planActions  `json:"actions"`
		Refused        []planReason `json:"refused"`
		Doubtful       []planReason `json:"doubtful"`
		Sample         []struct {
			Action     string          `json:"action"`
			Identifier json.RawMessage `json:"identifier"`
			Record     json.RawMessage `json:"record"`
			Reason     *string         `json:"reason"`
		} `json:"sample"`
		Failure *struct {
			Code    string  `json:"error_code"`
			Message string  `json:"error_message"`
			Detail  *string `json:"error_detail"`
		} `json:"failure"`
		DurationMS float64 `json:"duration_ms"`
	}
}

type planActions struct {
	Create    int64 `json:"create"`
	Change    int64 `json:"change"`
	Resend    int64 `json:"resend"`
	Delete    int64 `json:"delete"`
	Refuse    int64 `json:"refuse"`
	Skip      int64 `json:"skip"`
	Unchanged int64 `json:"unchanged"`
}

type planReason struct {
	Reason string `json:"reason"`
	Rows   int64  `json:"rows"`
}

func (s *site) plan(r *console.Request) (any, error) {
	p := planPage{Workspace: r.ID("workspace"), Sync: r.ID("sync"), Full: r.Query("full") == "true"}
	if _, err := s.Perform(r.Context(), p.Workspace, "fetchSync", map[string]int64{"sync_id": p.Sync}, nil, nil); err != nil {
		return nil, err // it may be of another workspace
	}
	err := s.Control.Do(r.Context(), http.MethodPost, fmt.Sprintf("/_control/syncs/%d/plan", p.Sync), map[string]any{"full": p.Full, "limit": 25}, &p.Plan)
	return p, err
}

// The bounds of the page of a run.
const (
	recordsPerPage  = 50
	recordsLookedAt = 500 // for errors by message
	identifiersEach = 5   // shown with a message
)

// runPage is one run.
type runPage struct {
	api.SyncRun
	Workspace int64
	Name      string
	Rate      float64 // records a second, by the clock of the service
	Steps     []step
	Errors    []errorGroup
	Looked    int64 // at so many records that failed
	Failed    int64 // in all
	Records   []recordLine
	Total     int64
	Page      int64
	Pages     int64
	Status    string
	Gone      string // why there are no records
	Calls     console.Exchanges
}

// Active reports whether the run works.
func (p runPage) Active() bool { return working(p.SyncRun.Status) }

// Percent is how much of what is to be sent has a result; -1: not known.
func (p runPage) Percent() int64 {
	want := api.Value(p.SourceRecordUpdates) + api.Value(p.SourceRecordDeletes)
	if p.RecordsProcessed == nil || want == 0 {
		return -1
	}
	return min(100, 100*api.Value(p.RecordsProcessed)/want)
}

func (p runPage) Previous() int64 { return p.Page - 1 }
func (p runPage) Later() int64 {
	if p.Page < p.Pages {
		return p.Page + 1
	}
	return 0
}

// step is one of a run: done, now or still to come.
type step struct {
	Name      string
	Done, Now bool
}

// errorGroup is a message with the records behind it.
type errorGroup struct {
	Message string
	Count   int64
	Records []recordLine
}

// recordLine is a record of a run. Key is its identifier as the page of the record
// takes it.
type recordLine struct {
	api.SyncRunRecord
	Key string
}

// Shown is the identifier as people write it.
func (l recordLine) Shown() string {
	var text string
	if json.Unmarshal(l.Identifier, &text) == nil {
		return text
	}
	return string(l.Identifier)
}

// HasKey reports whether the record can be asked for.
func (l recordLine) HasKey() bool { return l.Key != "" && l.Key != "null" }

func lineOf(record api.SyncRunRecord) recordLine {
	return recordLine{record, string(record.Identifier)}
}

// steps are those of every run, in order; retrying and deleting only some have.
var steps = []string{"planning", "reading", "sending", "retrying", "deleting", "recording"}

func (s *site) run(r *console.Request) (any, error) {
	ctx, w, id := r.Context(), r.ID("workspace"), r.ID("run")
	at := map[string]int64{"sync_run_id": id}
	got, err := perform[one[api.SyncRun]](ctx, s, w, "fetchSyncRun", at, nil, nil)
	if err != nil {
		return nil, err
	}
	p := runPage{SyncRun: got.Data, Workspace: w, Page: 1, Status: r.Query("status")}
	y, err := perform[one[api.Sync]](ctx, s, w, "fetchSync", map[string]int64{"sync_id": p.SyncID}, nil, nil)
	if err != nil {
		return nil, err
	}
	p.Name = nameOf(y.Data.Label, y.Data.ID)
	end := p.UpdatedAt.Time
	if p.CompletedAt != nil {
		end = p.CompletedAt.Time
	}
	if took := end.Sub(p.CreatedAt.Time); took > time.Millisecond {
		p.Rate = float64(api.Value(p.RecordsProcessed)) / took.Seconds()
	}
	p.Steps = stepsOf(&p.SyncRun)
	if n, err := strconv.ParseInt(r.Query("page"), 10, 64); err == nil && n > 0 {
		p.Page = n
	}
	query := url.Values{"per_page": {fmt.Sprint(recordsPerPage)}, "page": {fmt.Sprint(p.Page)}}
	if p.Status != "" {
		query.Set("status", p.Status)
	}
	records, err := perform[list[api.SyncRunRecord]](ctx, s, w, "fetchSyncRunRecords", at, query, nil)
	if refused, ok := err.(*console.Problem); ok && refused.Code != http.StatusBadRequest {
		p.Gone = refused.Message
	} else if err != nil {
		return nil, err
	}
	for _, one := range records.Data {
		p.Records = append(p.Records, lineOf(one))
	}
	p.Total, p.Pages = records.Pagination.TotalRecords, records.Pagination.LastPage
	if p.Gone == "" {
		for _, status := range []string{"rejected", "invalid"} {
			if err := s.group(r, &p, status); err != nil {
				return nil, err
			}
		}
	}
	calls, err := get[entries[callEntry]](ctx, s, "/journal/calls", url.Values{"newest": {"true"}, "limit": {"20"}, "sync_run": {fmt.Sprint(id)}})
	if err != nil {
		return nil, err
	}
	p.Calls = exchanges(calls, r, (*callEntry).exchange, "The journal has no call of this run: it made none, or they are forgotten.")
	return p, nil
}

// group puts the first records with a status together by their messages.
func (s *site) group(r *console.Request, p *runPage, status string) error {
	for page := int64(1); page*100 <= recordsLookedAt; page++ {
		query := url.Values{"per_page": {"100"}, "page": {fmt.Sprint(page)}, "status": {status}}
		got, err := perform[list[api.SyncRunRecord]](r.Context(), s, p.Workspace, "fetchSyncRunRecords", map[string]int64{"sync_run_id": p.ID}, query, nil)
		if err != nil {
			return err
		}
		if page == 1 {
			p.Failed += got.Pagination.TotalRecords
		}
		for _, record := range got.Data {
			p.Looked++
			message := api.Value(record.StatusMessage)
			if message == "" {
				message = record.Status
			}
			at := -1
			for i := range p.Errors {
				if p.Errors[i].Message == message {
					at = i
				}
			}
			if at < 0 {
				at = len(p.Errors)
				p.Errors = append(p.Errors, errorGroup{Message: message})
			}
			p.Errors[at].Count++
			if len(p.Errors[at].Records) < identifiersEach {
				p.Errors[at].Records = append(p.Errors[at].Records, lineOf(record))
			}
		}
		if got.Pagination.NextPage == nil {
			return nil
		}
	}
	return nil
}

func stepsOf(run *api.SyncRun) (list []step) {
	now := len(steps)
	for i, name := range steps {
		if api.Value(run.CurrentStep) == name {
			now = i
		}
	}
	active := working(run.Status)
	if active && now == len(steps) {
		now = -1 // it waits for its turn
	}
	for i, name := range steps {
		list = append(list, step{name, i < now && (active || run.Status == api.RunCompleted), active && i == now})
	}
	return list
}

func (s *site) cancelRun(r *console.Request) (string, error) {
	w, id := r.ID("workspace"), r.ID("run")
	if _, err := s.Perform(r.Context(), w, "cancelSyncRun", map[string]int64{"sync_run_id": id}, nil, nil); err != nil {
		return "", err
	}
	r.Done("The run is cancelled.")
	return fmt.Sprintf("/workspaces/%d/runs/%d", w, id), nil
}

// findRun leads from the number of a run to its page, whose address has the workspace.
func (s *site) findRun(r *console.Request) {
	all, err := s.organizations(r.Context())
	for _, o := range all {
		for _, w := range o.Workspaces {
			if _, err := s.Perform(r.Context(), w.ID, "fetchSyncRun", map[string]int64{"sync_run_id": r.ID("run")}, nil, nil); err == nil {
				http.Redirect(r.W, r.HTTP, fmt.Sprintf("%s/workspaces/%d/runs/%d", r.Root, w.ID, r.ID("run")), http.StatusSeeOther)
				return
			}
		}
	}
	if err == nil {
		err = console.Refuse(http.StatusNotFound, "there is no run %s", r.Value("run"))
	}
	r.Fail(err)
}
