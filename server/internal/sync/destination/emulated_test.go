package destination

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// good credentials of every emulated type.
var emulatedCreds = map[string]string{
	"salesforce":    `{"instance_url":"https://acme.my.salesforce.com","client_id":"cid","client_secret":"very-secret-1","sandbox":true,"daily_request_limit":5}`,
	"google_sheets": `{"spreadsheet_id":"1BxiMVs0XRA5nFMdKvBdBZjgm","service_account_key":"{\n \"private\": \"very-secret-2\"}","value_input":"raw"}`,
	"google_ads":    `{"customer_id":"123-456-7890","developer_token":"very-secret-3"}`,
}

// credsOf gives those, or of the other types what their placeholders say.
func credsOf(t *testing.T, typ string) Credentials {
	if text := emulatedCreds[typ]; text != "" {
		return creds(t, text)
	}
	for _, e := range catalogue.BuiltIn() {
		if e.ServiceName == typ {
			return e.Example()
		}
	}
	return nil
}

// openEmulated checks credentials and opens a type of the catalogue.
func openEmulated(t *testing.T, g *Gate, id int64, typ string) Connection {
	t.Helper()
	merged, problems := g.CheckConnection(typ, credsOf(t, typ), nil)
	require.Empty(t, problems)
	c, err := g.Open(id, typ, merged)
	require.NoError(t, err)
	return c
}

func TestEmulatedTest(t *testing.T) {
	for _, e := range catalogue.BuiltIn() {
		s := &simulators{}
		g := newGate(t, Options{Emulate: s.emulate})
		c := openEmulated(t, g, 7, e.ServiceName)
		results := c.Test(t.Context())
		require.Equal(t, []string{"credentials passed", "authentication passed", "test_connection passed"}, steps(results), failure(results))

		bad := credsOf(t, e.ServiceName)
		bad[e.Refuse.Credential] = api.Raw(e.Refuse.Word)
		merged, problems := g.CheckConnection(e.ServiceName, bad, nil)
		require.Empty(t, problems)
		c, err := g.Open(7, e.ServiceName, merged)
		require.NoError(t, err)
		results = c.Test(t.Context())
		require.Equal(t, []string{"credentials passed", "authentication failed", "test_connection skipped"}, steps(results))
		require.Equal(t, e.Label+" refuses the "+e.Refuse.Credential, failure(results))
		refusesEverything(t, g, c, e, merged)

		delete(merged, e.Account.From)
		delete(merged, "client_id") // else the other set would be the nearer one
		c, err = g.Open(7, e.ServiceName, merged)
		require.NoError(t, err)
		require.Equal(t, "credentials failed", steps(c.Test(t.Context()))[0])
		require.Equal(t, []string{"destination-7"}, s.open, "one store for all connections")
	}
}

// refusesEverything: with a refused credential no call is answered, neither one of
// planning nor one of a run.
func refusesEverything(t *testing.T, g *Gate, c Connection, e *catalogue.Entry, credentials Credentials) {
	t.Helper()
	_, planning := c.Objects(t.Context())
	sender, err := g.Sender(7, e.ServiceName, credentials)
	require.NoError(t, err)
	defer sender.Close()
	_, running := sender.Speed(t.Context())
	for _, err := range []error{planning, running} {
		failed := failedCall(t, err)
		require.Equal(t, OutcomeSecret, failed.Outcome)
		require.Equal(t, e.Label+" refuses the "+e.Refuse.Credential, failed.Message)
	}
}

func TestEmulatedCredentials(t *testing.T) {
	g := newGate(t, Options{Emulate: (&simulators{}).emulate})
	_, problems := g.CheckConnection("salesforce", creds(t, `{"instance_url":"https://evil.example","client_id":"a\u0000b","sandbox":"yes","daily_request_limit":1.5,"x":1}`), nil)
	require.Equal(t, []string{
		"x: unknown credential; salesforce takes instance_url, client_id, client_secret, username, jwt_signing_key, domain, sandbox, daily_request_limit",
		`instance_url: must match ^https://[A-Za-z0-9.-]+\.salesforce\.com/?$`,
		"client_id: must not hold control characters",
		"sandbox: must be true or false",
		"daily_request_limit: must be an integer",
		"client_secret: is required beside instance_url and client_id; or give username, jwt_signing_key and domain",
	}, said(problems))
	_, problems = g.CheckConnection("google_sheets", creds(t, `{"spreadsheet_id":"1BxiMVs0XRA5nFMdKvBdBZjgm","service_account_key":"k","value_input":"cooked"}`), nil)
	require.Equal(t, []string{"value_input: must be raw or user_entered"}, said(problems))
	merged, problems := g.CheckConnection("google_sheets", creds(t, `{"value_input":null}`), creds(t, emulatedCreds["google_sheets"]))
	require.Empty(t, problems)
	require.NotContains(t, merged, "value_input")
	require.Contains(t, merged, "service_account_key")
}

