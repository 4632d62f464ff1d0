package destsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// exchangeOf is one call in full, as the control endpoint gives it.
func exchangeOf(t *testing.T, s *Sim, seq int) (x journalExchange) {
	t.Helper()
	w := control(s, "GET", fmt.Sprintf("/_control/journal/%d", seq), "")
	require.Equal(t, 200, w.Code, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &x))
	return x
}

// TestJournalKeepsBodies: only while it is switched on, without secrets, also not those
// that held when the call came.
func TestJournalKeepsBodies(t *testing.T) {
	s := newSim(t, Config{Token: "first-token", ControlToken: "control-token"})
	send := func(token, params string) {
		post(s, string(rpc.EncodeRequest(nil, rpc.MethodSyncBatch, []byte(params), "id-1")), "Authorization", "Bearer "+token)
	}
	keep := func(body string) int { return control(s, "POST", "/_control/journal", body).Code }
	batch := func(name string) string {
		return planOf(s, "contact", "upsert", "email", fmt.Sprintf(`{"email":"ada","last_name":%q}`, name))
	}
	send("first-token", batch("King"))
	x := exchangeOf(t, s, 1)
	require.Equal(t, []any{"off", int64(1)}, []any{x.Bodies, x.Entry.Seq})
	require.Equal(t, "null", string(x.Request))
	require.False(t, s.Journal(JournalFilter{}).Bodies)

	require.Equal(t, 200, keep(`{"bodies":true}`))
	require.True(t, s.Journal(JournalFilter{}).Bodies)
	send("first-token", batch("Lovelace first-token control-token"))
	require.Equal(t, 200, control(s, "POST", "/_control/hooks/rotate_token", `{"phase":"begin"}`).Code)
	send("guessed-token", batch("Byron guessed-token"))
	post(s, `{"oops guessed-token`, "Authorization", "Bearer guessed-token")
	x = exchangeOf(t, s, 2)
	require.Equal(t, "kept", x.Bodies)
	require.Contains(t, string(x.Request), `"last_name":"Lovelace [hidden] [hidden]"`)
	require.Contains(t, string(x.Response), `"success":true`)
	x = exchangeOf(t, s, 3)
	require.Contains(t, string(x.Request), "Byron [hidden]")
	require.Contains(t, string(x.Response), "authentication failed")
	require.Equal(t, `"{\"oops [hidden]"`, string(exchangeOf(t, s, 4).Request))

	require.Equal(t, 404, control(s, "GET", "/_control/journal/5", "").Code)
	require.Equal(t, 404, control(s, "GET", "/_control/journal/0", "").Code)
	require.Equal(t, 400, control(s, "GET", "/_control/journal/x", "").Code)
	require.Equal(t, 400, keep(`{}`))
	require.Equal(t, 200, keep(`{"bodies":false}`))
	require.Equal(t, "off", exchangeOf(t, s, 2).Bodies)
	require.Empty(t, s.journal.bodies.kept)
}

// TestKeptBodiesAreBounded: in bytes, each and all; a reset goes back to the configuration.
func TestKeptBodiesAreBounded(t *testing.T) {
	s := newSim(t, Config{KeepBodies: true})
	large := func(n int) { invoke(s, rpc.MethodListObjects, fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", n))) }
	large(largestBody)
	x := exchangeOf(t, s, 1)
	require.Equal(t, "kept", x.Bodies)
	require.Equal(t, "null", string(x.Request), "it is too large")
	require.Contains(t, string(x.Response), "contact")
	calls := bodyBytes/(60<<10) + 10
	for range calls {
		large(60 << 10)
	}
	require.LessOrEqual(t, s.journal.bodies.size, bodyBytes)
	require.Equal(t, "forgotten", exchangeOf(t, s, 2).Bodies)
	require.Equal(t, "kept", exchangeOf(t, s, 1+calls).Bodies)
	size := 0
	for i := range s.journal.bodies.kept {
		size += s.journal.bodies.kept[i].size()
	}
	require.Equal(t, size, s.journal.bodies.size)

	s.journal.keepBodies(false)
	require.NoError(t, s.Reset())
	large(1)
	require.Equal(t, "kept", exchangeOf(t, s, 1).Bodies)
	control(s, http.MethodDelete, "/_control/journal", "")
	require.Zero(t, s.journal.bodies.size)
}

// TestConsoleShowsACallInFull: with its bodies where they are kept, and what they break.
func TestConsoleShowsACallInFull(t *testing.T) {
	s := newSim(t, Config{Token: "endpoint-token"})
	page := func(path string) string {
		w := browse(t, s, "GET", consoleAt+path, nil)
		require.Equal(t, 200, w.Code, w.Body)
		require.NotContains(t, w.Body.String(), "endpoint-token", path)
		return w.Body.String()
	}
	call := func(method, params string) {
		post(s, string(rpc.EncodeRequest(nil, method, []byte(params), "id-1")), "Authorization", "Bearer endpoint-token")
	}
	call(rpc.MethodListObjects, `{}`)
	require.Contains(t, page("/requests/1"), "bodies were switched off when the call came")
	require.Contains(t, page("/requests/1"), "its bodies were not kept")
	require.Contains(t, page("/requests"), "Keep bodies from now on")
	w := browse(t, s, "POST", consoleAt+"/bodies", url.Values{"keep": {"on"}})
	require.Contains(t, w.Body.String(), "The bodies of calls are kept from now on.")
	require.Contains(t, w.Body.String(), "Stop keeping bodies")

	call(rpc.MethodSyncBatch, planOf(s, "contact", "upsert", "email", `{"email":"ada","last_name":"<b>King endpoint-token"}`))
	full := page("/requests/2")
	for _, part := range []string{"contact: upsert of 1, 1 succeeded", "Nothing in this breaks the OpenRPC document", "&lt;b&gt;King [hidden]", "curl -sS", "$DESTINATION_TOKEN", `href="/_control/console/records?object=contact"`} {
		require.Contains(t, full, part)
	}
	call(rpc.MethodListFields, `{"object":3}`)
	require.Contains(t, page("/requests/3"), "This breaks the OpenRPC document")
	require.Contains(t, page("/requests"), `href="/_control/console/requests/3"`)
	require.Equal(t, 404, browse(t, s, "GET", consoleAt+"/requests/9", nil).Code)
	require.Contains(t, browse(t, s, "POST", consoleAt+"/bodies", url.Values{"keep": {"off"}}).Body.String(), "those that were are forgotten")
	require.NotContains(t, page("/requests/2"), "King")
}
