package server

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
)

// liveWorld is a world with a topic of people and one live sync of it.
type liveWorld struct {
	*syncWorld
	stream, topic, sync int64
}

func newLiveWorld(t testing.TB, changes map[string]any, change ...func(*Config)) liveWorld {
	w := liveWorld{syncWorld: newSyncWorld(t, change...)}
	w.stream = w.newTopicSource()
	w.topic = w.do("POST", fmt.Sprintf("/sources/%d/topics", w.stream), w.key, map[string]any{
		"name": "people", "sample_message": map[string]any{"email": "a@example.com", "name": "A", "age": 1},
	}).want(201).id("data.id")
	if changes != nil {
		w.sync = w.live(changes)
	}
	return w
}

// live makes a live sync of the topic: the email is the identifier.
func (w liveWorld) live(changes map[string]any) int64 {
	body := map[string]any{
		"source_attributes": map[string]any{"connection_id": w.stream, "object": map[string]any{"type": "topic", "id": w.topic}},
		"mode":              map[string]any{"type": "live"},
	}
	maps.Copy(body, changes)
	return w.kept(body).id("data.id")
}

// post appends messages, each "email name", and waits until all is quiet.
func (w liveWorld) post(people ...string) *answer {
	w.t.Helper()
	var lines []string
	for _, one := range people {
		email, name, _ := strings.Cut(one, " ")
		lines = append(lines, fmt.Sprintf(`{"email":%q,"name":%q}`, email, name))
	}
	a := w.control("POST", fmt.Sprintf("/topics/%d/messages", w.topic), strings.Join(lines, "\n")).want(201)
	w.control("POST", "/settle", nil).want(200)
	return a
}

// told are the runs of the sync, oldest first, each as "status: counters".
func (w liveWorld) told() (out []string) {
	w.t.Helper()
	runs := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs?order=asc&per_page=100", w.sync), w.key, nil).want(200)
	for i := range runs.at("data").([]any) {
		run := w.do("GET", fmt.Sprintf("/sync_runs/%d", runs.id(fmt.Sprintf("data.%d.id", i))), w.key, nil).want(200)
		out = append(out, fmt.Sprint(run.at("data.status"), " ", run.counts()))
		if run.at("data.status") == "failed" {
			out = append(out, string(run.text))
		}
	}
	return out
}

// stored is what the destination has, as "email name".
func (w liveWorld) stored() map[string]bool {
	w.t.Helper()
	records, _ := w.records("person")
	out := map[string]bool{}
	for _, r := range records {
		out[string(r.Fields)] = true
	}
	return out
}

func (w liveWorld) state() *answer {
	w.t.Helper()
	return w.control("GET", fmt.Sprintf("/topics/%d", w.topic), nil).want(200)
}

func (w liveWorld) arm(f destsim.Fault) {
	w.t.Helper()
	must(w.sim.ArmFault(f))(w.t)
}

// TestLiveRecordMapping: each message starts a run, the latest message of an
// identifier counts, and a run sends only what was not acknowledged.
func TestLiveRecordMapping(t *testing.T) {
	w := newLiveWorld(t, map[string]any{"sync_behavior_family": "mapRecords"})
	require.Empty(t, w.told(), "nothing to read yet")
	w.post("ada@x.io Ada")
	w.post("bob@x.io Bob", "ada@x.io A.", "ada@x.io Countess", "bob@x.io Bob")
	w.post("ada@x.io Countess")
	require.Equal(t, []string{"completed [1 1 0 0 1 1 0]", "completed [4 2 0 0 2 2 0]", "completed [1 0 0 0 0 0 0]"}, w.told())
	require.Len(t, w.stored(), 2)
	require.Contains(t, fmt.Sprint(w.stored()), "Countess")
	state := w.state()
	state.is("messages", 6, "readers.0.position", 6, "readers.0.behind", 0)
	run := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", w.sync), w.key, nil).want(200)
	require.Equal(t, "Live", run.at("data.0.sync_trigger_reason.ui_tag"))
}

