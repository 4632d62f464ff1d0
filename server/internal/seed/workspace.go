package seed

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// workspaceSeed is a workspace that is being filled.
type workspaceSeed struct {
	*planter
	seeded *controlapi.SeededWorkspace
	w      *store.Workspace
	place  string
}

// fillWorkspace makes everything in a workspace, in the order in which things
// refer to one another.
func (p *planter) fillWorkspace(place string, wanted workspaceEntry) (*controlapi.SeededWorkspace, error) {
	w := p.workspaces[wanted.Name]
	key, err := p.key(w)
	if err != nil {
		return nil, p.at(place, wanted.Name, err)
	}
	b := &workspaceSeed{planter: p, w: w, place: place, seeded: &controlapi.SeededWorkspace{
		ID: w.ID, Name: w.Name, APIKey: key, Sources: map[string]int64{}, Models: map[string]int64{},
		Topics: map[string]int64{}, Datasets: map[string]int64{}, Destinations: map[string]int64{},
		Syncs: map[string]int64{}, Webhooks: map[string]controlapi.SeededWebhook{}, Invitations: map[string]int64{},
	}}
	// An order in which everything is there before something refers to it.
	for _, fill := range []func(workspaceEntry) error{b.sources, b.datasets, b.destinations, b.syncs, b.webhooks, b.invitations} {
		if err := fill(wanted); err != nil {
			return nil, err
		}
	}
	return b.seeded, nil
}

// each runs make for every entry and adds the place to its error.
func each[T any](b *workspaceSeed, kind string, list []T, name func(T) string, make func(T) error) error {
	for i, entry := range list {
		if err := make(entry); err != nil {
			return b.at(fmt.Sprintf("%s.%s[%d]", b.place, kind, i), name(entry), err)
		}
	}
	return nil
}

// add makes something that the seed names, by an operation of the API, and notes how
// to undo it: its row, and its data outside the store.
func (b *workspaceSeed) add(
	names map[string]int64, name, operation string, path map[string]int64, body any,
	row func(tx *store.Tx, id int64) error, left func(id int64) organizations.Outside,
) (int64, error) {
	if err := named(names, name); err != nil {
		return 0, err
	}
	id, _, err := b.create(b.inside(b.w), operation, path, body)
	if err != nil {
		return 0, err
	}
	names[name] = id
	outside := organizations.Outside{}
	if left != nil {
		outside = left(id)
	}
	b.made(func(tx *store.Tx) error { return row(tx, id) }, outside)
	return id, nil
}

// reference finds the id of something that was made before.
func reference(kind string, made map[string]int64, name string) (int64, error) {
	if id, ok := made[name]; ok {
		return id, nil
	}
	return 0, problem.InvalidField(kind, "the workspace has no %s %q in this seed%s", strings.ReplaceAll(kind, "_", " "), foreign.Clip(name, 60), suggest.Phrase(name, slices.Sorted(maps.Keys(made))))
}

