package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// formField is one entry of a form. Kind is the type of its input, or select,
// textarea, note.
type formField struct {
	Name, Label, Kind string
	Value             string
	Placeholder, Hint string
	Optional          bool
	Options           []formOption
	Problem           string
}

type formOption struct{ Value, Label string }

// credentialsName begins the names of the inputs of credentials.
const credentialsName = "credentials."

// credentialField is the input of one credential. Empty inputs of an existing connection keep
// their values, so nothing is required there, and nothing secret shown.
func credentialField(f api.ConfigField, edit bool) formField {
	required := slices.Contains(f.Rules.Words, "required")
	field := formField{
		Name: credentialsName + f.ID, Label: f.Label, Kind: "text", Placeholder: f.Placeholder, Hint: f.Hint, Optional: edit || !required,
	}
	switch {
	case f.IsPasswordTypeField:
		field.Kind = "password"
	case len(f.PossibleValues) > 0:
		field.Kind, field.Options = "select", []formOption{{"", "as it is by default"}}
		if edit {
			field.Options[0].Label = "as it is"
		}
		for _, value := range f.PossibleValues {
			field.Options = append(field.Options, formOption{value, value})
		}
	case f.Type == "boolean":
		field.Kind, field.Options = "select", []formOption{{"", "as it is"}, {"true", "yes"}, {"false", "no"}}
		if !edit {
			field.Options = field.Options[1:]
			field.Value = "false"
		}
	case f.Type == "object", f.Type == "array", f.InputType == "textarea":
		field.Kind = "textarea"
	}
	return field
}

// credentialsOf are the credentials of a form, as the API takes them. Their rules
// are held by the API.
func credentialsOf(fields []api.ConfigField, form url.Values) (map[string]any, error) {
	given := map[string]any{}
	var problems []api.Problem
	for _, f := range fields {
		text := strings.ReplaceAll(form.Get(credentialsName+f.ID), "\r\n", "\n") // browsers send these
		if text == "" {
			continue
		}
		switch f.Type {
		case "integer":
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				given[f.ID] = n
				continue
			}
		case "boolean":
			given[f.ID] = text == "true"
			continue
		case "object", "array":
			if !json.Valid([]byte(text)) {
				problems = append(problems, api.Problem{Field: credentialsName + f.ID, Message: "must be JSON"})
			}
			given[f.ID] = json.RawMessage(text)
			continue
		}
		given[f.ID] = text
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	return given, nil
}

// nameField is the name of a connection.
func nameField(value string, edit bool) formField {
	return formField{Name: "name", Label: "Name", Kind: "text", Value: value, Optional: edit}
}

// connectionForm is the page of a connection, new or there already.
func connectionForm(title, lead, name string, fields []api.ConfigField, edit bool) linkPage {
	page := linkPage{Title: title, Lead: lead, Allow: "Allow", Fields: []formField{nameField(name, edit)}}
	for _, f := range fields {
		page.Fields = append(page.Fields, credentialField(f, edit))
	}
	return page
}

// connectorOf describes a type of destination.
func (h *Handlers) connectorOf(typ string) (api.Connector, error) {
	for _, t := range h.Gate.Types() {
		if t.ServiceName == typ {
			return t, nil
		}
	}
	return api.Connector{}, store.ErrNotFound
}

// linkForm is the page of a link as things are now.
func (h *Handlers) linkForm(ctx context.Context, l *openLink) (page linkPage, err error) {
	switch l.Kind {
	case linkSource:
		described := h.Sources.Described(l.Type)
		return connectionForm("Connect "+described.Label, "A source is created in the workspace "+l.who.Workspace.Name+", which reads what you allow.",
			described.Label, described.ConfigurationFields.Fields, false), nil
	case linkDestination, linkAuthorize:
		connector, err := h.connectorOf(l.Type)
		return connectionForm("Connect "+connector.Label, "A destination is created in the workspace "+l.who.Workspace.Name+", into which records are written.",
			connector.Label, connector.ConfigurationFields.Fields, false), err
	}
	page, err = store.Read(ctx, h.Shared.Store, func(tx *store.Tx) (linkPage, error) { return h.storedForm(tx, l) })
	return page, err
}

