package destsim

import (
	"encoding/json"
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
