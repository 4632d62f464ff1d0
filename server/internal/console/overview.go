package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/controlapi"
)

// Bounds of the overview; the pages of workspaces have the rest.
const (
	mostOrganizations = 20
	mostSyncsShown    = 20
)

// organization is one with the syncs of its workspaces.
type organization struct {
	controlapi.Organization
	Workspaces []workspace `json:"workspaces"`
}

type workspace struct {
	controlapi.OrganizationWorkspace
	Syncs []syncLine `json:"-"`
	Total int64      `json:"-"` // of the syncs
}

// syncLine is a sync in a list, with its last run.
type syncLine struct {
	api.Sync
	Workspace int64
	Last      *api.SyncRun
	Next      time.Time
}

// Name is the label of a sync or, without one, its number.
func (l syncLine) Name() string { return nameOf(l.Label, l.ID) }

func nameOf(label *string, id int64) string {
	if label == nil || *label == "" {
		return fmt.Sprintf("Sync %d", id)
	}
	return *label
}

// Working reports whether a run is active.
func (l syncLine) Working() bool { return l.Last != nil && working(l.Last.Status) }

func working(status string) bool { return status == api.RunQueued || status == api.RunWorking }

// clockShown is GET /_control/clock.
type clockShown struct {
	Now    api.Time `json:"now"`
	Offset string   `json:"offset"`
	Frozen bool     `json:"frozen"`
	Ran    *struct {
		From     api.Time `json:"from"`
		To       api.Time `json:"to"`
		Count    int      `json:"count"`
		Ran      []string `json:"ran"`
		Panicked []string `json:"panicked"`
	} `json:"ran"`
}

// overview shows the resources, the active runs, and the clock.
func (s *site) overview(r *console.Request) (any, error) {
	ctx := r.Context()
	clock, err := get[clockShown](ctx, s, "/clock", nil)
	if err != nil {
		return nil, err
	}
	all, err := s.organizations(ctx)
	if err != nil {
		return nil, err
	}
	slices.Reverse(all) // the newest first: a test looks for its own
	hidden := max(0, len(all)-mostOrganizations)
	all = all[:len(all)-hidden]
	var active []syncLine
	for i := range all {
		for j := range all[i].Workspaces {
			w := &all[i].Workspaces[j]
			if w.Syncs, w.Total, err = s.syncs(ctx, w.ID, 1, mostSyncsShown); err != nil {
				return nil, err
			}
			for _, y := range w.Syncs {
				if y.Working() {
					active = append(active, y)
				}
			}
		}
	}
	return struct {
		Clock         clockShown
		Organizations []organization
		Hidden        int
		Active        []syncLine
	}{clock, all, hidden, active}, nil
}

func (s *site) organizations(ctx context.Context) ([]organization, error) {
	reply, err := get[struct {
		Organizations []organization `json:"organizations"`
	}](ctx, s, "/organizations", nil)
	return reply.Organizations, err
}

// syncs is one page of the syncs of a workspace, each with its last run.
func (s *site) syncs(ctx context.Context, workspaceID, page, most int64) ([]syncLine, int64, error) {
	query := url.Values{"page": {fmt.Sprint(page)}, "per_page": {fmt.Sprint(most)}}
	got, err := perform[list[api.Sync]](ctx, s, workspaceID, "listSyncs", nil, query, nil)
	if err != nil {
		return nil, 0, err
	}
	lines := make([]syncLine, len(got.Data))
	for i, y := range got.Data {
		lines[i] = syncLine{Sync: y, Workspace: workspaceID, Next: s.NextStart(&y.SyncConfig)}
		last, err := perform[list[api.SyncRun]](ctx, s, workspaceID, "listSyncRuns", map[string]int64{"sync_id": y.ID}, url.Values{"per_page": {"1"}}, nil)
		if err != nil {
			return nil, 0, err
		}
		if len(last.Data) > 0 {
			lines[i].Last = &last.Data[0]
		}
	}
	return lines, got.Pagination.TotalRecords, nil
}

