package destsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// ticking is a clock that goes on by 10 ms with every look.
func ticking() func() time.Time {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return func() time.Time {
		now = now.Add(10 * time.Millisecond)
		return now
	}
}

func TestJournalTellsWhatHappened(t *testing.T) {
	s := newSim(t, Config{Token: "hush-token", Clock: ticking()})
	auth := []string{"Authorization", "Bearer hush-token"}
	call := func(method, params string, header ...string) {
		post(s, string(rpc.EncodeRequest(nil, method, []byte(params), "id-1")), header...)
	}
	call(rpc.MethodListObjects, `{}`, auth...)
	call(rpc.MethodListFields, `{"object":{"object_api_name":"contact"}}`, "Authorization", "Bearer wrong-hush")
	fault := armJSON(t, s, `{"kind":"record_failure","message":"hush-message","when":{"identifier":"b@x"}}`)
	call(rpc.MethodSyncBatch, fourRecords(s, "upsert"), auth...)
	post(s, `{"oops`, auth...)
	call(strings.Repeat("m", 200), `{}`, auth...)

	entries := s.Journal(JournalFilter{}).Entries
	require.Len(t, entries, 5)
	require.Equal(t, JournalEntry{
		Seq: 1, Received: entries[0].Received, DurationMS: entries[0].DurationMS, Verb: "POST", Method: "list_objects",
		ID: `"id-1"`, Status: 200, BytesIn: entries[0].BytesIn, BytesOut: entries[0].BytesOut, Faults: []string{},
	}, entries[0])
	require.Positive(t, entries[0].DurationMS)
	require.Positive(t, entries[0].BytesIn)
	require.Positive(t, entries[0].BytesOut)
	require.True(t, entries[1].Denied)
	require.Equal(t, 401, entries[1].Status)
	require.Equal(t, int64(codeUnauthorised), entries[1].ErrorCode)
	batch := entries[2]
	require.Equal(t, []any{"contact", "upsert", 4, 3, 1, int64(2), int64(1)},
		[]any{batch.Object, batch.Operation, batch.Records, batch.Succeeded, batch.Failed, batch.SyncID, batch.SyncRunID})
	require.Equal(t, []string{fault}, batch.Faults)
	require.Equal(t, int64(rpc.CodeParseError), entries[3].ErrorCode)
	require.Less(t, len(entries[4].Method), 80)

	text := control(s, http.MethodGet, "/_control/journal", "").Body.String()
	require.NotContains(t, text, "hush")
	require.NotContains(t, text, "b@x", "no values either")
}

func TestJournalFilters(t *testing.T) {
	s := newSim(t, Config{Clock: ticking()})
	invoke(s, rpc.MethodListObjects, `{}`)
	invoke(s, rpc.MethodListFields, `{"object":{"object_api_name":"order"}}`)
	fault := armJSON(t, s, `{"kind":"http_status","status":503,"when":{"operation":"insert"}}`)
	invoke(s, rpc.MethodSyncBatch, fourRecords(s, "insert"))
	since := s.Journal(JournalFilter{}).Entries[2].Received.Format(time.RFC3339Nano)
	invoke(s, rpc.MethodSyncBatch, fourRecords(s, "upsert"))

	cases := map[string][]int64{
		"":                                     {1, 2, 3, 4},
		"method=sync_batch":                    {3, 4},
		"object=order":                         {2},
		"operation=upsert":                     {4},
		"status=503":                           {3},
		"status=200&method=sync_batch":         {4},
		"fault=" + fault:                       {3},
		"fault=f99":                            {},
		"after=3":                              {4},
		"after=99":                             {},
		"since=" + url.QueryEscape(since):      {3, 4},
		"limit=2":                              {1, 2},
		"limit=1&after=1&control_token=ignore": {2},
	}
	for query, want := range cases {
		w := control(s, http.MethodGet, "/_control/journal?"+query, "")
		require.Equal(t, 200, w.Code, query)
		var page JournalPage
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
		seqs := []int64{}
		for _, e := range page.Entries {
			seqs = append(seqs, e.Seq)
		}
		require.Equal(t, want, seqs, query)
		require.Equal(t, int64(4), page.Total)
		require.Equal(t, strings.HasPrefix(query, "limit"), page.Next != nil, query)
	}
	for query, want := range map[string]string{
		"methods=x": "did you mean", "status=ok": `status: must be an HTTP status such as 429, 0 for a call without an answer, not \"ok\"`,
		"since=yesterday": "since: must be a time such as 2026-", "newest=x": "newest: must be true or false",
		"after=x": "after: must be a whole number", "limit=0": "limit: must be between 1 and 10000",
	} {
		w := control(s, http.MethodGet, "/_control/journal?"+query, "")
		require.Equal(t, 400, w.Code, query)
		require.Contains(t, w.Body.String(), want)
	}
	require.Equal(t, 200, control(s, http.MethodDelete, "/_control/journal", "").Code)
	require.Zero(t, s.Journal(JournalFilter{}).Total)
}

func TestJournalIsARing(t *testing.T) {
	s := newSim(t, Config{})
	const more = 7
	for range journalSize + more {
		post(s, `{`)
	}
	page := s.Journal(JournalFilter{})
	require.Equal(t, int64(journalSize+more), page.Total)
	require.Equal(t, int64(more), page.Dropped)
	require.Equal(t, int64(more+1), page.Entries[0].Seq)
	seen := int64(0)
	for after := int64(0); ; {
		page := s.Journal(JournalFilter{After: after, Limit: 3000})
		seen += int64(len(page.Entries))
		for i, e := range page.Entries {
			require.Equal(t, page.Entries[0].Seq+int64(i), e.Seq)
		}
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	require.Equal(t, int64(journalSize), seen)
}

func TestCallsWithoutAnAnswerAreInTheJournal(t *testing.T) {
	s, address := serve(t, Config{})
	fault := armJSON(t, s, `{"kind":"reset","at":"after"}`)
	_, _, err := httpCall(t, "http://"+address, rpc.MethodSyncBatch, fourRecords(s, "insert"))
	require.Error(t, err)
	none := 0
	// The client sees the reset before the handler has noted the call.
	require.Eventually(t, func() bool { return s.Journal(JournalFilter{}).Total == 1 }, time.Minute, time.Millisecond)
	entries := s.Journal(JournalFilter{Status: &none, Fault: fault}).Entries
	require.Len(t, entries, 1)
	require.Equal(t, 4, entries[0].Records)
	require.Zero(t, entries[0].BytesOut)
}

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

// TestConsoleShowsACallInFull: with its bodies where they are kept, and the rules that they break.
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
