package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
)

// syncsPerPage is how many syncs the page of a workspace lists.
const syncsPerPage = 50

// workspacePage is what a workspace has.
type workspacePage struct {
	ID           int64
	Name         string
	Sources      []api.Source
	Destinations []api.Destination
	Syncs        []syncLine
	Total        int64 // of the syncs
	Page, Last   int64 // of their list
}

// Previous and Next are pages of the list of syncs; 0: there is none.
func (p workspacePage) Previous() int64 { return p.Page - 1 }
func (p workspacePage) Next() int64 {
	if p.Page < p.Last {
		return p.Page + 1
	}
	return 0
}

// ends are what syncs of a workspace can read from and write to: the first hundred of each.
func (s *site) ends(ctx context.Context, workspaceID int64) ([]api.Source, []api.Destination, error) {
	many := url.Values{"per_page": {"100"}}
	sources, err := perform[list[api.Source]](ctx, s, workspaceID, "listSources", nil, many, nil)
	if err != nil {
		return nil, nil, err
	}
	destinations, err := perform[list[api.Destination]](ctx, s, workspaceID, "listDestinations", nil, many, nil)
	if err != nil {
		return nil, nil, err
	}
	return sources.Data, destinations.Data, nil
}

func (s *site) workspace(r *console.Request) (any, error) {
	ctx, id := r.Context(), r.ID("workspace")
	own, err := perform[one[workspace]](ctx, s, id, "fetchOwnWorkspace", nil, nil, nil)
	if err != nil {
		return nil, err
	}
	p := workspacePage{ID: id, Name: own.Data.Name, Page: 1}
	if n, err := strconv.ParseInt(r.Query("page"), 10, 64); err == nil && n > 0 {
		p.Page = n
	}
	if p.Sources, p.Destinations, err = s.ends(ctx, id); err != nil {
		return nil, err
	}
	if p.Syncs, p.Total, err = s.syncs(ctx, id, p.Page, syncsPerPage); err != nil {
		return nil, err
	}
	p.Last = (p.Total + syncsPerPage - 1) / syncsPerPage
	return p, nil
}

// kind is a type of connection with its fields.
type kind struct {
	Name, Label string
	Fields      []api.ConfigField
}

// Required reports whether a field must be filled in.
func (kind) Required(f api.ConfigField) bool { return slices.Contains(f.Rules.Words, "required") }

// Secret reports whether the value of a field is never shown again.
func (kind) Secret(f api.ConfigField) bool {
	return f.IsPasswordTypeField || f.Type == "object" || strings.Contains(f.ID, "url")
}

// connectionPage is the form of a new source or destination.
type connectionPage struct {
	Workspace int64
	Source    bool
	Kinds     []kind
	Chosen    *kind
}

// fieldsOf reads configuration fields, whose rules the dialects write differently.
type fieldsOf struct {
	Fields []struct {
		api.ConfigField
		Rules json.RawMessage `json:"rules"`
	} `json:"fields"`
}

func (f fieldsOf) fields() []api.ConfigField {
	var list []api.ConfigField
	for _, one := range f.Fields {
		field := one.ConfigField
		var joined string
		if json.Unmarshal(one.Rules, &joined) == nil {
			field.Rules.Words = strings.Split(joined, "|")
		} else {
			_ = json.Unmarshal(one.Rules, &field.Rules.Words) // neither form: no rules
		}
		list = append(list, field)
	}
	return list
}