// shownOnce is what a page shows right after it was made, and no page ever again.
type shownOnce struct {
	What   string
	Tokens []console.Fact
	Next   string
}

func (s *site) newOrganization(r *console.Request) (string, error) {
	body := map[string]any{"name": r.Form("name"), "email": r.Form("email")}
	if name := r.Form("workspace"); name != "" {
		body["workspaces"] = []string{name}
	}
	made, err := post[struct {
		ID          int64  `json:"organization_id"`
		Email       string `json:"email"`
		WorkspaceID int64  `json:"workspace_id"`
		PAT         string `json:"personal_access_token"`
		Key         string `json:"workspace_api_key"`
	}](r.Context(), s, "/organizations", body)
	if err != nil {
		return "", err
	}
	r.Show("once", shownOnce{
		What: fmt.Sprintf("Organization %d with workspace %d", made.ID, made.WorkspaceID), Next: fmt.Sprintf("/workspaces/%d", made.WorkspaceID),
		Tokens: []console.Fact{{Name: "Personal access token of " + made.Email, Value: made.PAT}, {Name: fmt.Sprintf("API key of workspace %d", made.WorkspaceID), Value: made.Key}},
	})
	return "", nil
}

func (s *site) newToken(r *console.Request) (string, error) {
	made, err := post[struct {
		Token string `json:"personal_access_token"`
	}](r.Context(), s, "/users/"+url.PathEscape(r.Value("user"))+"/token", nil)
	if err != nil {
		return "", err
	}
	r.Show("once", shownOnce{What: "A personal access token", Next: "/", Tokens: []console.Fact{{Name: "Personal access token of user " + r.Value("user"), Value: made.Token}}})
	return "", nil
}

func (s *site) newKey(r *console.Request) (string, error) {
	made, err := post[struct {
		Key string `json:"workspace_api_key"`
	}](r.Context(), s, "/workspaces/"+url.PathEscape(r.Value("workspace"))+"/key", nil)
	if err != nil {
		return "", err
	}
	r.Show("once", shownOnce{
		What: "An API key, which replaces the one before", Next: "/workspaces/" + r.Value("workspace"),
		Tokens: []console.Fact{{Name: "API key of workspace " + r.Value("workspace"), Value: made.Key}},
	})
	return "", nil
}

// moveClock advances, freezes, sets or settles.
func (s *site) moveClock(r *console.Request) (string, error) {
	var clock clockShown
	var err error
	next := r.Form("next")
	if next != "/clock" {
		next = "/"
	}
	switch r.Form("do") {
	case "advance":
		if clock, err = post[clockShown](r.Context(), s, "/clock", map[string]string{"advance": r.Form("by")}); err != nil {
			return "", err
		}
		ran := 0
		if clock.Ran != nil {
			ran = clock.Ran.Count
		}
		r.Done(fmt.Sprintf("The clock is %s further, and %s ran.", r.Form("by"), count(ran, "thing that was due", "things that were due")))
	case "freeze", "run":
		freeze := r.Form("do") == "freeze"
		if _, err = post[clockShown](r.Context(), s, "/clock", map[string]bool{"freeze": freeze}); err != nil {
			return "", err
		}
		if freeze {
			r.Done("The clock stands still.")
		} else {
			r.Done("The clock runs on.")
		}
	case "set":
		if _, err = post[clockShown](r.Context(), s, "/clock", map[string]string{"set": r.Form("to")}); err != nil {
			return "", err
		}
		r.Done("The clock is set.")
	case "settle":
		if _, err = post[clockShown](r.Context(), s, "/settle", nil); err != nil {
			return "", err
		}
		r.Done("Nothing runs any more that could end by itself, and nothing is due.")
	default:
		return "", console.Refuse(http.StatusBadRequest, "do: must be advance, freeze, run, set or settle")
	}
	return next, nil
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