// TestLiveEvents: every message is one record, once for the life of the sync.
func TestLiveEvents(t *testing.T) {
	w := newLiveWorld(t, map[string]any{"sync_behavior_family": "activateEvents"})
	w.post("ada@x.io Ada", "bob@x.io Bob", "ada@x.io Countess", "ada@x.io Countess")
	w.post("ada@x.io Last")
	require.Equal(t, []string{"completed [4 4 0 0 4 4 0]", "completed [1 1 0 0 1 1 0]"}, w.told())
	require.Contains(t, fmt.Sprint(w.stored()), "Last")
	w.do("POST", fmt.Sprintf("/syncs/%d/trigger?force_full_sync=true", w.sync), w.key, nil).want(400)
	require.Equal(t, [7]int64{0, 0, 0, 0, 0, 0, 0}, w.runs(w.sync).counts())
	meta := must(w.s.ledger.Sync(w.sync).Meta())(t)
	require.Zero(t, meta.Rows, "what lies below the position is not kept")
}

// TestLivePause: messages of a paused sync wait.
func TestLivePause(t *testing.T) {
	w := newLiveWorld(t, map[string]any{"paused": true})
	w.post("ada@x.io Ada")
	w.post("bob@x.io Bob")
	require.Empty(t, w.told())
	require.EqualValues(t, 2, w.state().id("readers.0.behind"))
	body := w.do("GET", fmt.Sprintf("/syncs/%d", w.sync), w.key, nil).want(200).at("data").(map[string]any)
	for _, name := range []string{"id", "status", "created_at", "updated_at"} {
		delete(body, name)
	}
	body["paused"] = false
	w.do("PATCH", fmt.Sprintf("/syncs/%d", w.sync), w.key, body).want(200)
	w.control("POST", "/settle", nil).want(200)
	require.Equal(t, []string{"completed [2 2 0 0 2 2 0]"}, w.told())
}

// TestLiveRefusal: a message that was refused is sent again after a while, and
// those behind it are not.
func TestLiveRefusal(t *testing.T) {
	for _, family := range []string{"mapRecords", "activateEvents"} {
		t.Run(family, func(t *testing.T) {
			w := newLiveWorld(t, map[string]any{"sync_behavior_family": family})
			w.control("POST", "/clock", `{"freeze":true}`).want(200)
			w.arm(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Method: "sync_batch", Times: 3}})
			w.post("ada@x.io Ada")
			w.control("POST", "/clock", `{"advance":"30s"}`).want(200)
			require.Equal(t, []string{"completed [1 1 0 0 1 0 1]"}, w.told())
			require.EqualValues(t, 1, w.state().id("readers.0.behind"))
			w.control("POST", "/clock", `{"advance":"1m"}`).want(200)
			require.Equal(t, []string{"completed [1 1 0 0 1 0 1]", "completed [1 1 0 0 1 1 0]"}, w.told())
			require.EqualValues(t, 0, w.state().id("readers.0.behind"))
			w.control("POST", "/clock", `{"advance":"24h"}`).want(200)
			require.Len(t, w.told(), 2, "nothing is left to try")
		})
	}
}

// TestLiveDuringARun: what is posted while a run works is read by the next one,
// which follows at once.
func TestLiveDuringARun(t *testing.T) {
	w := newLiveWorld(t, map[string]any{})
	w.post("ada@x.io Ada")
	reached, release := w.hold()
	path := fmt.Sprintf("/topics/%d/messages", w.topic)
	w.control("POST", path, `{"email":"bob@x.io","name":"Bob"}`).want(201)
	<-reached
	w.control("POST", path, `[{"email":"eve@x.io","name":"Eve"},{"email":"joe@x.io","name":"Joe"}]`).want(201)
	w.control("POST", path, `{"email":"kim@x.io","name":"Kim"}`).want(201)
	release()
	w.control("POST", "/settle", nil).want(200)
	require.Len(t, w.stored(), 5)
	require.LessOrEqual(t, len(w.told()), 3, "%v", w.told())
}

