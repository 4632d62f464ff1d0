package store

import (
	"fmt"
	"time"
)

// Mail is a message that the service sent; WorkspaceID is nil for those of the
// organization. Kind is the caller's word.
type Mail struct {
	Row
	OrganizationID int64
	WorkspaceID    *int64
	To             []string
	From           string
	Subject        string
	Text           string
	Kind           string
	At             time.Time // zero at creation: now
}

var mails = define(table[Mail]{
	name: "mails", kind: "mail", scope: "organization_id", counted: true,
	columns: []string{"organization_id", "workspace_id", "recipients", "sender", "subject", "body", "kind", "at"},
	row:     func(m *Mail) *Row { return &m.Row },
	values: func(m *Mail) []any {
		return []any{m.OrganizationID, m.WorkspaceID, doc{m.To}, m.From, m.Subject, m.Text, m.Kind, m.At}
	},
	load: func(s *scan, m *Mail) {
		m.OrganizationID, m.WorkspaceID = s.number(), s.optional()
		s.doc(&m.To)
		m.From, m.Subject, m.Text, m.Kind, m.At = s.text(), s.text(), s.text(), s.text(), s.time()
	},
})

// CreateMail keeps a message.
func (tx *Tx) CreateMail(m *Mail) error {
	if m.At.IsZero() {
		m.At = tx.now
	}
	return mails.create(tx, m)
}

// Mail reads one message of an organization.
func (tx *Tx) Mail(organizationID, id int64) (*Mail, error) {
	return mails.one(tx, "id = ? AND organization_id = ?", id, organizationID)
}

// Mails lists the messages of an organization.
func (tx *Tx) Mails(organizationID int64, p Page) ([]*Mail, int64, error) {
	return mails.list(tx, p, organizationID)
}

// DeleteMails empties the mailbox of an organization.
func (tx *Tx) DeleteMails(organizationID int64) error {
	if _, err := tx.exec("DELETE FROM mails WHERE organization_id = ?", organizationID); err != nil {
		return fmt.Errorf("delete mails: %w", err)
	}
	return nil
}
