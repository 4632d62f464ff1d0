package seed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// undo takes back the changes of a seed, and nothing else: others write
// meanwhile, in this process and in others, and their changes stay.
type undo struct {
	s     *Seeds
	since time.Time // when the seed began
	steps []step
	// organizations that are new
	organizations []int64
	declared      []declared // types, the latest first
}

// step takes back one thing: its row, and then its data outside the store.
type step struct {
	row  func(tx *store.Tx) error
	left organizations.Outside
}

// made notes what takes back the latest thing. A new organization goes as a whole, with
// all that is in it.
func (p *planter) made(row func(tx *store.Tx) error, left organizations.Outside) {
	if !p.whole {
		p.undo.steps = append(p.undo.steps, step{row, left})
	}
}

// run takes everything back, the latest first, with a separate context: the
// caller's may be why the seed has failed, by cause. Things in use by now stay,
// and are reported with it.
func (u *undo) run(cause error) error {
	var failures []error
	for _, step := range slices.Backward(u.steps) {
		err := u.s.Shared.Store.Update(context.Background(), step.row)
		if err == nil || errors.Is(err, store.ErrNotFound) { // another call was faster
			err = u.s.Organizations.Drop(step.left)
		}
		failures = append(failures, err)
	}
	for _, id := range u.organizations {
		failures = append(failures, u.s.Organizations.Delete(context.Background(), id))
	}
	for _, d := range u.declared {
		err := u.s.Connectors.Undeclare(context.Background(), d.name, d.before)
		if !errors.Is(err, store.ErrNotFound) { // another call was faster
			failures = append(failures, err)
		}
	}
	err := errors.Join(failures...)
	if err == nil {
		return cause
	}
	told := *problem.Of(cause)
	told.Message += fmt.Sprintf("; of what the seed had made before, this stays: %v", err)
	return &told
}

// membershipsOf are those of a user in some workspaces, before an invitation changes
// them; without an id where the user is no member. A stranger has none, and gets an
// e-mail instead.
func (p *planter) membershipsOf(email string, workspaces map[int64]string) (before []*store.Membership, err error) {
	err = p.s.Shared.Store.View(p.ctx, func(tx *store.Tx) error {
		u, err := tx.UserByEmail(p.organizationID, strings.TrimSpace(email))
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		for id := range workspaces {
			m, err := tx.Membership(id, u.ID)
			if errors.Is(err, store.ErrNotFound) {
				m, err = &store.Membership{WorkspaceID: id, UserID: u.ID}, nil
			}
			if err != nil {
				return err
			}
			before = append(before, m)
		}
		return nil
	})
	return before, err
}

// renotify restores a workspace's recipients, unless they were changed since.
func (p *planter) renotify(tx *store.Tx, before *store.Workspace, seeded []string) error {
	w, err := store.Workspaces.Read(tx, p.organizationID, before.ID)
	if err != nil || !slices.Equal(w.NotificationEmails, seeded) {
		return err
	}
	w.NotificationEmails = before.NotificationEmails
	return store.Workspaces.Save(tx, w)
}

// uninvite takes back what an invitation has made besides itself: memberships, or
// the e-mail.
func (p *planter) uninvite(tx *store.Tx, email string, roles map[int64]string, before []*store.Membership) error {
	for _, m := range before {
		now, err := tx.Membership(m.WorkspaceID, m.UserID)
		switch {
		case err != nil:
		case now.Role != roles[m.WorkspaceID]: // it was changed since
		case m.ID == 0:
			err = store.Memberships.Delete(tx, m.WorkspaceID, now.ID)
		case m.Role != now.Role:
			now.Role = m.Role
			err = store.Memberships.Save(tx, now)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	sent, err := store.Mails.All(tx, p.organizationID)
	for _, m := range sent {
		if err == nil && m.Kind == organizations.InvitationMail && m.To[0] == strings.TrimSpace(email) && !m.CreatedAt.Before(p.undo.since) {
			err = store.Mails.Delete(tx, p.organizationID, m.ID)
		}
	}
	return err
}
