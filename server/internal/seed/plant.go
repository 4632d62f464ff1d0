package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// planter makes one organization of a seed.
type planter struct {
	s              *Seeds
	ctx            context.Context
	file, place    string
	whole          bool // the organization is new, and goes with all that is in it
	own            bool // it is one of who runs the service
	undo           *undo
	organizationID int64
	admin          *store.User
	workspaces     map[string]*store.Workspace
}

// at adds the entry to an error.
func (p *planter) at(place, name string, err error) error {
	if err == nil {
		return nil
	}
	told := *problem.Of(err)
	where := p.place + place
	if name != "" {
		where += fmt.Sprintf(" (%s)", foreign.Clip(name, 60))
	}
	if p.own { // on a command line the message is all that is shown
		told.Message = told.Whole()
	}
	told.Message = fmt.Sprintf("%s: %s: %s", p.file, where, told.Message)
	told.Problems = slices.Clone(told.Problems)
	for i := range told.Problems {
		told.Problems[i].Field = strings.TrimSuffix(p.place+place+"."+told.Problems[i].Field, ".")
	}
	return &told
}

// drive runs an operation of the API as one of its users (Parts.Perform).
func (p *planter) drive(who call.Principal, id string, path map[string]int64, body any) (json.RawMessage, error) {
	return p.s.Perform(p.ctx, who, id, path, nil, body)
}

