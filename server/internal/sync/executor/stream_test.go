package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// topic is a log in memory.
type topic struct{ messages []string }

func (o *topic) Schema(context.Context, string) (map[string]string, error) {
	return map[string]string{"id": "number", "name": "string", "level": "number"}, nil
}

func (o *topic) Last(context.Context, string) (int64, error) { return int64(len(o.messages)), nil }

func (o *topic) Messages(_ context.Context, _ string, after int64, limit int) (page []source.Message, err error) {
	for i := after; i < int64(len(o.messages)) && len(page) < limit; i++ {
		page = append(page, source.Message{Position: i + 1, Body: json.RawMessage(o.messages[i])})
	}
	return page, nil
}

// post appends a message: id, name and level.
func (o *topic) post(id int, name string, level int) {
	o.messages = append(o.messages, fmt.Sprintf(`{"level":%d,"name":%q,"id":%d}`, level, name, id))
}

// newStream is a world whose source is a topic.
func newStream(t testing.TB, family string, s setup) (*world, *topic) {
	w, log := newWorld(t, s), &topic{}
	src, err := source.Open(t.Context(), "topic_log", nil, source.Options{Topics: log})
	require.NoError(t, err)
	w.source = src
	w.config = ofTopic(w.config, family)
	return w, log
}

// ofTopic lets a sync read a topic.
func ofTopic(c api.SyncConfig, family string) api.SyncConfig {
	c.SyncBehaviorFamily = &family
	c.SourceAttributes.Object = api.SourceObject{Type: api.ObjectTopic, ID: api.Ptr(int64(3))}
	return c
}

func TestStreamOfEvents(t *testing.T) {
	w, log := newStream(t, api.FamilyActivateEvents, setup{})
	var order []string
	for i := range 95 {
		log.post(i%7, fmt.Sprint("n", i), i)
	}
	log.messages = append(log.messages, `{"id":null}`, `{"id":"x"}`)
	o := w.sync()
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	require.Equal(t, [8]int64{97, 95, 0, 2, 95, 95, 0, 2}, counts(o))
	require.EqualValues(t, 97, o.Position)
	require.Equal(t, "message 96: the primary identifier is NULL", o.Samples[0].Reason)
	for id, value := range w.stored() {
		order = append(order, id+" "+value)
	}
	slices.Sort(order)
	require.Equal(t, `0 "n91" 91,1 "n92" 92,2 "n93" 93,3 "n94" 94,4 "n88" 88,5 "n89" 89,6 "n90" 90`, strings.Join(order, ","), "the later message of an identifier comes later")
	require.Equal(t, [8]int64{}, counts(w.sync()))
	log.post(1, "again", 1)
	w.config.Mappings = w.config.Mappings[:2]
	o = w.sync()
	require.Equal(t, [8]int64{1, 1, 0, 0, 1, 1, 0, 0}, counts(o), "another mapping sends nothing again")
	require.False(t, o.FullSync)
	meta, err := w.ledger.Sync(7).Meta()
	require.NoError(t, err)
	require.Zero(t, meta.Rows)
}

func TestStreamOfRecords(t *testing.T) {
	w, log := newStream(t, api.FamilyMapRecords, setup{})
	for i := range 40 {
		log.post(i%4, fmt.Sprint("n", i), i)
	}
	log.messages = append(log.messages, `{"id":3,"level":"high"}`)
	o := w.sync()
	require.Equal(t, [8]int64{41, 4, 0, 1, 4, 4, 0, 1}, counts(o), "an invalid message hides no valid one")
	require.Equal(t, map[string]string{"0": `"n36" 36`, "1": `"n37" 37`, "2": `"n38" 38`, "3": `"n39" 39`}, w.stored())
	log.post(2, "n38", 38)
	log.post(0, "new", 0)
	require.Equal(t, [8]int64{2, 1, 0, 0, 1, 1, 0, 0}, counts(w.sync()), "what says the same is not sent")
	w.change = func(j *Job) { j.Full = true }
	o = w.sync()
	require.Equal(t, [8]int64{43, 4, 0, 1, 4, 4, 0, 1}, counts(o), "a full sync reads the topic from its beginning")
	w.change = nil
	w.config.SyncBehaviorFamily = api.Ptr(api.FamilyActivateEvents)
	log.post(9, "event", 9)
	require.Equal(t, [8]int64{1, 1, 0, 0, 1, 1, 0, 0}, counts(w.sync()), "the position outlives a change of the family")
}

// TestStreamPositionWaitsForARefusal: it stays before the first message that was
// refused to the end, and messages acknowledged behind it are not sent again.
func TestStreamPositionWaitsForARefusal(t *testing.T) {
	for _, family := range []string{api.FamilyMapRecords, api.FamilyActivateEvents} {
		t.Run(family, func(t *testing.T) {
			w, log := newStream(t, family, setup{})
			for i := range 30 {
				log.post(i, "n", i)
			}
			w.arm(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Identifier: json.RawMessage("12"), Times: 3}})
			o := w.sync()
			require.Equal(t, [8]int64{30, 30, 0, 0, 30, 29, 1, 0}, counts(o))
			meta, err := w.ledger.Sync(7).Meta()
			require.NoError(t, err)
			require.Equal(t, "12", string(meta.HighWater))
			require.Equal(t, [8]int64{18, 1, 0, 0, 1, 1, 0, 0}, counts(w.sync()))
			require.Equal(t, [8]int64{}, counts(w.sync()))
			require.Len(t, w.stored(), 30)
		})
	}
}

