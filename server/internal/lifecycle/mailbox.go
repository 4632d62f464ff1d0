package lifecycle

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/store"
)

// controlMailbox pages after filtering: a mailbox is small, and its total counts
// the matching mails.
func (l *Lifecycle) controlMailbox(c *call.Control) (any, error) {
	query, err := c.Query("organization", "workspace", "to", "kind", "limit")
	if err != nil {
		return nil, err
	}
	limit, err := call.Integer(query, "limit", 1000, 1, 10_000)
	if err != nil {
		return nil, err
	}
	workspace, err := call.Integer(query, "workspace", 0, 1, 1<<62)
	if err != nil {
		return nil, err
	}
	mails, err := l.mails(c.R.Context(), query, workspace)
	if err != nil {
		return nil, err
	}
	return map[string]any{"mails": mails[:min(int64(len(mails)), limit)], "total": len(mails)}, nil
}

// mails reads the chosen e-mails, newest first.
func (l *Lifecycle) mails(ctx context.Context, query url.Values, workspace int64) ([]controlapi.Mail, error) {
	list := []controlapi.Mail{}
	err := l.Shared.Store.View(ctx, func(tx *store.Tx) error {
		return eachChosen(tx, query, func(id int64) error {
			rows, err := store.Mails.All(tx, id)
			if err != nil {
				return err
			}
			for _, m := range rows {
				if workspace != 0 && (m.WorkspaceID == nil || *m.WorkspaceID != workspace) ||
					!journal.Fits(query, "kind", m.Kind) || !addressed(m, query.Get("to")) {
					continue
				}
				list = append(list, controlapi.Mail{
					ID: m.ID, At: api.Time{Time: m.At}, OrganizationID: m.OrganizationID, WorkspaceID: m.WorkspaceID,
					Kind: m.Kind, From: m.From, To: m.To, Subject: m.Subject, Text: m.Text,
					Delivery: m.Delivery, Attempts: m.Attempts, NextAttempt: api.At(m.NextAttempt), Error: m.Error,
				})
			}
			return nil
		})
	})
	// Ids are given in the order of sending, across organizations.
	slices.SortFunc(list, func(a, b controlapi.Mail) int { return int(b.ID - a.ID) })
	return list, err
}

// addressed reports whether an e-mail goes to an address; "" is every address. Case
// does not matter, as mail servers have it.
func addressed(m *store.Mail, address string) bool {
	return address == "" || slices.ContainsFunc(m.To, func(to string) bool { return strings.EqualFold(to, address) })
}

// eachChosen is for the organization of ?organization=, which must exist, or for all.
func eachChosen(tx *store.Tx, query url.Values, do func(id int64) error) error {
	id, err := call.Integer(query, "organization", 0, 1, 1<<62)
	if err != nil {
		return err
	}
	if id != 0 {
		if _, err := tx.Organization(id); err != nil {
			return err
		}
		return do(id)
	}
	rows, err := store.Every(tx.Organizations)
	for i := 0; err == nil && i < len(rows); i++ {
		err = do(rows[i].ID)
	}
	return err
}

// controlEmptyMailbox empties that of one organization, or all in one
// transaction.
func (l *Lifecycle) controlEmptyMailbox(c *call.Control) (any, error) {
	query, err := c.Query("organization")
	if err != nil {
		return nil, err
	}
	err = l.Shared.Store.Update(c.R.Context(), func(tx *store.Tx) error { return eachChosen(tx, query, tx.DeleteMails) })
	if err != nil {
		return nil, err
	}
	return call.Done, nil
}