// kinds are the types that can be made.
func (s *site) kinds(ctx context.Context, workspaceID int64, operation string) ([]kind, error) {
	type shown struct {
		ServiceName     string   `json:"service_name"`
		Label           string   `json:"label"`
		CreatableViaAPI bool     `json:"creatable_via_api"`
		Fields          fieldsOf `json:"configuration_fields"`
	}
	var all []kind
	for page := int64(1); page > 0; {
		got, err := perform[list[shown]](ctx, s, workspaceID, operation, nil, url.Values{"per_page": {"100"}, "page": {fmt.Sprint(page)}, "order": {"asc"}}, nil)
		if err != nil {
			return nil, err
		}
		for _, k := range got.Data {
			if k.CreatableViaAPI {
				all = append(all, kind{k.ServiceName, k.Label, k.Fields.fields()})
			}
		}
		page = api.Value(got.Pagination.NextPage)
	}
	slices.SortFunc(all, func(a, b kind) int { return strings.Compare(strings.ToLower(a.Label), strings.ToLower(b.Label)) })
	return all, nil
}

func (s *site) connection(source bool) func(*console.Request) (any, error) {
	return func(r *console.Request) (any, error) {
		p := connectionPage{Workspace: r.ID("workspace"), Source: source}
		operation := "listConnectors"
		if source {
			operation = "listSourceTypes"
		}
		var err error
		if p.Kinds, err = s.kinds(r.Context(), p.Workspace, operation); err != nil {
			return nil, err
		}
		for i, k := range p.Kinds {
			if k.Name == r.Query("type") || k.Name == r.Value("type") {
				p.Chosen = &p.Kinds[i]
			}
		}
		return p, nil
	}
}

// newConnection makes a source or a destination from the form of its type.
func (s *site) newConnection(source bool) func(*console.Request) (string, error) {
	return func(r *console.Request) (string, error) {
		shown, err := s.connection(source)(r)
		if err != nil {
			return "", err
		}
		p := shown.(connectionPage)
		if p.Chosen == nil {
			return "", console.Refuse(http.StatusBadRequest, "type: choose one of the types")
		}
		credentials, err := credentialsOf(r, p.Chosen)
		if err != nil {
			return "", err
		}
		connection := map[string]any{"name": r.Form("name"), "type": p.Chosen.Name, "credentials": credentials}
		operation, body := "createDestination", map[string]any{"service_connection": connection}
		if source {
			operation, body = "createSource", map[string]any{"connection": connection}
			if engine := r.Form("sync_engine"); engine != "" {
				connection["sync_engine"] = engine
			}
		}
		made, err := perform[one[struct {
			ID       int64           `json:"id"`
			Tested   *bool           `json:"last_test_succeeded"`
			TestedBy json.RawMessage `json:"last_test_results"`
		}]](r.Context(), s, p.Workspace, operation, nil, nil, body)
		if err != nil {
			return "", err
		}
		what := "Destination"
		if source {
			what = "Source"
		}
		note := fmt.Sprintf("%s %d is made", what, made.Data.ID)
		if made.Data.Tested != nil && !*made.Data.Tested {
			note += ", and its test failed"
		}
		r.Done(note + ".")
		return fmt.Sprintf("/workspaces/%d", p.Workspace), nil
	}
}

// credentialsOf reads the fields of a type from the form.
func credentialsOf(r *console.Request, k *kind) (map[string]any, error) {
	credentials := map[string]any{}
	wrong := &console.Problem{Code: http.StatusBadRequest, Message: "the form has values that cannot be"}
	for _, f := range k.Fields {
		text := r.Form("c." + f.ID)
		if f.Type == "boolean" {
			if r.Checked("c." + f.ID) {
				credentials[f.ID] = true
			}
			continue
		}
		if text == "" {
			continue
		}
		var value any = text
		var err error
		switch f.Type {
		case "integer", "number":
			value = json.Number(text)
			_, err = strconv.ParseFloat(text, 64)
		case "object":
			err = json.Unmarshal([]byte(text), &value)
		}
		if err != nil {
			wrong.Fields = append(wrong.Fields, console.FieldProblem{Field: f.ID, Message: "must be of the type " + f.Type})
			continue
		}
		credentials[f.ID] = value
	}
	if len(wrong.Fields) > 0 {
		return nil, wrong
	}
	return credentials, nil
}