// TestLiveSkipsWhatIsThere: the first run of such a sync is at its creation, so
// that no later message is skipped (spec 2.6, historical_sync_operation).
func TestLiveSkipsWhatIsThere(t *testing.T) {
	w := newLiveWorld(t, nil)
	w.post("ada@x.io Ada", "bob@x.io Bob")
	w.sync = w.live(w.spreadsheet(map[string]any{"historical_sync_operation": "skip_current_records"}))
	w.control("POST", "/settle", nil).want(200)
	require.Equal(t, []string{"completed [0 0 0 0 0 0 0]"}, w.told())
	w.post("eve@x.io Eve", "eve@x.io Eve")
	require.Equal(t, "completed [2 2 0 0 2 2 0]", w.told()[1], "the same message twice is two events")

	backfill := w.live(w.spreadsheet(map[string]any{"historical_sync_operation": "backfill_all_records"}))
	w.control("POST", "/settle", nil).want(200)
	w.sync = backfill
	require.Equal(t, []string{"completed [4 4 0 0 4 4 0]"}, w.told())
}

// TestTopicRetention drops what is old, and nothing that a sync has still to send.
func TestTopicRetention(t *testing.T) {
	w := newLiveWorld(t, map[string]any{"paused": true})
	path := fmt.Sprintf("/topics/%d", w.topic)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	w.post("a@x.io A", "b@x.io B", "c@x.io C")
	w.control("PATCH", path, `{"retention":{"messages":1}}`).want(200)
	require.EqualValues(t, 3, w.state().id("messages"), "the paused sync wants them")
	require.Equal(t, [7]int64{3, 3, 0, 0, 3, 3, 0}, w.runs(w.sync).counts())
	w.post("d@x.io D")
	state := w.state()
	require.EqualValues(t, 1, state.id("messages"), string(state.text))
	state.is("dropped", 3, "last", 4)

	require.Equal(t, [7]int64{1, 1, 0, 0, 1, 1, 0}, w.runs(w.sync).counts())
	w.control("PATCH", path, `{"retention":{"age":"1h"}}`).want(200)
	w.control("POST", "/clock", `{"advance":"2h"}`).want(200)
	w.post("e@x.io E")
	list := w.control("GET", path+"/messages", nil).want(200)
	require.EqualValues(t, 5, list.id("messages.0.number"))
	require.Len(t, list.at("messages"), 1)
	for _, body := range []string{`{}`, `{"retention":{"age":"soon"}}`, `{"retention":{"messages":-1}}`, `{"retention":{"mesages":1}}`} {
		w.control("PATCH", path, body).want(400)
	}
	w.control("GET", "/topics/99", nil).want(404)
	w.control("PATCH", path, `{"retention":{}}`).want(200)
}

// TestTopicMisfits: a message that the schema does not describe is kept, its sender is
// notified, and a value that cannot be cast makes the record invalid.
func TestTopicMisfits(t *testing.T) {
	w := newLiveWorld(t, map[string]any{})
	a := w.control("POST", fmt.Sprintf("/topics/%d/messages", w.topic), `[{"email":null,"name":"A"},{"email":"b@x.io","name":"B","age":"old","city":1}]`).want(201)
	require.Len(t, a.at("misfits"), 2)
	a.is("misfits.0.number", 2, "misfits.0.field", "age")
	require.Contains(t, a.at("misfits.0.message"), "number")
	require.Equal(t, "city", a.at("misfits.1.field"))
	w.control("POST", "/settle", nil).want(200)
	require.Equal(t, []string{"completed [2 1 0 1 1 1 0]"}, w.told())
	w.control("POST", fmt.Sprintf("/topics/%d/messages", w.topic), []byte("{\"name\":\"\xff\"}")).want(400)
}

// TestLiveGoesOnAfterAStop: a process that stops with messages that were not
// read, or in the middle of a run, reads them after its next start.
func TestLiveGoesOnAfterAStop(t *testing.T) {
	w := newLiveWorld(t, map[string]any{}, inDir(t), func(c *Config) { c.CallTimeout = time.Minute })
	w.post("ada@x.io Ada")
	reached, release := w.hold()
	w.control("POST", fmt.Sprintf("/topics/%d/messages", w.topic), `{"email":"bob@x.io","name":"Bob"}`).want(201)
	<-reached
	w.control("POST", fmt.Sprintf("/topics/%d/messages", w.topic), `{"email":"eve@x.io","name":"Eve"}`).want(201)
	go func() {
		<-w.s.background.Ctx.Done()
		release()
	}()
	w.again(nil)
	w.control("POST", "/settle", nil).want(200)
	require.Len(t, w.stored(), 3)
	require.EqualValues(t, 0, w.state().id("readers.0.behind"))
}
