package crowd

import (
	"fmt"
	"strings"
)

// Dropped is the operation whose calls faults leave without an answer.
const Dropped = "listConnectors"

// control does something beside the API.
func (c *client) control() {
	t := c.tenant()
	if t == nil {
		t = c.kept
	}
	if c.chance(10) {
		c.worlds(t)
		return
	}
	posts := []func() (path, body string){
		func() (string, string) { return "/clock", `{"advance":"` + c.text("1s", "1m", "16m", "2h") + `"}` },
		func() (string, string) {
			return "/clock", c.text(`{"freeze":true}`, `{"freeze":false}`, `{"freeze":false}`, `{"advance":"-1h"}`, `{`)
		},
		func() (string, string) {
			return "/faults", c.text(
				`{"kind":"latency","operation":"fetchDataset","times":3,"latency":"20ms"}`, `{"kind":"status","status":403,"operation":"deleteSync","times":2}`,
				`{"kind":"rate_limited","operation":"createDestination","times":2}`, `{"kind":"drop","operation":"`+Dropped+`","phase":"after","times":2}`,
				`{"kind":"status","status":409,"operation":"createSync","phase":"after","times":2}`, `{"kind":"flood"}`)
		},
		func() (string, string) { return "/journal", c.text(`{"bodies":true}`, `{"bodies":false}`) },
		func() (string, string) {
			return "/audit", `{"sync_id":` + c.kept.any(c, "sync_id").String() + `,"ledger_only":true}`
		},
		func() (string, string) { return "/syncs/" + t.any(c, "sync_id").String() + "/plan", `{"limit":3}` },
		func() (string, string) {
			return "/topics/" + t.any(c, "topic_id").String() + "/messages", `[{"id":1},{"id":2}]`
		},
		func() (string, string) {
			return "/sources/" + t.any(c, "source_id").String() + "/execute", `{"sql":"` + c.text("CREATE TABLE rows (id INTEGER, first TEXT, second TEXT)", "INSERT INTO rows VALUES (1, 'a', 'b')", "SELECT 1", "garbage", "DROP TABLE rows") + `"}`
		},
		func() (string, string) { return "/invitations/" + t.any(c, "invitation_id").String() + "/claim", "" },
		func() (string, string) {
			return "/workspace_invitations/" + t.any(c, "invitation_id").String() + "/claim", `{"email":"` + c.address() + `"}`
		},
		func() (string, string) { return "/users/" + fmt.Sprint(2+c.random.IntN(20)) + "/token", "" },
		func() (string, string) {
			return "/triggers/dbt_cloud", `{"project_id":"11","job_id":"12","status":"success"}`
		},
	}
	gets := []string{"", "/clock", "/faults", "/faults/unfired", "/journal/requests?limit=100", "/journal/calls?limit=100", "/journal/webhooks", "/mailbox?limit=50",
		"/processes", "/webhook_deliveries", "/organizations", "/fidelity", "/metrics", "/destinations/" + t.any(c, "destination_id").String() + "/records?object=Contact",
		"/topics/" + t.any(c, "topic_id").String() + "/messages", "/explain?identifier=3&sync_id=" + c.kept.any(c, "sync_id").String()}
	deletes := []string{"/faults", "/journal/requests", "/journal/calls", "/journal/webhooks", "/organizations/" + t.organization}
	switch n := c.random.IntN(100); {
	case n < 45:
		path, body := posts[c.random.IntN(len(posts))]()
		c.controlCall("POST", path, body)
	case n < 85:
		c.controlCall("GET", gets[c.random.IntN(len(gets))], "")
	default:
		path := deletes[c.random.IntN(len(deletes))]
		if t != c.kept || !strings.HasPrefix(path, "/organizations") {
			c.controlCall("DELETE", path, "")
		}
	}
}

// worlds copies and replaces whole worlds.
func (c *client) worlds(t *tenant) {
	switch n := c.random.IntN(10); {
	case n < 8:
		c.call(&request{operation: "GET /_control/snapshot", method: "GET", path: "/_control/snapshot", discard: true})
	case n == 8 && t != c.kept:
		c.controlCall("POST", "/organizations/"+t.organization+"/reset", "")
	case c.config.Replace && c.chance(20):
		c.controlCall("POST", "/reset", "")
	case c.config.Replace:
		c.restore()
	}
}

// restore takes a snapshot and puts it back.
func (c *client) restore() {
	if text := c.call(&request{operation: "GET /_control/snapshot", method: "GET", path: "/_control/snapshot"}); text != nil {
		c.call(&request{operation: "POST /_control/restore", method: "POST", path: "/_control/restore", body: text})
	}
}

func (c *client) controlCall(method, path, body string) {
	r := &request{operation: method + " " + kindOf("/_control"+path), method: method, path: "/_control" + path}
	if body != "" {
		r.body = []byte(body)
	}
	c.call(r)
}

// kindOf is a path without its ids and its query.
func kindOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if i > 2 && strings.Trim(part, "0123456789") == "" {
			parts[i] = "{id}"
		}
	}
	return strings.Join(parts, "/")
}
