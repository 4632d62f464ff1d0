package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/internal/store"
)

// vanishing is a workspace with one of everything, of which something is deleted
// between what a call reads and what it writes.
type vanishing struct {
	*world
	hook                          func()
	organization, workspace, user int64
	ids                           map[string]int64
}

// vanishes are what is deleted.
var vanishes = []string{"organization", "workspace", "user", "destination", "source", "stream", "dataset", "model", "segment", "topic", "sync", "webhook", "invitation"}

// vanish deletes it, with what is in it.
func (v *vanishing) vanish(tx *store.Tx, what string) error {
	id := v.ids[what]
	return map[string]func() error{
		"organization": func() error { return tx.DeleteOrganization(v.organization) },
		"workspace":    func() error { return store.Workspaces.Delete(tx, v.organization, v.workspace) },
		"user":         func() error { return store.Users.Delete(tx, v.organization, v.user) },
		"destination":  func() error { return store.Destinations.Delete(tx, v.workspace, id) },
		"source": func() error {
			return errors.Join(v.vanish(tx, "segment"), v.vanish(tx, "dataset"), v.vanish(tx, "model"), store.Sources.Delete(tx, v.workspace, id))
		},
		"stream":     func() error { return errors.Join(v.vanish(tx, "topic"), store.Sources.Delete(tx, v.workspace, id)) },
		"dataset":    func() error { return store.Datasets.Delete(tx, v.workspace, id) },
		"model":      func() error { return store.Models.Delete(tx, v.ids["source"], id) },
		"segment":    func() error { return store.Segments.Delete(tx, v.ids["source"], id) },
		"topic":      func() error { return store.Topics.Delete(tx, v.ids["stream"], id) },
		"sync":       func() error { return store.Syncs.Delete(tx, v.workspace, id) },
		"webhook":    func() error { return store.Webhooks.Delete(tx, v.workspace, id) },
		"invitation": func() error { return store.Invitations.Delete(tx, v.organization, id) },
	}[what]()
}

// TestVanish: whatever is deleted while a call is under way, its answer is one that
// the document has for it, never a failure of the service.
func TestVanish(t *testing.T) {
	matrixtest.Long(t)
	v := newVanishing(t)
	refused := map[string]bool{}
	for _, what := range vanishes {
		for _, op := range v.changes() {
			if !op.concerns(what) {
				continue
			}
			code := v.meanwhile(what, op)
			require.Less(t, code, http.StatusInternalServerError, "%s while the %s is deleted", op.name, what)
			if code == http.StatusConflict {
				refused[op.name+" "+what] = true
			}
		}
	}
	// What was there when it was checked, and refers to nothing now.
	for _, want := range []string{
		"POST sync destination", "POST sync of dataset dataset", "POST sync of segment segment", "POST sync of topic topic", "POST sync of model model",
	} {
		require.True(t, refused[want], "%s is no conflict: %v", want, refused)
	}
}

