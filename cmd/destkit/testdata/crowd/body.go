package crowd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/destkit/destkit/openapi"
)

type object = map[string]any

// body is what an operation takes, about things of the tenant that may be gone.
func (c *client) body(t *tenant, op *openapi.Operation, at known) []byte {
	var body any
	switch op.ID {
	case "createDestination":
		body = object{"service_connection": c.connection()}
	case "updateDestination":
		connection := object{"name": fmt.Sprintf("Endpoint %d", c.random.IntN(9))}
		if t != c.kept && c.chance(50) {
			connection = c.connection()
			delete(connection, "type")
		}
		body = object{"service_connection": connection}
	case "createSource":
		body = object{"connection": c.source()}
	case "updateSource":
		body = object{"connection": object{"name": fmt.Sprintf("Shop %d", c.random.IntN(9))}}
	case "createSync", "updateSync":
		body = c.sync(t, at)
	case "triggerSync":
		body = object{"force_full_sync": c.chance(30)}
	case "createDataset":
		body = object{"name": fmt.Sprintf("Dataset %d", c.random.IntN(20)), "type": "sql", "source_id": t.any(c, "source_id"), "query": "SELECT id, first, second FROM rows"}
	case "createModel":
		body = object{"name": fmt.Sprintf("Model %d", c.random.IntN(20)), "query": c.text("SELECT id, first FROM rows", "SELECT * FROM nothing", "DROP TABLE rows")}
	case "createFilterSegment":
		body = object{"name": fmt.Sprintf("Segment %d", c.random.IntN(20)), "dataset_id": t.any(c, "dataset_id"), "query": c.text("id > 3", "(")}
	case "createTopic":
		body = object{"name": fmt.Sprintf("Topic %d", c.random.IntN(20)), "sample_message": object{"id": 1}}
	case "createInvitation":
		body = object{"email": c.address(), "role": c.text("member", "admin"), "workspaces": []object{{"id": t.any(c, "workspace_id"), "role": "viewer"}}}
	case "createWorkspaceInvitation":
		body = object{"emails": []string{c.address()}, "role": "viewer"}
	case "createWorkspace", "updateWorkspace":
		body = object{"name": fmt.Sprintf("Workspace %d", c.random.IntN(20))}
	default:
		return op.RequestExample()
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // a body of this file
	}
	return text
}

func (c *client) address() string { return fmt.Sprintf("user%d@example.com", c.random.IntN(30)) }

// connection is a destination that may answer, an emulated one now and then.
func (c *client) connection() object {
	if c.chance(10) {
		return object{"name": "CRM", "type": "salesforce", "credentials": object{
			"instance_url": "https://acme.my.salesforce.com", "client_id": "client", "client_secret": "client-secret-value"}}
	}
	return object{"name": fmt.Sprintf("Endpoint %d", c.random.IntN(9)), "type": "custom_api", "credentials": object{
		"api_version": 1, "webhook_url": c.text(c.config.Destinations...),
	}}
}

func (c *client) source() object {
	switch n := c.random.IntN(10); {
	case n < 7:
		return object{"name": "Shop", "type": "sqlite", "credentials": object{"path": c.config.Source}}
	case n < 9:
		return object{"name": "Log", "type": "topic_log", "credentials": object{}}
	default:
		return object{"name": "Warehouse", "type": "snowflake", "credentials": object{
			"account": "acme", "username": "u", "password": "secret-value", "warehouse": "w", "database": "d"}}
	}
}

// SyncBody is a sync of the table rows into an object.
func SyncBody(from, to any, into string, operation string) map[string]any {
	column := func(name string) object {
		return object{"from": object{"type": "column", "data": name}, "to": name, "is_primary_identifier": name == "id"}
	}
	return object{
		"label": "Rows", "operation": operation,
		"source_attributes": object{"connection_id": from, "object": object{
			"type": "table", "table_catalog": "main", "table_schema": "main", "table_name": "rows"}},
		"destination_attributes": object{"connection_id": to, "object": into},
		"mappings":               []object{column("id"), column("first"), column("second")},
	}
}

// sync is a configuration. One that is kept stays as it was, but for its label and
// its schedule: what it has written must fit it at the end.
func (c *client) sync(t *tenant, at known) object {
	if t == c.kept {
		t.mu.Lock()
		body, ok := c.configs[at["sync_id"]]
		t.mu.Unlock()
		if !ok {
			return object{"label": "nothing"}
		}
		changed := object{}
		for k, v := range body {
			changed[k] = v
		}
		changed["label"] = fmt.Sprintf("Label %d", c.random.IntN(1000))
		changed["mode"] = c.mode(t)
		return changed
	}
	body := SyncBody(t.any(c, "source_id"), t.any(c, "destination_id"), "thing_0", c.text("upsert", "mirror"))
	from := body["source_attributes"].(object)
	switch c.random.IntN(8) {
	case 0:
		from["object"] = object{"type": "dataset", "id": t.any(c, "dataset_id")}
	case 1:
		from["object"] = object{"type": "model", "id": t.any(c, "model_id")}
	case 2:
		from["object"] = object{"type": "topic", "id": t.any(c, "topic_id")}
	}
	body["mode"] = c.mode(t)
	if c.chance(10) {
		body["validate_only"] = true
	}
	return body
}

func (c *client) mode(t *tenant) object {
	triggers := object{}
	switch c.random.IntN(6) {
	case 0:
		triggers["schedule"] = object{"frequency": c.text("hourly", "daily"), "hour": 3, "minute": c.random.IntN(60), "day": nil, "cron_expression": nil}
	case 1:
		triggers["sync_sequence"] = object{"sync_id": t.any(c, "sync_id")}
	}
	return object{"type": "triggered", "triggers": triggers}
}

// spoiled is a body that is wrong.
func (c *client) spoiled(body []byte) []byte {
	switch c.random.IntN(8) {
	case 0:
		return body[:c.random.IntN(len(body)+1)]
	case 1:
		return []byte(strings.Repeat("[", 100_000))
	case 2:
		return []byte(`null`)
	case 3:
		return []byte(`{"name":"` + strings.Repeat("ä", 1<<19) + `"}`)
	case 4:
		return []byte("{\"name\":\"\xff\xfe\"}")
	case 5:
		return []byte(strings.ReplaceAll(string(body), ":1", ":-99999999999999999999"))
	case 6:
		return []byte(strings.ReplaceAll(string(body), `"name":"`, `"name":"\u0000`))
	default:
		return []byte{}
	}
}
