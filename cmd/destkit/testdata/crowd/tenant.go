package crowd

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/destkit/destkit/openapi"
)

// known are the values of a path's parameters that named something when they were
// seen. By now it may be gone.
type known map[string]string

// tenant is a workspace with its organization, and what the crowd has seen in it.
type tenant struct {
	organization string

	mu       sync.Mutex
	pat, key string
	known    map[string][]known // by the last parameter
}

// maxKnown bounds what is remembered of a kind; the oldest is forgotten.
const maxKnown = 600

// parameters names the parameter under which a collection's members are asked for.
var parameters = map[string]string{
	"destinations": "destination_id", "syncs": "sync_id", "sync_runs": "sync_run_id", "sources": "source_id",
	"models": "model_id", "filter_segments": "segment_id", "topics": "topic_id", "datasets": "dataset_id",
	"webhooks": "webhook_id", "invitations": "invitation_id", "workspaces": "workspace_id", "objects": "table_id",
}

// tenant is any of those that the crowd may harm; nil while there are few.
func (c *client) tenant() *tenant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.tenants) == 0 || len(c.tenants) < maxTenants && c.random.IntN(200) == 0 {
		return nil
	}
	return c.tenants[c.random.IntN(len(c.tenants))]
}

// found makes an organization.
func (c *client) found() {
	answer := c.call(&request{operation: "POST /_control/organizations", method: "POST", path: "/_control/organizations", body: []byte(`{"name":"Crowd"}`)})
	var made struct {
		OrganizationID      int64  `json:"organization_id"`
		PersonalAccessToken string `json:"personal_access_token"`
		Workspaces          []struct {
			Key string `json:"api_key"`
		} `json:"workspaces"`
		WorkspaceAPIKey string `json:"workspace_api_key"`
	}
	if answer == nil || json.Unmarshal(answer, &made) != nil || made.PersonalAccessToken == "" {
		return
	}
	if len(made.Workspaces) > 0 {
		made.WorkspaceAPIKey = made.Workspaces[0].Key
	}
	t := &tenant{organization: fmt.Sprint(made.OrganizationID), pat: made.PersonalAccessToken, key: made.WorkspaceAPIKey, known: map[string][]known{}}
	c.mu.Lock()
	if len(c.tenants) < maxTenants {
		c.tenants = append(c.tenants, t)
	} else { // the others may be gone
		c.tenants[c.random.IntN(len(c.tenants))] = t
	}
	c.mu.Unlock()
}

// token is what opens an operation; now and then the wrong one.
func (t *tenant) token(c *client, op *openapi.Operation) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	right, wrong := t.key, t.pat
	if op.Auth == "organization" {
		right, wrong = wrong, right
	}
	if c.chance(1) {
		return wrong
	}
	return right
}

// learn remembers the ids of an answer to an operation at a path with these values.
func (t *tenant) learn(op *openapi.Operation, at known, answer []byte) {
	var text struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(answer, &text) != nil {
		return
	}
	type shown struct {
		ID     json.Number `json:"id"`
		Sync   json.Number `json:"sync_id"`
		Run    json.Number `json:"sync_run_id"`
		APIKey string      `json:"api_key"`
	}
	var all []shown
	var one shown
	if json.Unmarshal(text.Data, &all) != nil {
		if json.Unmarshal(text.Data, &one) != nil {
			return
		}
		all = []shown{one}
	}
	parts := strings.Split(strings.Trim(op.Path, "/"), "/")
	name := parameters[parts[len(parts)-1]]
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range all {
		if name != "" && s.ID != "" {
			t.add(name, at, s.ID.String())
		}
		if s.Sync != "" && op.Method == "POST" {
			t.add("sync_id", nil, s.Sync.String())
		}
		if s.Run != "" {
			t.add("sync_run_id", nil, s.Run.String())
		}
		if op.ID == "fetchWorkspaceKey" && s.APIKey != "" {
			t.key = s.APIKey
		}
	}
}

func (t *tenant) add(name string, at known, id string) {
	values := known{name: id}
	for k, v := range at {
		if k != name {
			values[k] = v
		}
	}
	t.known[name] = append(t.known[name], values)
	if more := len(t.known[name]) - maxKnown; more > 0 {
		t.known[name] = t.known[name][more:]
	}
}

// values chooses the values of a path's parameters.
func (t *tenant) values(c *client, path string) known {
	names := namesOf(path)
	values := known{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(names) - 1; i >= 0; i-- {
		name := names[i]
		if values[name] != "" {
			continue
		}
		seen := t.known[name]
		switch {
		case name == "object_full_name":
			values[name] = c.text("thing_0", "thing_0", "nothing", "%00", "a%2Fb")
		case c.chance(3):
			values[name] = c.text("0", "-1", "9223372036854775807", "9223372036854775808", "abc", "1e3", "%20", "%FF")
		case len(seen) == 0 || c.chance(3):
			values[name] = fmt.Sprint(1 + c.random.IntN(500)) // of another tenant, or of nothing
		default:
			for k, v := range seen[c.random.IntN(len(seen))] {
				values[k] = v
			}
		}
	}
	return values
}

// namesOf are the parameters of a path, in their order.
func namesOf(path string) (names []string) {
	for {
		_, after, found := strings.Cut(path, "{")
		if !found {
			return names
		}
		name, rest, _ := strings.Cut(after, "}")
		names, path = append(names, name), rest
	}
}

// any is an id of a kind, as a number for a body; 1 where none was seen.
func (t *tenant) any(c *client, name string) json.Number {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := t.known[name]
	if len(seen) == 0 || c.chance(2) {
		return json.Number(fmt.Sprint(1 + c.random.IntN(500)))
	}
	// The newest most of the time: the others may be gone.
	at := len(seen) - 1 - min(c.random.IntN(len(seen)), c.random.IntN(len(seen)), c.random.IntN(len(seen)))
	return json.Number(seen[at][name])
}
