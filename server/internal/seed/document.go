package seed

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/yamldoc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
)

// Document is a seed: what a service is filled with, in YAML. Things refer
// to one another by name. Everything goes through the API's own handlers, so
// that a seed can make nothing that a client could not.
type Document struct {
	Connectors    []*connectors.Declaration `yaml:"connectors"`
	Organizations []organizationEntry       `yaml:"organizations"`
}

// organizationEntry is a new organization, or with First the one that the first
// start made, whose tokens the user has already.
type organizationEntry struct {
	Name        string            `yaml:"name"`
	First       bool              `yaml:"first"`
	Email       string            `yaml:"email"` // of the admin of a new one
	Users       []userEntry       `yaml:"users"`
	Workspaces  []workspaceEntry  `yaml:"workspaces"`
	Invitations []invitationEntry `yaml:"invitations"`
}

// userEntry is a user with memberships; the answer has a token for it.
type userEntry struct {
	Email         string            `yaml:"email"`
	Role          string            `yaml:"role"`                  // admin, member (default)
	Notifications *bool             `yaml:"notifications_enabled"` // true by default
	Workspaces    map[string]string `yaml:"workspaces"`            // name to role
}

// workspaceEntry is a new workspace, or one that the organization has already
// under that name.
type workspaceEntry struct {
	Name               string                     `yaml:"name"`
	NotificationEmails []string                   `yaml:"notification_emails"`
	Sources            []sourceEntry              `yaml:"sources"`
	Datasets           []datasetEntry             `yaml:"datasets"`
	Destinations       []destinationEntry         `yaml:"destinations"`
	Syncs              []map[string]any           `yaml:"syncs"`
	Webhooks           []map[string]any           `yaml:"webhooks"`
	Invitations        []workspaceInvitationEntry `yaml:"invitations"`
}

// sourceEntry is the connection of POST /sources, with what is read from it.
type sourceEntry struct {
	Name        string         `yaml:"name"`
	Type        string         `yaml:"type"`
	SyncEngine  string         `yaml:"sync_engine"`
	Credentials map[string]any `yaml:"credentials"`
	Execute     string         `yaml:"execute"` // SQL on an emulated warehouse
	Models      []modelEntry   `yaml:"models"`
	Topics      []topicEntry   `yaml:"topics"`
}

// modelEntry is a query of the source that it stands below (spec 2.11).
type modelEntry struct {
	Name        string `yaml:"name"`
	Query       string `yaml:"query"`
	Description string `yaml:"description"`
}

// topicEntry is a topic with the messages that have come so far (spec 2.12).
type topicEntry struct {
	Name          string           `yaml:"name"`
	Description   string           `yaml:"description"`
	SampleMessage map[string]any   `yaml:"sample_message"`
	Messages      []map[string]any `yaml:"messages"`
}

// datasetEntry is a query of a source of the workspace.
type datasetEntry struct {
	Name        string `yaml:"name"`
	Source      string `yaml:"source"` // its name
	Query       string `yaml:"query"`
	Description string `yaml:"description"`
}

// destinationEntry is the connection of POST /destinations.
type destinationEntry struct {
	Name        string         `yaml:"name"`
	Type        string         `yaml:"type"`
	Credentials map[string]any `yaml:"credentials"`
}

// invitationEntry is an invitation to the organization; it stays open.
type invitationEntry struct {
	Email      string            `yaml:"email"`
	Role       string            `yaml:"role"`
	Workspaces map[string]string `yaml:"workspaces"` // name to role
}

// workspaceInvitationEntry is one invitation for each address.
type workspaceInvitationEntry struct {
	Emails []string `yaml:"emails"`
	Role   string   `yaml:"role"`
}

// Seed is what who runs the service does at a start. The organizations of the seed
// are none of others (see AllowFiles of the configuration).
func (s *Seeds) Seed(ctx context.Context, file string, src []byte) (*controlapi.Seeded, error) {
	return s.seed(ctx, file, src, true)
}