// TestStreamIsEndedOnce: a run that had come to its end, and whose end no one has
// noted, sends nothing again and has the same counters; a full one too.
func TestStreamIsEndedOnce(t *testing.T) {
	for _, family := range []string{api.FamilyMapRecords, api.FamilyActivateEvents} {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprint(family, " ", full), func(t *testing.T) {
				w, log := newStream(t, family, setup{})
				for i := range 40 {
					log.post(i%20, "n", i)
				}
				w.sync()
				for i := range 30 {
					log.post(i%10, "m", i)
				}
				w.change = func(j *Job) { j.Full = full }
				first := w.sync()
				require.Equal(t, api.RunCompleted, first.Status, "%+v", first)
				second := w.again(t.Context())
				require.Equal(t, counts(first), counts(second))
				require.Zero(t, second.Calls)
				w.change = nil
				require.Zero(t, w.sync().SourceRecords)
			})
		}
	}
}

// TestStreamKilledAtEveryPoint kills the process in a run over a topic and goes on
// with it: no message is lost, and each counts once.
func TestStreamKilledAtEveryPoint(t *testing.T) {
	for _, family := range []string{api.FamilyMapRecords, api.FamilyActivateEvents} {
		for _, point := range deathPoints() {
			if family == api.FamilyActivateEvents && point == ledger.MidMerge {
				continue // the state keeps no event below the position: nothing is merged
			}
			t.Run(family+" "+point, func(t *testing.T) {
				t.Parallel()
				w, log := newStream(t, family, setup{})
				dir := t.TempDir()
				w.open(ledger.Options{Dir: dir})
				for i := range 60 {
					log.post(i, "n", i)
				}
				require.EqualValues(t, 60, w.sync().Updated)
				require.NoError(t, w.ledger.Close())
				for i := range 60 {
					log.post(30+i, "m", i)
				}
				at := 3
				if strings.Contains(point, "merge") || strings.Contains(point, "rename") {
					at = 1
				}
				w.killed(dir, point, at)
				log.post(200, "late", 1)
				o := w.again(t.Context())
				require.Equal(t, [8]int64{61, 61, 0, 0, 61, 61, 0, 0}, counts(o), "%+v", o)
				require.Len(t, w.stored(), 91)
				require.Equal(t, `"m" 59`, w.stored()["89"])
				require.Equal(t, `"n" 29`, w.stored()["29"])
				require.Zero(t, w.sync().SourceRecords)
			})
		}
	}
}

// TestStreamMatchesAModel: random messages, refusals and stops. Every valid
// message is acknowledged exactly once as an event, and the destination holds
// the latest of each identifier as a record.
func TestStreamMatchesAModel(t *testing.T) {
	matrixtest.Long(t)
	rapid.Check(t, func(rt *rapid.T) {
		opened, err := ledger.Open(ledger.Options{})
		require.NoError(t, err)
		events := rapid.Bool().Draw(rt, "events")
		family := api.FamilyMapRecords
		if events {
			family = api.FamilyActivateEvents
		}
		w, log := newStream(t, family, setup{options: Options{Ledger: opened}})
		want := map[string]string{}
		acknowledged := int64(0)
		for step := range rapid.IntRange(1, 6).Draw(rt, "runs") {
			for range rapid.IntRange(0, 25).Draw(rt, "messages") {
				id, level := rapid.IntRange(1, 6).Draw(rt, "id"), len(log.messages)
				log.post(id, "n", level)
				want[fmt.Sprint(id)] = fmt.Sprintf(`"n" %d`, level)
			}
			if rapid.Bool().Draw(rt, "refuse") {
				id := rapid.IntRange(1, 6).Draw(rt, "refused")
				w.arm(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Identifier: json.RawMessage(fmt.Sprint(id)), Times: rapid.Int64Range(1, 4).Draw(rt, "times")}})
			}
			w.run = int64(step + 1)
			if rapid.Bool().Draw(rt, "stop") {
				ctx, stop := context.WithCancelCause(t.Context())
				at := rapid.Int64Range(1, 10).Draw(rt, "at")
				w.change = func(j *Job) {
					j.Report = func(p Progress) {
						if p.Updated >= at {
							stop(ErrStop)
						}
					}
				}
				w.again(ctx)
				w.change = nil
			}
			o := w.again(t.Context())
			require.Equal(rt, api.RunCompleted, o.Status, "%+v", o)
			acknowledged += o.Updated
		}
		for again := 0; ; again++ { // refusals come to an end
			require.Less(rt, again, 30)
			o := w.sync()
			acknowledged += o.Updated
			if o.Processed == 0 {
				break
			}
		}
		meta, err := w.ledger.Sync(7).Meta()
		require.NoError(rt, err)
		if len(log.messages) > 0 {
			require.Equal(rt, fmt.Sprint(len(log.messages)), string(meta.HighWater))
		}
		if events {
			require.EqualValues(rt, len(log.messages), acknowledged, "each message once")
			require.Zero(rt, meta.Rows)
			require.Len(rt, w.stored(), len(want))
			return
		}
		require.Equal(rt, want, w.stored())
	})
}
