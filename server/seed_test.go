package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/problem"
)

func exampleSeed(t testing.TB) string {
	return string(contentOf(t, "testdata/seed.yaml"))
}

// TestSeed: the example of the documentation makes everything in it.
func TestSeed(t *testing.T) {
	w := newWorld(t)
	a := w.control("POST", "/seed", exampleSeed(t)).want(201)
	workspace := "organizations.0.workspaces.0."
	key, pat := a.at(workspace+"api_key").(string), a.at("organizations.0.personal_access_token").(string)

	contacts := w.do("GET", fmt.Sprintf("/syncs/%d", a.id(workspace+"syncs.Contacts")), key, nil).want(200)
	contacts.is("data.source_attributes.object.id", a.at(workspace+"datasets.Everybody"), "data.mode.triggers.schedule.hour", 6)
	leads := w.do("GET", fmt.Sprintf("/syncs/%d", a.id(workspace+"syncs.Leads")), key, nil).want(200)
	require.Equal(t, "LEADS", leads.at("data.source_attributes.object.table_name"))
	require.Equal(t, a.at(workspace+"syncs.Contacts"), leads.at("data.mode.triggers.sync_sequence.sync_id"))
	w.do("GET", fmt.Sprintf("/sources/%d/models/%d", a.id(workspace+"sources.Warehouse"), a.id(workspace+"models.Active users")), key, nil).want(200)
	messages := w.control("GET", fmt.Sprintf("/topics/%d/messages", a.id(workspace+"topics.clicks")), nil).want(200)
	require.Equal(t, "/prices", messages.at("messages.1.message.page"))
	require.NotEmpty(t, a.at(workspace+"webhooks.Audit.secret"))
	require.Contains(t, a.at(workspace+"invitations"), "carol@acme.example")
	shown := w.do("GET", fmt.Sprintf("/workspaces/%d", a.id(workspace+"id")), pat, nil).want(200)
	require.Equal(t, "alerts@acme.example", shown.at("data.notification_emails.0"))
	require.EqualValues(t, 2, w.do("GET", "/users", pat, nil).want(200).id("pagination.total_records"))
	bob := a.at("organizations.0.users").(map[string]any)["bob@acme.example"].(map[string]any)
	w.do("GET", "/users", bob["personal_access_token"].(string), nil).want(200)
	require.Len(t, w.do("GET", "/invitations", pat, nil).want(200).at("data"), 1)

	// Again: another organization, in addition to the first.
	again := w.control("POST", "/seed", exampleSeed(t)).want(201)
	require.NotEqual(t, a.at("organizations.0.id"), again.at("organizations.0.id"))
}

// worldOf is everything that a seed can make, to be compared.
func worldOf(w *world) string {
	var b strings.Builder
	for _, path := range []string{"/organizations", "/mailbox"} {
		b.Write(w.control("GET", path, nil).want(200).text)
	}
	for _, path := range []string{"/workspaces", "/users", "/invitations"} {
		b.Write(w.do("GET", path, w.pat, nil).want(200).text)
	}
	for _, path := range []string{"/sources", "/destinations", "/datasets", "/syncs", "/webhooks"} {
		b.Write(w.do("GET", path, w.key, nil).want(200).text)
	}
	return b.String()
}

// TestSeedIsAllOrNothing breaks the example at each of its ends, for a new
// organization and for the first one.
func TestSeedIsAllOrNothing(t *testing.T) {
	w := newWorld(t)
	w.newSync()
	w.do("POST", "/invitations", w.pat, map[string]any{"email": "before@example.com", "role": "member"}).want(200)
	before := worldOf(w)
	for name, tc := range map[string]struct{ old, broken, want string }{
		"mapping": {"data: COMPANY}, to: Company", "data: COMPANY}, to: Compani", "organizations[0].workspaces[0].syncs[1] (Leads)"},
		"unknown source": {"source: Warehouse, query", "source: Warehose, query",
			`organizations[0].workspaces[0].datasets[0] (Everybody): source: the workspace has no source "Warehose" in this seed; did you mean "Warehouse"?`},
		"statements":        {"CREATE TABLE LEADS", "CREATE TABEL LEADS", "organizations[0].workspaces[0].sources[0] (Warehouse): sql:"},
		"credentials":       {"database: DEMO", "databas: DEMO", "connection.credentials"},
		"key of a sync":     {"operation: upsert\n            mappings:\n              - {from: {type: column, data: EMAIL}, to: Email, is_primary_identifier: true}\n              - {from: {type: column, data: LAST_NAME}, to: LastName}\n              -", "opration: upsert\n            mappings:\n              -", "(and 1 more)"},
		"role at the end":   {"workspaces: {Main: owner}", "workspaces: {Main: king}", "organizations[0].invitations[0] (dave@acme.example)"},
		"unknown workspace": {"workspaces: {Main: owner}", "workspaces: {Mane: owner}", `has no workspace "Mane"; did you mean "Main"?`},
		"unknown table":     {"{table: LEADS}", "{table: LEEDS}", `source_object.table: 0 tables of the source are called "LEEDS"`},
		"plain http":        {"https://audit", "http://audit", "organizations[0].workspaces[0].webhooks[0] (Audit): endpoint:"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, first := range []bool{false, true} {
				seed := exampleSeed(t)
				require.Contains(t, seed, tc.old)
				seed = strings.Replace(seed, tc.old, tc.broken, 1)
				if first {
					seed = strings.Replace(seed, "- name: Acme                      # or first: true, for the first organization\n    email: ada@acme.example         # the admin\n", "- first: true\n", 1)
					require.Contains(t, seed, "- first: true\n")
				}
				a := w.control("POST", "/seed", seed).want(400)
				require.Contains(t, a.at("message"), tc.want)
				same(t, before, worldOf(w))
			}
		})
	}
}

