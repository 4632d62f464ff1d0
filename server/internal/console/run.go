package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
)

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

// Percent is the share of records with a result; -1: not known.
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

// HasKey reports whether the record can be requested.
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
