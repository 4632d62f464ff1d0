package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/store"
)

// together are processes of one installation; all have the tokens that the first
// one has made.
func together(t testing.TB, processes ...string) []*world {
	t.Helper()
	url := postgresURL(testkit.StartPostgres(t))
	var list []*world
	for _, process := range processes {
		list = append(list, joining(t, url, process))
		w := list[len(list)-1]
		w.pat, w.key = list[0].pat, list[0].key
	}
	return list
}

func joining(t testing.TB, url, process string) *world {
	t.Helper()
	return newWorld(t, func(c *Config) {
		c.Store, c.MasterKey, c.Process, c.Role = url, make([]byte, masterKeySize), process, RoleAPI
	})
}

// table runs a statement on the schema of a world.
func (w *world) table(statement string, args ...any) {
	w.t.Helper()
	_, err := w.s.store.Pool().Exec(w.t.Context(), statement, args...)
	require.NoError(w.t, err)
}

func TestJournalsOfAllProcesses(t *testing.T) {
	list := together(t, "one", "other")
	one, other := list[0], list[1]
	ids := map[string]bool{}
	for i, w := range []*world{one, other, other, one} {
		id := w.do("GET", fmt.Sprintf("/users?page=%d", i+1), w.pat, nil).want(200).header.Get("X-Request-Id")
		require.Regexp(t, `^req_\d{12}$`, id)
		ids[id] = true
		// What has ended is seen at once, wherever it was.
		seen := one.control("GET", "/journal/requests", nil).want(200)
		require.EqualValues(t, i+1, seen.id("total"))
		require.Equal(t, id, seen.at(fmt.Sprintf("entries.%d.id", i)))
		require.Equal(t, w.s.config.Process, seen.at(fmt.Sprintf("entries.%d.process", i)))
		require.EqualValues(t, i+1, seen.id(fmt.Sprintf("entries.%d.number", i)))
	}
	require.Len(t, ids, 4, "no id was given twice")

	last := other.do("GET", "/users", "wrong-token", nil).want(401).header.Get("X-Request-Id")
	require.Empty(t, one.control("GET", "/journal/requests?after="+last, nil).want(200).at("entries"))
	page := other.control("GET", "/journal/requests?limit=2&status=200", nil).want(200)
	require.EqualValues(t, 2, page.id("next"))
	rest := one.control("GET", "/journal/requests?limit=2&status=200&after=2", nil).want(200)
	require.Equal(t, "page=3", rest.at("entries.0.query"))
	require.Nil(t, rest.at("next"))
	one.control("GET", "/journal/requests?after=req_999999999999", nil).want(400)

	destination := one.newDestination()
	calls := other.control("GET", fmt.Sprintf("/journal/calls?destination=%d", destination), nil).want(200)
	require.Equal(t, "test_connection", calls.at("entries.0.method"))
	require.Equal(t, "call_000000000001", calls.at("entries.0.id"))
	require.Equal(t, "one", calls.at("entries.0.process"))
	require.NotNil(t, calls.at("entries.0.response"))
	require.NotContains(t, string(calls.text), "destination-token")

	require.Equal(t, false, one.control("POST", "/journal", `{"bodies":false}`).want(200).at("bodies"))
	require.Equal(t, false, other.control("POST", "/journal", `{}`).want(200).at("bodies"))
	other.do("POST", "/workspaces", other.pat, map[string]any{"name": "Second"}).want(201)
	unkept := one.control("GET", "/journal/requests?operation=createWorkspace", nil).want(200)
	require.Nil(t, unkept.at("entries.0.request"))
	require.EqualValues(t, len(`{"name":"Second"}`), unkept.id("entries.0.request_bytes"))
	later := joining(t, one.s.config.Store, "later")
	require.Equal(t, false, later.control("POST", "/journal", `{}`).want(200).at("bodies"))

	other.do("GET", "/users", other.pat, nil).want(200)
	one.control("DELETE", "/journal/requests", nil).want(200)
	for _, w := range []*world{one, other, later} {
		empty := w.control("GET", "/journal/requests", nil).want(200)
		require.Empty(t, empty.at("entries"))
		require.EqualValues(t, 0, empty.id("total"))
	}
	require.NotEmpty(t, other.control("GET", "/journal/calls", nil).want(200).at("entries"))
	one.goOnWithIDs(t)
}

// TestSettingsThatWereMissed: a notice may be lost with its connection. Whoever hears
// that reads every setting again.
func TestSettingsThatWereMissed(t *testing.T) {
	w := together(t, "one")[0]
	bodies := func() any { return w.control("POST", "/journal", `{}`).want(200).at("bodies") }
	for _, kept := range []bool{false, true} {
		_, err := w.s.settings.All.Set(t.Context(), journal.Setting, func([]byte) ([]byte, error) { return json.Marshal(journal.KeptBodies{Bodies: kept}) })
		require.NoError(t, err)
		w.s.member.Missed()
		require.Eventually(t, func() bool { return bodies() == kept }, time.Minute, time.Millisecond)
	}
}