// Details hold the account and nothing secret (spec 2.2).
func TestEmulatedDetails(t *testing.T) {
	want := map[string][2]string{
		"salesforce":    {"acme.my.salesforce.com", "Salesforce acme.my.salesforce.com"},
		"google_sheets": {"1BxiMVs0XRA5nFMdKvBdBZjgm", "Spreadsheet 1BxiMVs0XRA5nFMdKvBdBZjgm"},
		"google_ads":    {"123-456-7890", "Google Ads 123-456-7890"},
	}
	g := newGate(t, Options{Emulate: (&simulators{}).emulate})
	for typ, account := range want {
		c := creds(t, emulatedCreds[typ])
		details := g.Details(typ, c)
		require.Equal(t, account[0], details["account_id"])
		require.Equal(t, account[1], details["account_name"])
		text, err := json.Marshal(details)
		require.NoError(t, err)
		require.NotContains(t, string(text), "very-secret")
		secrets := g.Secrets(typ, c)
		require.NotEmpty(t, secrets)
		for _, secret := range secrets { // also as written in JSON
			require.Contains(t, secret, "very-secret")
		}
		require.Empty(t, g.SafeURL(typ, c))
	}
}

// Fields that a write created are there the next time, and what the schema
// lost is not.
func TestEmulatedObjectsFollowTheStore(t *testing.T) {
	s := &simulators{}
	g := newGate(t, Options{Emulate: s.emulate})
	c := openEmulated(t, g, 1, "google_sheets")
	sheet := func() *api.DestinationObject {
		list, err := c.Objects(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 2)
		return list[0]
	}
	require.Nil(t, sheet().Field("city"))
	require.Nil(t, sheet().Field("unique_id"), "the identifier of the store is no column")
	field := func(name string, identifier bool) string {
		return fmt.Sprintf(`%q:{"active_identifier":%t,"field":{"field_api_name":%q,"label":%q,"identifier":%t,"required":false,"createable":true,"updateable":true,"type":"string","array":false}}`,
			name, identifier, name, name, identifier)
	}
	raw, failed := call(t.Context(), c, rpc.MethodSyncBatch, json.RawMessage(
		`{"sync_plan":{"object":{"object_api_name":"Sheet1","label":"Sheet1"},"operation":"insert","sync_run_id":1,"sync_id":1,"schema":{`+
			field("unique_id", true)+`,`+field("city", false)+`}},"records":[{"unique_id":"1","city":"Ghent"}]}`))
	require.Nil(t, failed)
	require.Contains(t, string(raw), `"success":true`)
	city := sheet().Field("city")
	require.NotNil(t, city)
	require.Equal(t, api.DestinationField{
		Label: "city", FullName: "city", Createable: true, Updateable: true, Operations: []string{"overwrite"}, Type: "string",
	}, *city)

	change := func(body string) {
		r, err := http.NewRequest(http.MethodPost, "/_control/schema", strings.NewReader(body))
		require.NoError(t, err)
		r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
		w := &recorder{header: http.Header{}, limit: 1 << 20}
		require.NoError(t, w.run(s.last, r))
		require.Equal(t, http.StatusOK, w.status, w.body.String())
	}
	change(`{"action":"remove_field","object":"Sheet1","field":"amount"}`)
	require.Nil(t, sheet().Field("amount"))
	change(`{"action":"set_operations","object":"Sheet1","operations":[]}`)
	change(`{"action":"add_object","new":{"name":"Sheet3","operations":["upsert"],"fields":[{"name":"k","type":"string","identifier":true}]}}`)
	list, err := c.Objects(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Sheet3", list[2].FullName)
}

// A destination without an id has its own store, which goes with it.
func TestUnsavedStore(t *testing.T) {
	s := &simulators{}
	g := newGate(t, Options{Emulate: s.emulate})
	one, two := openEmulated(t, g, 0, "google_ads"), openEmulated(t, g, 0, "google_ads")
	require.Equal(t, []string{"unsaved-1", "unsaved-2"}, s.open)
	require.NoError(t, one.Close())
	require.NoError(t, two.Close())
	require.Equal(t, s.open, s.removed)
	require.Equal(t, 2, s.closed)
}

func TestStoreLife(t *testing.T) {
	s := &simulators{}
	g := New(Options{Emulate: s.emulate})
	c := openEmulated(t, g, 3, "google_ads")
	require.NoError(t, c.Close())
	require.Zero(t, s.closed, "the store outlives a connection")
	require.NoError(t, g.Forget(3))
	require.Equal(t, 1, s.closed)
	_, err := c.Objects(t.Context())
	require.NoError(t, err, "it is opened again when needed")
	store, err := g.Store(3, "google_ads")
	require.NoError(t, err)
	require.NotNil(t, store.Endpoint)
	require.NoError(t, g.Remove(3, "google_ads"))
	require.NoError(t, g.Remove(4, "google_ads"), "also one that was not open")
	require.NoError(t, g.Remove(5, api.TypeCustomAPI))
	require.Equal(t, []string{"destination-3", "destination-4"}, s.removed)
	require.NoError(t, g.Remove(3, "google_ads"))
	_, err = c.Objects(t.Context())
	require.ErrorContains(t, err, ErrRemoved.Error(), "a late call makes no records of a destination that is gone")
	require.Equal(t, s.opened, s.closed)
	g.Renew()
	_, err = c.Objects(t.Context())
	require.NoError(t, err, "another destination has the id now")
	_, err = g.Store(1, api.TypeCustomAPI)
	require.ErrorContains(t, err, "not emulated")
	_, err = g.Store(1, "x")
	require.ErrorContains(t, err, "unknown type")
	openEmulated(t, g, 9, "google_ads")
	require.NoError(t, g.Close())
	require.Equal(t, s.opened, s.closed)
}

func TestEmulatorFails(t *testing.T) {
	g := newGate(t, Options{Emulate: func(string, []catalogue.EmulatedObject) (*Emulated, error) { return nil, errors.New("disk full") }})
	for _, id := range []int64{0, 1} {
		_, err := g.Open(id, "google_ads", creds(t, emulatedCreds["google_ads"]))
		require.ErrorContains(t, err, "disk full")
	}
	_, err := newGate(t, Options{}).Open(1, "google_ads", nil)
	require.ErrorContains(t, err, "no simulator")
}

// A handler that misbehaves is a failed call and nothing worse.
func TestInProcess(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	cases := []struct {
		name    string
		handler http.HandlerFunc
		outcome string
	}{
		{"aborts", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, OutcomeNetwork},
		{"panics", func(http.ResponseWriter, *http.Request) { panic("oh") }, OutcomeNetwork},
		{"writes nothing", func(http.ResponseWriter, *http.Request) {}, OutcomeMalformed},
		{"writes too much", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}, OutcomeTooLarge},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); <-hold }, OutcomeTimeout},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			options := Options{MaxReply: 10_000, Emulate: func(string, []catalogue.EmulatedObject) (*Emulated, error) {
				return &Emulated{Endpoint: c.handler}, nil
			}}
			if c.name == "hangs" {
				options.CallTimeout = 1
			}
			g := newGate(t, options)
			_, failed := call(t.Context(), openEmulated(t, g, 1, "google_ads"), rpc.MethodGetSyncSpeed, nil)
			require.NotNil(t, failed)
			require.Equal(t, c.outcome, failed.Outcome, failed.Message)
		})
	}
}