// TestSeedOfFirst fills the organization whose tokens the user has.
func TestSeedOfFirst(t *testing.T) {
	w := newWorld(t)
	a := w.control("POST", "/seed", `
organizations:
  - first: true
    workspaces:
      - name: First workspace
        sources:
          - {name: Log, type: topic_log}
      - name: Another
`).want(201)
	require.EqualValues(t, 1, w.do("GET", "/sources", w.key, nil).want(200).id("pagination.total_records"))
	require.EqualValues(t, 2, w.do("GET", "/workspaces", w.pat, nil).want(200).id("pagination.total_records"))
	require.Equal(t, w.key, a.at("organizations.0.workspaces.0.api_key"))
	require.False(t, a.has("organizations.0.personal_access_token"))
}

// TestSeedSaysWhereAndNotWhat: a line with a secret is not repeated.
func TestSeedSaysWhereAndNotWhat(t *testing.T) {
	w := newWorld(t)
	_, err := w.s.Seed(t.Context(), "fill.yaml", []byte("organizations:\n  - {name: A, workspace: [{password: hush-hush}]}\n"))
	require.EqualError(t, err, `fill.yaml:2:15: unknown key "workspace", did you mean "workspaces"?`)
	for _, text := range []string{"organizations: [", "organizations: {}", "a: 1", "organizations: []", "organizations: [{workspaces: [{}]}]", "organizations: [{first: true, name: x}]"} {
		_, err := w.s.Seed(t.Context(), "fill.yaml", []byte(text))
		require.ErrorContains(t, err, "fill.yaml", text)
	}
	_, err = w.s.Seed(t.Context(), "fill.yaml", []byte("organizations: [{name: A, workspaces: [{name: B, sources: [{name: S, type: snowflake}]}]}]\n"))
	require.ErrorContains(t, err, "credentials.warehouse: is required; ")
	require.NotContains(t, err.Error(), "more)")
	require.Len(t, w.control("GET", "/organizations", nil).want(200).at("organizations"), 1)
}

// TestSeedLive: also where the API ignores unknown fields a seed is strict.
func TestSeedLive(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Dialect = DialectLive })
	seed := strings.Replace(exampleSeed(t), "is_primary_identifier", "is_primary_identifir", 1)
	require.Contains(t, w.control("POST", "/seed", seed).want(400).at("message"), "is_primary_identifir")
	w.control("POST", "/seed", exampleSeed(t)).want(201)
}

func FuzzSeed(f *testing.F) {
	w := newWorld(f)
	text := exampleSeed(f)
	f.Add([]byte(text))
	f.Add([]byte("organizations: [{workspaces: [{name: a, syncs: [{label: x, source: y}]}]}]"))
	f.Add([]byte("organizations: [{workspaces: [{name: a, sources: [{name: g, type: generator, credentials: {rows: 1}}], syncs: [{label: x, source: g, source_object: {table: rows}, mode: 3}]}]}]"))
	f.Fuzz(func(t *testing.T, seed []byte) {
		seeded, err := w.s.Seed(t.Context(), "seed", seed)
		if err != nil {
			require.Less(t, problem.Of(err).Code, 500, "%v\n%s", err, seed)
			return
		}
		must(json.Marshal(seeded))(t)
		for _, o := range seeded.Organizations {
			require.NoError(t, w.s.organizations.Delete(t.Context(), o.ID))
		}
	})
}

// TestASeedHasNoTokenThatIsNotThere: a destination without a token gets none from an
// exported seed, and keeps what is no secret.
func TestASeedHasNoTokenThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	for _, token := range []string{"destination-word", ""} {
		body := customDestination(w.destination())
		credentials := body["service_connection"].(map[string]any)["credentials"].(map[string]any)
		if credentials["auth_token"] = token; token == "" {
			delete(credentials, "auth_token")
		}
		w.do("POST", "/destinations", w.key, body).want(http.StatusCreated)
	}
	w.sourceOf("snowflake", map[string]any{"account": "acme", "database": "SHOP", "warehouse": "WH", "user": "reader", "password": "source-word"})
	text := string(w.control("GET", "/seed", nil).want(http.StatusOK).text)
	require.Equal(t, 1, strings.Count(text, `auth_token: "replace-me"`), text)
	require.Contains(t, text, "database: SHOP")
	lacks(t, text, "destination-word", "source-word", "header-secret")
	newWorld(t).control("POST", "/seed", text).want(http.StatusCreated)
}

// failing is a seed for the first organization that changes all that it can, calls
// a destination in the middle, and is refused at its end.
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

// heldSeed sends a seed, which is then held at its first call to the destination.
func (w *world) heldSeed(seed string) (answered <-chan *answer, release func()) {
	reached, release := w.hold()
	came := make(chan *answer)
	go func() { came <- w.control("POST", "/seed", seed) }()
	<-reached
	return came, release
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

	answered, release := w.heldSeed(seed)
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
	answered, release := w.heldSeed(seed)
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
