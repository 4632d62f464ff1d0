package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// failing is a seed for the first organization that changes all that it can, asks a
// destination in the middle, and is refused at its end.
func failing(w *world) string {
	return fmt.Sprintf(`
organizations:
  - first: true
    users:
      - {email: seeded@example.com, role: member, workspaces: {First workspace: editor}}
    workspaces:
      - name: Keyless
      - name: First workspace
        notification_emails: [seeded@example.com]
        sources:
          - {name: Log, type: topic_log, topics: [{name: clicks, sample_message: {id: 1}, messages: [{id: 1}]}]}
          - {name: Warehouse, type: snowflake, credentials: {account: a, warehouse: W, database: D, user: U, password: p}, models: [{name: All, query: SELECT * FROM USERS}]}
        datasets:
          - {name: Everybody, source: Warehouse, query: "SELECT ID, EMAIL, LAST_NAME FROM USERS"}
        destinations:
          - {name: Asked, type: custom_api, credentials: {api_version: 1, webhook_url: "%s", auth_token: "%s"}}
          - {name: CRM, type: salesforce, credentials: {instance_url: "https://acme.my.salesforce.com", client_id: c, client_secret: s}}
        syncs:
          - label: Contacts
            source: Warehouse
            source_object: {dataset: Everybody}
            destination: CRM
            object: Contact
            operation: upsert
            mappings: [{from: {type: column, data: EMAIL}, to: Email, is_primary_identifier: true}, {from: {type: column, data: LAST_NAME}, to: LastName}]
        webhooks:
          - {name: Audit, endpoint: "https://audit.acme.example/hooks/42"}
        invitations:
          - {emails: [owner@example.com, stranger@example.com], role: owner}
    invitations:
      - {email: other@example.com, role: member, workspaces: {First workspace: viewer}}
      - {email: second@example.com, role: king}
`, w.destination(), "destination-token")
}

// people is all that can be seen of the first workspace and of those in it.
func people(w *world) string {
	seen := worldOf(w)
	for _, path := range []string{"/workspaces/1", "/workspaces/1/users", "/workspaces/1/invitations"} {
		seen += string(w.do("GET", path, w.pat, nil).want(200).text)
	}
	return seen + fmt.Sprint(w.do("GET", "/workspaces/2/api_key", w.pat, nil).code)
}

// TestFailedSeedTakesBackItsOwn: what others have written while a seed was made stays;
// what the seed has made or changed goes.
func TestFailedSeedTakesBackItsOwn(t *testing.T) {
	w := newWorld(t)
	w.newDestination()
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Keyless"}).want(201)
	w.control("POST", "/seed", "organizations: [{first: true, users: [{email: other@example.com, workspaces: {First workspace: editor}}]}]").want(201)
	before, seed := people(w), failing(w)
	refused := w.control("POST", "/seed", seed).want(400)
	require.Contains(t, refused.at("message"), "organizations[0].invitations[1] (second@example.com)")
	same(t, before, people(w))

	reached, release := w.hold()
	answered := make(chan *answer)
	go func() { answered <- w.control("POST", "/seed", seed) }()
	<-reached
	w.do("POST", "/invitations", w.pat, map[string]any{"email": "meanwhile@example.com", "role": "member"}).want(200)
	source := w.sourceOf("topic_log", map[string]any{})
	release()
	require.Equal(t, refused.at("message"), (<-answered).want(400).at("message"))
	w.do("DELETE", fmt.Sprintf("/sources/%d", source.id("data.id")), w.key, nil).want(200)
	require.Contains(t, people(w), "meanwhile@example.com")
	require.NotContains(t, people(w), "seeded@example.com")
}

// TestFailedSeedThatIsUsed: what a client uses by then stays, and is named.
func TestFailedSeedThatIsUsed(t *testing.T) {
	w := newWorld(t)
	seed := failing(w)
	reached, release := w.hold()
	answered := make(chan *answer)
	go func() { answered <- w.control("POST", "/seed", seed) }()
	<-reached
	warehouse := w.do("GET", "/sources", w.key, nil).want(200)
	id := int64(0)
	for i := range 2 {
		if warehouse.at(fmt.Sprintf("data.%d.name", i)) == "Warehouse" {
			id = warehouse.id(fmt.Sprintf("data.%d.id", i))
		}
	}
	w.do("POST", "/datasets", w.key, map[string]any{"name": "Mine", "type": "sql", "source_id": id, "query": "SELECT ID FROM USERS"}).want(201)
	release()
	require.Contains(t, (<-answered).want(400).at("message"), fmt.Sprintf("this stays: source %d is used by 1 dataset", id))
	require.Contains(t, worldOf(w), "Mine")
}