// create drives an operation that makes something and gives its id.
func (p *planter) create(who call.Principal, id string, path map[string]int64, body any) (int64, json.RawMessage, error) {
	// The id is in data; a new sync is returned in the published shape.
	text, err := p.drive(who, id, path, body)
	if err != nil {
		return 0, nil, err
	}
	var made struct {
		Data struct {
			ID     int64 `json:"id"`
			SyncID int64 `json:"sync_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &made); err != nil {
		return 0, nil, fmt.Errorf("read reply of %s: %w", id, err)
	}
	return max(made.Data.ID, made.Data.SyncID), text, nil
}

// organization makes everything in the order in which things refer to one
// another: workspaces, users, contents of the workspaces, invitations.
func (p *planter) organization(wanted organizationEntry) (*controlapi.SeededOrganization, error) {
	made := &controlapi.SeededOrganization{Users: map[string]controlapi.SeededUser{}, Workspaces: []controlapi.SeededWorkspace{}, Invitations: map[string]int64{}}
	// The caller undoes everything that exists after this.
	if err := p.begin(wanted, made); err != nil {
		return nil, p.at("", wanted.Name, err)
	}
	for i, w := range wanted.Workspaces {
		if err := p.prepareWorkspace(w); err != nil {
			return nil, p.at(fmt.Sprintf(".workspaces[%d]", i), w.Name, err)
		}
	}
	// Users before the contents of the workspaces, since nothing there
	// refers to them, and after the workspaces, of which they are members.
	for i, u := range wanted.Users {
		seeded, err := p.user(u)
		if err != nil {
			return nil, p.at(fmt.Sprintf(".users[%d]", i), u.Email, err)
		}
		made.Users[u.Email] = seeded
	}
	for i, w := range wanted.Workspaces {
		seeded, err := p.fillWorkspace(fmt.Sprintf(".workspaces[%d]", i), w)
		if err != nil {
			return nil, err // has its place already
		}
		made.Workspaces = append(made.Workspaces, *seeded)
	}
	for i, invited := range wanted.Invitations {
		id, err := p.invite(invited)
		if err != nil {
			return nil, p.at(fmt.Sprintf(".invitations[%d]", i), invited.Email, err)
		}
		made.Invitations[invited.Email] = id
	}
	return made, nil
}

// begin makes the organization, or takes the first one.
func (p *planter) begin(wanted organizationEntry, made *controlapi.SeededOrganization) error {
	if wanted.First {
		// Refused, since both would be ignored.
		if wanted.Name != "" || wanted.Email != "" {
			return problem.InvalidField("first", "the first organization exists: it has a name and an admin already")
		}
		return p.takeFirst(made)
	}
	// The admin is made with it, and owns the workspaces.
	wish := organizations.Wish{Name: wanted.Name, Email: wanted.Email}
	for _, w := range wanted.Workspaces {
		wish.Workspaces = append(wish.Workspaces, w.Name)
	}
	if err := wish.Check(); err != nil {
		return err
	}
	wish.Own = p.own
	tokens, err := p.s.Organizations.Make(p.ctx, wish)
	if err != nil {
		return err
	}
	p.organizationID = tokens.OrganizationID
	p.undo.organizations = append(p.undo.organizations, tokens.OrganizationID)
	made.ID, made.Name, made.UserID, made.Email = tokens.OrganizationID, wish.Name, tokens.UserID, tokens.Email
	made.PersonalAccessToken = tokens.PersonalAccessToken
	return p.look(tokens.UserID)
}

// takeFirst finds the organization of the first start; a client may have
// deleted it.
func (p *planter) takeFirst(made *controlapi.SeededOrganization) error {
	err := p.s.Shared.Store.View(p.ctx, func(tx *store.Tx) error {
		id, err := organizations.First(tx)
		if err != nil {
			return err
		}
		if id == 0 {
			return problem.Refuse(http.StatusNotFound, "the first organization was deleted")
		}
		o, err := tx.Organization(id)
		if err != nil {
			return err
		}
		setting, err := tx.Setting(organizations.SettingFirst)
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(setting, &made.UserID); err != nil {
			return fmt.Errorf("read setting %s: %w", organizations.SettingFirst, err)
		}
		p.organizationID, made.ID, made.Name = o.ID, o.ID, o.Name
		return nil
	})
	if err != nil {
		return err
	}
	if err := p.look(made.UserID); err != nil {
		return err
	}
	made.Email = p.admin.Email
	return nil
}

// look reads the admin and the workspaces.
func (p *planter) look(adminID int64) error {
	p.workspaces = map[string]*store.Workspace{}
	return p.s.Shared.Store.View(p.ctx, func(tx *store.Tx) (err error) {
		if p.admin, err = store.Users.Read(tx, p.organizationID, adminID); err != nil {
			return err
		}
		rows, err := store.Workspaces.All(tx, p.organizationID)
		for _, w := range rows {
			p.workspaces[w.Name] = w
		}
		return err
	})
}

// asAdmin and inside are who makes things.
func (p *planter) asAdmin() call.Principal {
	return call.Principal{User: p.admin, OrganizationID: p.organizationID}
}

// inside is a caller with the key of a workspace.
func (p *planter) inside(w *store.Workspace) call.Principal {
	return call.Principal{Workspace: w, OrganizationID: p.organizationID, WorkspaceID: w.ID}
}

// prepareWorkspace makes a workspace unless it is there, and sets its addresses.
func (p *planter) prepareWorkspace(wanted workspaceEntry) error {
	if problems := organizations.CheckName("name", wanted.Name); len(problems) > 0 {
		return problem.Invalid(problems)
	}
	body := map[string]any{"name": wanted.Name}
	if wanted.NotificationEmails != nil {
		body["notification_emails"] = wanted.NotificationEmails
	}
	if known := p.workspaces[wanted.Name]; known != nil {
		if wanted.NotificationEmails == nil {
			return nil
		}
		_, err := p.drive(p.asAdmin(), "updateWorkspace", map[string]int64{"workspace_id": known.ID}, body)
		if err == nil {
			p.made(func(tx *store.Tx) error { return p.renotify(tx, known, wanted.NotificationEmails) }, organizations.Outside{})
		}
		return err
	}
	id, _, err := p.create(p.asAdmin(), "createWorkspace", nil, body)
	if err != nil {
		return err
	}
	p.made(func(tx *store.Tx) error { return store.Workspaces.Delete(tx, p.organizationID, id) }, organizations.Outside{})
	return p.look(p.admin.ID)
}

// key reads the API key of a workspace, or makes one where there is none.
func (p *planter) key(w *store.Workspace) (key string, err error) {
	added := false
	err = p.s.Shared.Store.Update(p.ctx, func(tx *store.Tx) error {
		// A workspace that the seed has found may never have had a key.
		if key, err = tx.WorkspaceKey(w.ID); errors.Is(err, store.ErrNotFound) {
			key, err = tx.NewWorkspaceKey(w.ID)
			added = err == nil
		}
		return err
	})
	if err == nil && added {
		p.made(func(tx *store.Tx) error { return tx.DeleteWorkspaceKey(w.ID) }, organizations.Outside{})
	}
	return key, err
}