// storedForm is the page of a link to a stored object.
func (h *Handlers) storedForm(tx *store.Tx, l *openLink) (linkPage, error) {
	const keeps = "What you leave empty stays as it is."
	switch l.Kind {
	case linkSourceEdit:
		src, err := store.Sources.Read(tx, l.WorkspaceID, *l.TargetID)
		if err != nil {
			return linkPage{}, err
		}
		described := h.Sources.Described(src.Type)
		return connectionForm("Change "+src.Name, keeps, src.Name, described.ConfigurationFields.Fields, true), nil
	case linkDestinationEdit:
		d, err := store.Destinations.Read(tx, l.WorkspaceID, *l.TargetID)
		if err != nil {
			return linkPage{}, err
		}
		connector, err := h.connectorOf(d.Type)
		return connectionForm("Change "+d.Name, keeps, d.Name, connector.ConfigurationFields.Fields, true), err
	case linkSyncEdit:
		y, err := store.Syncs.Read(tx, l.WorkspaceID, *l.TargetID)
		if err != nil {
			return linkPage{}, err
		}
		return syncForm(y), nil
	case linkSyncs:
		return syncsForm(tx, l)
	}
	return segmentsForm(tx, l)
}

// syncName is how a person knows a sync.
func syncName(y *store.Sync) string {
	if y.Config.Label != nil && *y.Config.Label != "" {
		return *y.Config.Label
	}
	return fmt.Sprintf("Sync %d", y.ID)
}

func checkbox(name, label string, on bool) formField {
	f := formField{Name: name, Label: label, Kind: "checkbox"}
	if on {
		f.Value = "true"
	}
	return f
}

// syncForm is the page of one sync.
func syncForm(y *store.Sync) linkPage {
	label := ""
	if y.Config.Label != nil {
		label = *y.Config.Label
	}
	return linkPage{Title: "Change " + syncName(y), Allow: "Allow", Fields: []formField{
		{Name: "label", Label: "Label", Kind: "text", Value: label, Optional: true},
		checkbox("paused", "Paused: nothing starts a run", y.Config.Paused), checkbox("run", "Run it now", false),
	}}
}

// Actions of a person on a sync of a list.
const (
	syncPause  = "pause"
	syncResume = "resume"
	syncRun    = "run"
)

// syncsForm is the page of the syncs of a workspace.
func syncsForm(tx *store.Tx, l *openLink) (linkPage, error) {
	page := linkPage{Title: "Syncs of " + l.who.Workspace.Name, Allow: "Allow"}
	all, _, err := store.Syncs.List(tx, l.WorkspaceID, store.Page{Ascending: true})
	for _, y := range all {
		change := formOption{syncPause, "pause"}
		if y.Config.Paused {
			change = formOption{syncResume, "resume"}
		}
		page.Fields = append(page.Fields, formField{
			Name: fmt.Sprintf("sync.%d", y.ID), Label: syncName(y), Kind: "select", Hint: "Status: " + y.Status, Optional: true,
			Options: []formOption{{"", "leave as it is"}, change, {syncRun, "run now"}},
		})
	}
	if len(all) == 0 {
		page.Lead = "There are no syncs in this workspace."
	}
	return page, err
}

// segmentsForm is the page of the segments of a workspace.
func segmentsForm(tx *store.Tx, l *openLink) (linkPage, error) {
	page := linkPage{Title: "Segments of " + l.who.Workspace.Name, Allow: "Allow"}
	all, _, err := store.Datasets.List(tx, l.WorkspaceID, store.Page{Ascending: true})
	if err != nil {
		return page, err
	}
	choice := formField{Name: "dataset_id", Label: "Dataset of a new segment", Kind: "select", Optional: true, Options: []formOption{{"", "no new segment"}}}
	for _, d := range all {
		choice.Options = append(choice.Options, formOption{fmt.Sprint(d.ID), d.Name})
		segments, err := tx.SegmentsOfDataset(d.ID)
		if err != nil {
			return page, err
		}
		for _, g := range segments {
			page.Fields = append(page.Fields, checkbox(fmt.Sprintf("delete.%d.%d", g.SourceID, g.ID), "Delete "+g.Name+" of "+d.Name+": "+g.Query, false))
		}
	}
	page.Fields = append(page.Fields, choice, formField{Name: "name", Label: "Name", Kind: "text", Optional: true},
		formField{Name: "query", Label: "Condition", Kind: "text", Placeholder: "age > 17", Hint: "In SQL, over the columns of the dataset.", Optional: true})
	return page, nil
}

// refused shows the errors next to the inputs, with the given values except
// secrets.
func (p *linkPage) refused(f *problem.Failure, form url.Values) {
	told := map[string]bool{}
	for i := range p.Fields {
		field := &p.Fields[i]
		if field.Kind != "password" && form.Has(field.Name) {
			field.Value = form.Get(field.Name)
		}
		for _, problem := range f.Problems {
			name := strings.TrimPrefix(strings.TrimPrefix(problem.Field, "service_"), "connection.")
			if name == field.Name {
				field.Problem, told[problem.Field] = problem.Message, true
			}
		}
	}
	for _, problem := range f.Problems {
		if !told[problem.Field] {
			p.Problems = append(p.Problems, problem.String())
		}
	}
	if len(f.Problems) == 0 {
		p.Problems = []string{f.Message}
	}
}