// The match rate is that of the catalogue, the same every time, and blind to
// case and space.
func TestMatched(t *testing.T) {
	g := newGate(t, Options{})
	var emails []json.RawMessage
	for i := range 10_000 {
		emails = append(emails, api.Raw(fmt.Sprintf("person-%d@example.com", i)))
	}
	got := g.Matched("google_ads", "customer_match_email", emails)
	require.InDelta(t, 7000, got, 200)
	require.Equal(t, got, g.Matched("google_ads", "customer_match_email", emails))
	require.InDelta(t, 4000, g.Matched("google_ads", "customer_match_mobile_id", emails), 200)
	one := func(text string) int {
		return g.Matched("google_ads", "customer_match_email", []json.RawMessage{json.RawMessage(text)})
	}
	for i := range 50 {
		require.Equal(t, one(fmt.Sprintf(`"p%d@example.com"`, i)), one(fmt.Sprintf(`" P%d@Example.COM "`, i)))
	}
	require.Zero(t, one(`null`)+one(``)+one(`""`))
	require.Zero(t, g.Matched("google_ads", "offline_conversion", emails))
	require.Zero(t, g.Matched("google_ads", "nothing", emails))
	require.Zero(t, g.Matched("salesforce", "Contact", emails))
	require.Zero(t, g.Matched("custom_api", "x", emails))
}