// sources makes each source with its models and topics: both are named below
// it, and refer to nothing else.
func (b *workspaceSeed) sources(wanted workspaceEntry) error {
	for i, src := range wanted.Sources {
		place := fmt.Sprintf("%s.sources[%d]", b.place, i)
		if err := b.source(src); err != nil {
			return b.at(place, src.Name, err)
		}
		// A copy with its own place, for the errors below the source.
		inner := *b
		inner.place = place
		path := map[string]int64{"source_id": b.seeded.Sources[src.Name]}
		err := each(&inner, "models", src.Models, func(m modelEntry) string { return m.Name }, func(m modelEntry) error {
			_, err := b.add(b.seeded.Models, m.Name, "createModel", path, withoutEmpty(map[string]any{
				"name": m.Name, "query": m.Query, "description": m.Description,
			}), func(tx *store.Tx, id int64) error { return store.Models.Delete(tx, path["source_id"], id) }, nil)
			return err
		})
		if err != nil {
			return err
		}
		err = each(&inner, "topics", src.Topics, func(t topicEntry) string { return t.Name }, func(t topicEntry) error {
			return b.topic(path, t)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutEmpty leaves out what the seed does not say, so that the API's own
// defaults hold.
func withoutEmpty(body map[string]any) map[string]any {
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil || v == "" })
	return body
}

// source makes a source and runs the SQL of the seed on it.
func (b *workspaceSeed) source(src sourceEntry) error {
	// The API wants an object; a type without credentials should not need one here.
	if src.Credentials == nil {
		src.Credentials = map[string]any{}
	}
	id, err := b.add(b.seeded.Sources, src.Name, "createSource", nil, map[string]any{"connection": withoutEmpty(map[string]any{
		"name": src.Name, "type": src.Type, "sync_engine": src.SyncEngine, "credentials": src.Credentials,
	})}, func(tx *store.Tx, id int64) error { return store.Sources.Delete(tx, b.w.ID, id) }, func(id int64) organizations.Outside {
		return organizations.Outside{Sources: []*store.Source{{Row: store.Row{ID: id}, Type: src.Type}}}
	})
	if err != nil || src.Execute == "" {
		return err
	}
	var access sources.Access
	err = b.s.Shared.Store.View(b.ctx, func(tx *store.Tx) error {
		stored, err := store.Sources.Read(tx, b.w.ID, id)
		if err == nil {
			access, err = b.s.Sources.Access(tx, stored)
		}
		return err
	})
	if err != nil {
		return err
	}
	// After the creation: only then does the warehouse have its file.
	if err := b.s.Sources.Execute(b.ctx, access, src.Execute); err != nil {
		return err
	}
	return b.s.Sources.Rediscover(b.ctx, access) // the statements may have made tables
}

// topic makes a topic and appends its messages.
func (b *workspaceSeed) topic(path map[string]int64, t topicEntry) error {
	body := withoutEmpty(map[string]any{"name": t.Name, "description": t.Description})
	if t.SampleMessage != nil {
		body["sample_message"] = t.SampleMessage
	}
	id, err := b.add(b.seeded.Topics, t.Name, "createTopic", path, body,
		func(tx *store.Tx, id int64) error { return store.Topics.Delete(tx, path["source_id"], id) }, nil)
	if err != nil || len(t.Messages) == 0 {
		return err
	}
	// Messages have no endpoint in the API, so they go into the log directly.
	messages := make([]json.RawMessage, len(t.Messages))
	for i, message := range t.Messages {
		if messages[i], err = json.Marshal(message); err != nil {
			return problem.InvalidField(fmt.Sprintf("messages[%d]", i), "cannot be written as JSON")
		}
	}
	return b.s.Shared.Store.Update(b.ctx, func(tx *store.Tx) error {
		_, _, err := tx.AppendMessages(id, messages)
		return err
	})
}

// datasets refer to sources by name.
func (b *workspaceSeed) datasets(wanted workspaceEntry) error {
	return each(b, "datasets", wanted.Datasets, func(d datasetEntry) string { return d.Name }, func(d datasetEntry) error {
		// Only sources of the seed: names of others may occur twice.
		sourceID, err := reference("source", b.seeded.Sources, d.Source)
		if err != nil {
			return err
		}
		_, err = b.add(b.seeded.Datasets, d.Name, "createDataset", nil, withoutEmpty(map[string]any{
			"name": d.Name, "type": "sql", "source_id": sourceID, "query": d.Query, "description": d.Description,
		}), func(tx *store.Tx, id int64) error { return store.Datasets.Delete(tx, b.w.ID, id) }, nil)
		return err
	})
}

// destinations are tested as they are made; one whose test fails is made all the
// same, as in the API, and a sync to it then fails with the reason.
func (b *workspaceSeed) destinations(wanted workspaceEntry) error {
	return each(b, "destinations", wanted.Destinations, func(d destinationEntry) string { return d.Name }, func(d destinationEntry) error {
		if d.Credentials == nil {
			d.Credentials = map[string]any{}
		}
		_, err := b.add(b.seeded.Destinations, d.Name, "createDestination", nil, map[string]any{"service_connection": withoutEmpty(map[string]any{
			"name": d.Name, "type": d.Type, "credentials": d.Credentials,
		})}, func(tx *store.Tx, id int64) error { return store.Destinations.Delete(tx, b.w.ID, id) }, func(id int64) organizations.Outside {
			return organizations.Outside{Destinations: []*store.Destination{{Row: store.Row{ID: id}, Type: d.Type}}}
		})
		return err
	})
}

// webhooks keeps the secret of each, which is shown at creation only.
func (b *workspaceSeed) webhooks(wanted workspaceEntry) error {
	return each(b, "webhooks", wanted.Webhooks, label("name"), func(body map[string]any) error {
		name := label("name")(body)
		if err := named(b.seeded.Webhooks, name); err != nil {
			return err
		}
		id, text, err := b.create(b.inside(b.w), "createWebhook", nil, body)
		if err != nil {
			return err
		}
		var made struct {
			Data struct {
				Secret string `json:"secret"`
			} `json:"data"`
		}
		b.made(func(tx *store.Tx) error { return store.Webhooks.Delete(tx, b.w.ID, id) }, organizations.Outside{})
		err = json.Unmarshal(text, &made)
		b.seeded.Webhooks[name] = controlapi.SeededWebhook{ID: id, Secret: made.Data.Secret}
		return err
	})
}

// label reads the name of a free-form entry.
func label(key string) func(map[string]any) string {
	return func(entry map[string]any) string {
		name, _ := entry[key].(string)
		return name
	}
}

// invitations makes one for each address (spec 4).
func (b *workspaceSeed) invitations(wanted workspaceEntry) error {
	return each(b, "invitations", wanted.Invitations, func(i workspaceInvitationEntry) string { return strings.Join(i.Emails, ", ") },
		func(i workspaceInvitationEntry) error {
			roles := map[int64]string{b.w.ID: i.Role}
			before := map[string][]*store.Membership{}
			for _, email := range i.Emails {
				var err error
				if before[email], err = b.membershipsOf(email, roles); err != nil {
					return err
				}
			}
			text, err := b.drive(b.asAdmin(), "createWorkspaceInvitation", map[string]int64{"workspace_id": b.w.ID},
				map[string]any{"emails": slices.Concat([]string{}, i.Emails), "role": i.Role})
			if err != nil {
				return err
			}
			var made struct {
				Invitations []struct {
					ID    int64  `json:"id"`
					Email string `json:"email"`
				} `json:"invitations"`
			}
			err = json.Unmarshal(text, &made)
			for n, one := range made.Invitations {
				b.seeded.Invitations[one.Email] = one.ID
				b.made(func(tx *store.Tx) error {
					return errors.Join(b.uninvite(tx, one.Email, roles, before[i.Emails[n]]), store.WorkspaceInvitations.Delete(tx, b.w.ID, one.ID))
				}, organizations.Outside{})
			}
			return err
		})
}
