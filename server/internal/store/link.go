package store

import (
	"fmt"
	"time"

	"github.com/destkit/destkit/server/internal/store/sealing"
)

// Link is a page for a browser that its token opens, until it has expired or was
// used. Type is a type of source or destination, TargetID what an existing thing is
// changed by; each is empty where the Kind has none.
type Link struct {
	Row
	WorkspaceID int64
	Kind        string
	Type        string
	TargetID    *int64
	RedirectURI string
	ExpiresAt   time.Time
	UsedAt      time.Time
	Token       string
}

var links = define(Table[Link]{
	name: "links", kind: "link", scope: "workspace_id",
	columns: []string{"workspace_id", "kind", "type", "target_id", "redirect_uri", "expires_at", "used_at"},
	cells: func(l *Link) []any {
		return []any{&l.WorkspaceID, &l.Kind, &l.Type, &l.TargetID, &l.RedirectURI, &l.ExpiresAt, &l.UsedAt}
	},
})

func linkPlace(id int64) sealing.Place {
	return sealing.Place{Table: "links", ID: id, Column: "sealed_token"}
}

// CreateLink stores a new link and gives it its token.
func (tx *Tx) CreateLink(l *Link) (err error) {
	if l.Token, err = tx.newSecret(""); err != nil {
		return err
	}
	if err := links.Create(tx, l); err != nil {
		return err
	}
	if _, err := tx.exec("UPDATE links SET token_hash = ? WHERE id = ?", hashOf(l.Token), l.ID); err != nil {
		return fmt.Errorf("set token of link %d: %w", l.ID, err)
	}
	return tx.keys.Put(l.WorkspaceID, linkPlace(l.ID), []byte(l.Token))
}

// UseLink notes that a link was answered: it opens nothing from now on.
// ErrConflict when it was answered before.
func (tx *Tx) UseLink(l *Link) error {
	l.UsedAt = tx.Now()
	return links.Save(tx, l)
}

// ReopenLink takes UseLink back.
func (tx *Tx) ReopenLink(l *Link) error {
	l.UsedAt = time.Time{}
	return links.Save(tx, l)
}

// LinkByToken finds the link of a token in any workspace.
func (tx *Tx) LinkByToken(token string) (*Link, error) {
	l, err := links.one(tx, "token_hash = ?", hashOf(token))
	if err == nil {
		l.Token = token
	}
	return l, err
}

// Links lists the links of one kind in a workspace, and for one target where that is
// not nil.
func (tx *Tx) Links(workspaceID int64, kind string, targetID *int64, p Page) ([]*Link, int64, error) {
	condition, args := "workspace_id = ? AND kind = ?", []any{workspaceID, kind}
	if targetID != nil {
		condition, args = condition+" AND target_id = ?", append(args, *targetID)
	}
	order := " ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
	if p.Ascending {
		order = " ORDER BY created_at, id LIMIT ? OFFSET ?"
	}
	limit, offset := p.window()
	found, err := links.some(tx, condition+order, append(append([]any{}, args...), limit, offset)...)
	if err != nil {
		return nil, 0, err
	}
	for _, l := range found {
		token, err := tx.keys.Open(linkPlace(l.ID))
		if err != nil {
			return nil, 0, fmt.Errorf("read link %d: %w", l.ID, err)
		}
		l.Token = string(token)
	}
	total, err := tx.number("SELECT count(*) FROM links WHERE "+condition, args...)
	return found, total, err
}