// A process that does not answer holds no other up for long, and a database that is
// away for a while loses no entry.
func TestJournalsInTrouble(t *testing.T) {
	list := together(t, "one", "other")
	one, other := list[0], list[1]
	one.do("GET", "/users", one.pat, nil).want(200)
	one.table("ALTER TABLE journal RENAME TO hidden")
	require.Error(t, one.s.journal.Calls.To.Write(t.Context()))
	one.do("GET", "/users", one.pat, nil).want(200)
	one.control("GET", "/journal/requests", nil).want(500)
	one.table("ALTER TABLE hidden RENAME TO journal")
	require.EqualValues(t, 2, one.control("GET", "/journal/requests", nil).want(200).id("total"))

	// What was committed without an answer is not written twice.
	book := &one.s.journal.Requests
	one.do("GET", "/users", one.pat, nil).want(200)
	book.Turn.Lock()
	book.Next = book.Batch(time.Now())
	batch := *book.Next
	require.NoError(t, book.WriteNext(t.Context()))
	batch.Again = true
	book.Next = &batch
	book.Turn.Unlock()
	require.EqualValues(t, 3, one.control("GET", "/journal/requests", nil).want(200).id("total"))

	// What is left when a process ends is written, too.
	other.do("GET", "/users", one.pat, nil).want(200)
	require.NoError(t, other.s.Close())
	require.Equal(t, "other", one.control("GET", "/journal/requests", nil).want(200).at("entries.3.process"))
}

// A block of ids follows another one without a wait.
func (w *world) goOnWithIDs(t *testing.T) {
	ids := &w.s.journal.IDs
	first := ids.Next()
	require.EqualValues(t, 0, (first-1)/journal.RequestBlock)
	ids.Mu.Lock()
	ids.Last = journal.RequestBlock - 3
	ids.Asking = true // as ask does
	ids.Mu.Unlock()
	require.EqualValues(t, journal.RequestBlock-2, ids.Next())
	ids.Ask()
	require.EqualValues(t, journal.RequestBlock-1, ids.Next())
	require.EqualValues(t, journal.RequestBlock, ids.Next())
	next := ids.Next()
	require.EqualValues(t, 1, next%journal.RequestBlock)
	require.Greater(t, next, int64(2*journal.RequestBlock), "the second block is that of the other process")
	ids.Restore(5, true)
	require.EqualValues(t, next+1, ids.Next(), "none is given twice")
}

func TestFaultsOfAllProcesses(t *testing.T) {
	list := together(t, "one", "other")
	one, other := list[0], list[1]
	// codes are those of calls that go to the processes in turn.
	codes := func(n int) []int {
		got := make([]int, n)
		for i := range got {
			got[i] = list[i%2].do("GET", "/users", one.pat, nil).code
		}
		return got
	}
	id := one.fault(map[string]any{"kind": "status", "status": 503, "after_n": 1, "every": 2})
	require.Equal(t, []int{200, 200, 503, 200, 503, 200}, codes(6))
	shown := other.control("GET", "/faults", nil).want(200)
	require.EqualValues(t, 6, shown.id("faults.0.matched"))
	require.EqualValues(t, 2, shown.id("faults.0.fired"))
	entries := one.control("GET", "/journal/requests?fault="+id, nil).want(200)
	require.Len(t, entries.at("entries"), 2)

	unfired := other.fault(map[string]any{"kind": "drop", "operation": "listSyncs", "retry_after": nil})
	require.Equal(t, "fault_2", unfired)
	require.Equal(t, unfired, one.control("GET", "/faults/unfired", nil).want(200).at("faults.0.id"))
	require.Empty(t, one.s.Faults().Unfired(), "the other process goes on")
	later := joining(t, one.s.config.Store, "later")
	require.Len(t, later.control("GET", "/faults", nil).want(200).at("faults"), 2, "a process that starts has them too")

	require.EqualValues(t, 6, other.control("DELETE", "/faults/"+id, nil).want(200).id("matched"))
	require.Equal(t, []int{200, 200, 200, 200}, codes(4))
	one.control("DELETE", "/faults/"+id, nil).want(404)
	require.Len(t, one.control("DELETE", "/faults", nil).want(200).at("faults"), 1)
	require.Zero(t, other.s.faults.Armed.Load())
	require.Equal(t, "fault_1", other.fault(map[string]any{"kind": "latency", "latency": "1ms", "times": 1}))
	require.Equal(t, []int{200, 200}, codes(2))
	require.Empty(t, one.control("GET", "/faults/unfired", nil).want(200).at("faults"))
	one.control("DELETE", "/faults", nil).want(200)

	t.Run("by chance", func(t *testing.T) { faultsByChanceInTurn(t, list) })
	t.Run("at the same time", func(t *testing.T) { faultsCountEachCallOnce(t, list) })

	// The last one reports what never fired.
	one.fault(map[string]any{"kind": "drop", "operation": "listSyncs"})
	require.Empty(t, one.s.Faults().Unfired())
	require.NoError(t, other.s.Close())
	require.NoError(t, later.s.Close())
	require.Len(t, one.s.Faults().Unfired(), 1)
}