// changes are calls that write, each with what it refers to.
func (v *vanishing) changes() []vanishingCall {
	table := syncBody(v.ids["source"], v.ids["destination"])["source_attributes"]
	sync := func(name string, from map[string]any) vanishingCall {
		body := syncBody(v.ids["source"], v.ids["destination"])
		body["source_attributes"] = table
		if from != nil {
			body["source_attributes"] = map[string]any{"connection_id": v.ids["source"], "object": from}
		}
		if from["type"] == "topic" {
			body["source_attributes"].(map[string]any)["connection_id"] = v.ids["stream"]
			body["mode"] = map[string]any{"type": "live"}
			for _, m := range body["mappings"].([]any) {
				m.(map[string]any)["from"].(map[string]any)["data"] = "email"
			}
		}
		return vanishingCall{name, "POST", "/syncs", v.key, body}
	}
	at := func(path, id string) string { return fmt.Sprintf("%s/%d", path, v.ids[id]) }
	source, stream := at("/sources", "source"), at("/sources", "stream")
	query := "SELECT email, name FROM customers"
	workspace := fmt.Sprintf("/workspaces/%d", v.workspace)
	link := map[string]any{"redirect_uri": "https://app.example.com/"}
	all := []vanishingCall{
		sync("POST sync", nil),
		sync("POST sync of dataset", map[string]any{"type": "dataset", "id": v.ids["dataset"]}),
		sync("POST sync of model", map[string]any{"type": "model", "id": v.ids["model"]}),
		sync("POST sync of segment", map[string]any{"type": "segment", "id": v.ids["segment"]}),
		sync("POST sync of topic", map[string]any{"type": "topic", "id": v.ids["topic"]}),
		{"PATCH sync", "PATCH", at("/syncs", "sync"), v.key, syncBody(v.ids["spare source"], v.ids["destination"])},
		{"POST trigger", "POST", at("/syncs", "sync") + "/trigger", v.key, nil},
		{"POST destination", "POST", "/destinations", v.key, customDestination("http://127.0.0.1:1/")},
		{"PATCH destination", "PATCH", at("/destinations", "destination"), v.key, map[string]any{"service_connection": map[string]any{"name": "Other"}}},
		{"POST refresh_objects", "POST", at("/destinations", "destination") + "/refresh_objects", v.key, nil},
		{"POST source", "POST", "/sources", v.key, map[string]any{"connection": map[string]any{"name": "Log", "type": "topic_log", "credentials": map[string]any{}}}},
		{"PATCH source", "PATCH", source, v.key, map[string]any{"connection": map[string]any{"name": "Other"}}},
		{"POST refresh_tables", "POST", source + "/refresh_tables", v.key, nil},
		{"POST model", "POST", source + "/models", v.key, map[string]any{"name": "New", "query": query}},
		{"PATCH model", "PATCH", at(source+"/models", "model"), v.key, map[string]any{"query": query}},
		{"POST segment", "POST", source + "/filter_segments", v.key, map[string]any{"name": "New", "dataset_id": v.ids["dataset"], "query": "email IS NOT NULL"}},
		{"PATCH segment", "PATCH", at(source+"/filter_segments", "segment"), v.key, map[string]any{"query": "email IS NULL"}},
		{"POST topic", "POST", stream + "/topics", v.key, map[string]any{"name": "new", "sample_message": map[string]any{"id": 1}}},
		{"PATCH topic", "PATCH", at(stream+"/topics", "topic"), v.key, map[string]any{"name": "other"}},
		{"POST dataset", "POST", "/datasets", v.key, map[string]any{"name": "New", "type": "sql", "source_id": v.ids["source"], "query": query}},
		{"PATCH dataset", "PATCH", at("/datasets", "dataset"), v.key, map[string]any{"query": query}},
		{"POST refresh_columns", "POST", at("/datasets", "dataset") + "/refresh_columns", v.key, nil},
		{"POST webhook", "POST", "/webhooks", v.key, map[string]any{"name": "New", "endpoint": "https://example.com/"}},
		{"PATCH webhook", "PATCH", at("/webhooks", "webhook"), v.key, map[string]any{"name": "Other"}},
		{"POST source link", "POST", "/source_connect_links", v.key, map[string]any{"redirect_uri": "https://app.example.com/", "type": "postgres"}},
		{"POST link to a source", "POST", source + "/connect_links", v.key, link},
		{"POST link to a destination", "POST", at("/destinations", "destination") + "/connect_links", v.key, link},
		{"POST link to a sync", "POST", at("/syncs", "sync") + "/connect_links", v.key, link},
		{"POST invitation", "POST", "/invitations", v.pat, map[string]any{"email": "new@example.com", "role": "member", "workspaces": []any{map[string]any{"id": v.workspace, "role": "viewer"}}}},
		{"PATCH invitation", "PATCH", at("/invitations", "invitation"), v.pat, map[string]any{"role": "admin"}},
		{"POST workspace", "POST", "/workspaces", v.pat, map[string]any{"name": "New"}},
		{"PATCH workspace", "PATCH", workspace, v.pat, map[string]any{"name": "Other"}},
		{"POST workspace invitation", "POST", workspace + "/invitations", v.pat, map[string]any{"emails": []string{"one@example.com"}, "role": "viewer"}},
		{"GET api_key", "GET", workspace + "/api_key", v.pat, nil},
	}
	for _, gone := range []struct{ path, token string }{
		{at("/syncs", "sync"), v.key}, {at("/destinations", "destination"), v.key}, {source, v.key}, {at("/datasets", "dataset"), v.key},
		{at(source+"/models", "model"), v.key}, {at(source+"/filter_segments", "segment"), v.key}, {at(stream+"/topics", "topic"), v.key},
		{at("/webhooks", "webhook"), v.key}, {at("/invitations", "invitation"), v.pat}, {workspace, v.pat},
	} {
		all = append(all, vanishingCall{"DELETE " + gone.path, "DELETE", gone.path, gone.token, nil})
	}
	return all
}

