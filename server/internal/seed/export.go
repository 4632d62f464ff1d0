package seed

import (
	"bytes"
	"context"
	"net/http"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/store"
)

// Export writes the present state as a seed without secrets: replaceMe
// takes their places.
func (s *Seeds) Export(c *call.Control) (any, error) {
	if _, err := c.Query(); err != nil {
		return nil, err
	}
	text, err := s.export(c.R.Context())
	if err != nil {
		return nil, err
	}
	h := c.W.Header()
	h.Set("Content-Type", "application/yaml; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	c.W.WriteHeader(http.StatusOK)
	_, err = c.W.Write(text)
	return nil, err
}

// replaceMe replaces a secret in an exported seed, replaceURL one that must be an
// address.
const (
	replaceMe  = "replace-me"
	replaceURL = "https://replace-me.example.com/"
)

// export gives organizations, people, sources, destinations, syncs and webhooks. The
// results of runs are not part of a seed: a snapshot has them.
func (s *Seeds) export(ctx context.Context) ([]byte, error) {
	x := &exporter{s: s, ctx: ctx}
	err := s.Shared.Store.View(ctx, func(tx *store.Tx) error {
		first, err := organizations.First(tx)
		if err != nil {
			return err
		}
		x.first = first
		x.organizations, err = store.Every(tx.Organizations)
		return err
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# What this service has, as a seed: destkit serve --seed FILE, or POST /_control/seed.\n" +
		"# Secrets are not in it; write them where " + replaceMe + " stands. Rows of emulated warehouses are not in it\n" +
		"# either: write the statements that make them under execute. What runs have done is in snapshots only.\n" +
		"organizations:\n")
	for _, o := range x.organizations {
		entry, err := x.organization(o)
		if err != nil {
			return nil, err
		}
		writeItem(&b, "  ", entry)
	}
	return b.Bytes(), nil
}

// exporter gathers what a seed names.
type exporter struct {
	s             *Seeds
	ctx           context.Context
	first         int64
	organizations []*store.Organization
}

func (x *exporter) organization(o *store.Organization) (entry pairs, err error) {
	var users []*store.User
	var workspaces []*store.Workspace
	memberships := map[int64]map[string]any{}
	err = x.s.Shared.Store.View(x.ctx, func(tx *store.Tx) (err error) {
		if users, err = store.Users.All(tx, o.ID); err != nil {
			return err
		}
		if workspaces, err = store.Workspaces.All(tx, o.ID); err != nil {
			return err
		}
		for _, w := range workspaces {
			members, err := store.EveryOf(tx.Members, w.ID)
			if err != nil {
				return err
			}
			for _, m := range members {
				if memberships[m.User.ID] == nil {
					memberships[m.User.ID] = map[string]any{}
				}
				memberships[m.User.ID][w.Name] = m.Role
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if o.ID == x.first {
		entry = append(entry, pair{"first", true})
	} else {
		entry = append(entry, pair{"name", o.Name})
	}
	var others []any
	for i, u := range users {
		if i == 0 { // the admin with whom the organization was made
			if o.ID != x.first {
				entry = append(entry, pair{"email", u.Email})
			}
			continue
		}
		one := pairs{{"email", u.Email}, {"role", u.Role}, {"workspaces", memberships[u.ID]}}
		if !u.Notifications {
			one = append(one, pair{"notifications_enabled", false})
		}
		others = append(others, one)
	}
	entry = append(entry, pair{"users", others})
	var list []any
	for _, w := range workspaces {
		one, err := x.workspace(w)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return append(entry, pair{"workspaces", list}), nil
}