// seed makes everything in a seed or, on an error, nothing. file is for
// messages only. The error names the place: file, line and column where the
// document cannot be read, the entry where the API refuses it.
func (s *Seeds) seed(ctx context.Context, file string, src []byte, own bool) (*controlapi.Seeded, error) {
	document, err := readSeed(file, src)
	if err != nil {
		return nil, err
	}
	hold := s.Lock.Enter(ctx)
	defer hold.Leave()
	seeded, err := s.sow(hold.Ctx, file, document, own)
	return seeded, hold.Failure(err)
}

// Check reports whether a seed can be read at all, before there is a service to
// put it into. Only Seed checks the entries against the API.
func Check(file string, src []byte) error {
	_, err := readSeed(file, src)
	return err
}

// readSeed decodes a seed. One without organizations is refused: it is a slip,
// and would do nothing.
func readSeed(file string, src []byte) (document Document, err error) {
	if err := yamldoc.Decode(file, src, &document); err != nil {
		return document, connectors.Unreadable(err)
	}
	if len(document.Organizations)+len(document.Connectors) == 0 {
		return document, problem.Refuse(http.StatusBadRequest, "%s: a seed needs organizations or connectors", file)
	}
	for i, d := range document.Connectors {
		if d == nil {
			d = &connectors.Declaration{}
		}
		problems := d.Check()
		for j := range problems {
			problems[j].Field = fmt.Sprintf("connectors[%d].%s", i, problems[j].Field)
		}
		if len(problems) > 0 {
			told := problem.Invalid(problems)
			told.Message = file + ": " + told.Message
			return document, told
		}
	}
	return document, nil
}

// sow makes the organizations one after the other; an error undoes all.
func (s *Seeds) sow(ctx context.Context, file string, document Document, own bool) (*controlapi.Seeded, error) {
	seeded, undo := &controlapi.Seeded{}, &undo{s: s, since: s.Clock.Now().Truncate(time.Millisecond)}
	var err error
	if seeded.Connectors, err = s.declareAll(ctx, file, document.Connectors, undo); err != nil {
		return nil, undo.run(err)
	}
	for i, wanted := range document.Organizations {
		p := &planter{s: s, ctx: ctx, file: file, place: fmt.Sprintf("organizations[%d]", i), whole: !wanted.First, own: own, undo: undo}
		made, err := p.organization(wanted)
		if err != nil {
			return nil, undo.run(err)
		}
		seeded.Organizations = append(seeded.Organizations, *made)
	}
	return seeded, nil
}

// Post seeds from the body; "seed" is the file name in messages.
func (s *Seeds) Post(c *call.Control) (any, error) {
	text, err := c.Text(call.MaxControlBody)
	if err != nil {
		return nil, err
	}
	seeded, err := s.seed(c.R.Context(), "seed", text, false)
	if err != nil {
		return nil, err
	}
	return call.Status(http.StatusCreated, seeded), nil
}

// named refuses names that cannot be referred to.
func named[V any](taken map[string]V, name string) error {
	if problems := organizations.CheckName("name", name); len(problems) > 0 {
		return problem.Invalid(problems)
	}
	if _, twice := taken[name]; twice {
		return problem.Invalid([]api.Problem{{Field: "name", Message: "stands twice; names must differ, since things refer to them"}})
	}
	return nil
}

// declareAll makes the types of a seed; undo takes them back.
func (s *Seeds) declareAll(ctx context.Context, file string, list []*connectors.Declaration, undo *undo) (names []string, err error) {
	for i, d := range list {
		before, changed, err := s.Connectors.Declare(ctx, d)
		if err != nil {
			told := *problem.Of(err)
			told.Message = fmt.Sprintf("%s: connectors[%d] (%s): %s", file, i, foreign.Clip(d.Name(), 60), told.Message)
			return nil, &told
		}
		if changed {
			undo.declared = slices.Insert(undo.declared, 0, declared{d.Name(), before})
		}
		names = append(names, d.Name())
	}
	return names, nil
}

// declared is a type that a seed has declared, with the previous declaration.
type declared struct{ name, before string }