type vanishingCall struct {
	name, method, path, token string
	body                      any
}

// concerns reports whether the call has to do with what is deleted. All belong to an
// organization, a workspace and a user.
func (c vanishingCall) concerns(what string) bool {
	switch what {
	case "organization":
		return true
	case "destination", "source":
		if strings.HasPrefix(c.name, "POST sync") {
			return true
		}
	case "workspace", "user":
		return c.method == "POST" && c.body != nil
	case "stream":
		what = "topic"
	}
	return strings.Contains(c.name, what) || strings.Contains(c.path, what) || what == "source" && strings.Contains(c.path, "dataset")
}

func newVanishing(t *testing.T) *vanishing {
	v := &vanishing{}
	v.world = newWorld(t, func(c *Config) {
		c.before = func() { v.hook() }
	})
	v.idle()
	v.fill()
	return v
}

// idle lets nothing happen between a call's reading and its writing.
func (v *vanishing) idle() {
	v.hook = func() {}
}

// meanwhile makes a call in a separate organization, while something of that is
// deleted, and returns the status.
func (v *vanishing) meanwhile(what string, c vanishingCall) int {
	v.t.Helper()
	was := slices.IndexFunc(v.changes(), func(o vanishingCall) bool { return o.name == c.name })
	v.fill()
	if was >= 0 { // with the ids of the new organization
		c = v.changes()[was]
	}
	v.hook = func() {
		v.idle()
		err := v.s.store.Update(v.t.Context(), func(tx *store.Tx) error { return v.vanish(tx, what) })
		require.NoError(v.t, err, "delete %s", what)
	}
	defer v.idle()
	a := v.do(c.method, c.path, c.token, c.body)
	if strings.HasPrefix(c.name, "POST sync") && what == "destination" {
		require.Contains(v.t, string(a.text), "deleted by another request", c.name)
	}
	return a.code
}

// fill makes an organization with one of everything. What a sync uses cannot be
// deleted, so the sync has its own source.
func (v *vanishing) fill() {
	v.t.Helper()
	made := v.control("POST", "/organizations", nil).want(201)
	v.organization, v.pat, v.key = made.id("organization_id"), made.at("personal_access_token").(string), made.at("workspaces.0.api_key").(string)
	v.workspace, v.user = made.id("workspaces.0.id"), v.do("GET", "/users", v.pat, nil).want(200).id("data.0.id")
	v.ids = map[string]int64{}
	v.ids["source"], v.ids["spare source"] = v.newSource(), v.newSource()
	v.ids["destination"] = v.newDestination()
	spare := v.newDestination()
	create := func(name, path, token string, body any, code int, id string) {
		v.ids[name] = v.do("POST", path, token, body).want(code).id(id)
	}
	source := fmt.Sprintf("/sources/%d", v.ids["source"])
	query := "SELECT email, name FROM customers"
	create("sync", "/syncs", v.key, syncBody(v.ids["spare source"], spare), 200, "data.sync_id")
	create("dataset", "/datasets", v.key, map[string]any{"name": "D", "type": "sql", "source_id": v.ids["source"], "query": query}, 201, "data.id")
	create("segment", source+"/filter_segments", v.key, map[string]any{"name": "S", "dataset_id": v.ids["dataset"], "query": "email IS NOT NULL"}, 201, "data.id")
	create("model", source+"/models", v.key, map[string]any{"name": "M", "query": query}, 201, "data.id")
	create("stream", "/sources", v.key, map[string]any{"connection": map[string]any{"name": "Log", "type": "topic_log", "credentials": map[string]any{}}}, 201, "data.id")
	create("topic", fmt.Sprintf("/sources/%d/topics", v.ids["stream"]), v.key, map[string]any{"name": "t", "sample_message": map[string]any{"email": "a"}}, 201, "data.id")
	create("webhook", "/webhooks", v.key, map[string]any{"name": "H", "endpoint": "https://example.com/"}, 201, "data.id")
	create("invitation", "/invitations", v.pat, map[string]any{"email": "f@example.com", "role": "member"}, 200, "data.id")
}