// The same seed strikes the same calls, whoever takes them.
func faultsByChanceInTurn(t *testing.T, list []*world) {
	trigger := map[string]any{"kind": "status", "probability": 0.5, "seed": 7}
	alone := newWorld(t)
	alone.fault(trigger)
	list[0].fault(trigger)
	for i, want := range alone.codes(20) {
		require.Equal(t, want, list[i%2].do("GET", "/users", list[0].pat, nil).code, "call %d", i)
	}
	list[0].control("DELETE", "/faults", nil).want(200)
}

// Calls at the same time do not take each other's turn.
func faultsCountEachCallOnce(t *testing.T, list []*world) {
	list[0].fault(map[string]any{"kind": "status", "first_n": 10})
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for _, w := range list {
		for range 3 {
			wg.Go(func() {
				for range 5 {
					r := httptest.NewRequest("GET", api.BasePath+"/users", nil)
					r.Header.Set("Authorization", "Bearer "+w.pat)
					recorder := httptest.NewRecorder()
					w.s.ServeHTTP(recorder, r)
					mu.Lock()
					codes[recorder.Code]++
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, map[int]int{500: 10, 200: 20}, codes)
	list[0].control("DELETE", "/faults", nil).want(200)
}

// TestTrustOfAllProcesses: certificates hold everywhere, and for who starts later.
func TestTrustOfAllProcesses(t *testing.T) {
	list := together(t, "one", "other")
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	certificate := string(pemOf(server))
	require.EqualValues(t, 1, list[0].control("POST", "/trust", "left out\n"+certificate).want(200).id("trusted"))
	list[1].control("POST", "/trust", certificate).want(200)
	list[1].control("POST", "/trust", "no certificate").want(400)
	for _, w := range append(list, joining(t, list[0].s.config.Store, "later")) {
		require.Equal(t, len(certificate), w.s.trust.Followed(), w.s.config.Process)
		require.Equal(t, strings.TrimSpace(certificate), strings.TrimSpace(string(w.s.forks.Trusted())))
		client, problem := w.s.gate.HookClient(server.URL)
		require.Empty(t, problem)
		resp, err := client.Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
}

// TestRefreshOfAnotherProcess: others see how it goes, and that no one goes on with
// it when its process is gone.
func TestRefreshOfAnotherProcess(t *testing.T) {
	list := together(t, "one", "other")
	one, other := list[0], list[1]
	id := one.newDestination()
	reached, release := one.hold()
	key := one.do("POST", fmt.Sprintf("/destinations/%d/refresh_objects", id), one.key, nil).want(200).id("refresh_key")
	<-reached
	status := func(w *world) any {
		return w.do("GET", fmt.Sprintf("/destinations/%d/refresh_objects_status?refresh_key=%d", id, key), w.key, nil).want(200).at("status")
	}
	joining(t, one.s.config.Store, "later")
	require.Equal(t, "processing", status(other))
	require.Equal(t, "processing", status(one))
	require.NoError(t, one.s.member.Leases().Leave(t.Context())) // as if it were gone
	require.Equal(t, "failed", status(other))
	release()
	require.NoError(t, one.s.Settle(t.Context()))
	require.Equal(t, "failed", status(one), "what was told once stays")
}

// TestDestinationChangedElsewhere: no process shows what another one has replaced.
func TestDestinationChangedElsewhere(t *testing.T) {
	list := together(t, "one", "other")
	one, other := list[0], list[1]
	id := one.newDestination()
	path := fmt.Sprintf("/destinations/%d", id)
	before := other.do("GET", path+"/objects", other.key, nil).want(200).id("pagination.total_records")
	require.NotZero(t, before)
	require.NoError(t, one.s.store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.PutObjectCache(id, &store.ObjectCache{FetchedAt: one.s.Clock().Now()})
	}))
	require.EqualValues(t, 0, other.do("GET", path+"/objects", other.key, nil).want(200).id("pagination.total_records"))

	heard := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := make(chan struct{})
	go func() {
		_ = other.s.store.Listen(ctx, func(topic, text string) {
			switch topic {
			case "":
				close(ready)
			case destinations.Topic:
				heard <- text
			}
		})
	}()
	<-ready
	one.do("PATCH", path, one.key, map[string]any{"service_connection": map[string]any{"name": "Renamed"}}).want(200)
	require.Equal(t, fmt.Sprintf("%d changed one", id), <-heard)
	one.do("DELETE", path, one.key, nil).want(200)
	require.Equal(t, fmt.Sprintf("%d gone one", id), <-heard)
	other.do("GET", path, other.key, nil).want(404)
	other.s.destinations.Hear("no notice")
}
