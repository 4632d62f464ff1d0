package destsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// text is the snapshot of a simulator.
func text(t require.TestingT, s *Sim) string {
	var b bytes.Buffer
	require.NoError(t, s.Snapshot(&b))
	return b.String()
}

// pairs runs fn with every pair of stores.
func pairs(t *testing.T, fn func(t *testing.T, from, to Config)) {
	stores(t, func(t *testing.T, from Config) {
		t.Run("to", func(t *testing.T) {
			stores(t, func(t *testing.T, to Config) { fn(t, from, to) })
		})
	})
}

// TestSnapshotRoundTrip: whatever was done to one simulator, another one that
// gets its snapshot cannot be distinguished from it, neither by a second
// snapshot nor by the answers to further calls.
func TestSnapshotRoundTrip(t *testing.T) {
	pairs(t, func(t *testing.T, from, to Config) {
		from.Seed, to.Seed = 7, 8
		a, b := newSim(t, from), newSim(t, to)
		rapid.Check(t, func(rt *rapid.T) {
			require.NoError(rt, a.Reset())
			for range rapid.IntRange(0, 12).Draw(rt, "steps") {
				randomStep(t, rt, a)
			}
			saved := text(rt, a)
			require.NoError(rt, b.Restore(strings.NewReader(saved)))
			require.Equal(rt, saved, text(rt, b))
			require.Equal(rt, invoke(a, rpc.MethodListObjects, "{}"), invoke(b, rpc.MethodListObjects, "{}"))
			record := `{"email":"k1","last_name":"after"}`
			if a.catalogue.Load().byName["contact"] != nil {
				require.Equal(rt, write(t, a, "contact", "upsert", record), write(t, b, "contact", "upsert", record))
			}
			require.Equal(rt, text(rt, a), text(rt, b), "ids go on alike")
		})
	})
}

// randomStep changes records, the schema or a setting.
func randomStep(t *testing.T, rt *rapid.T, s *Sim) {
	key := func() string { return fmt.Sprintf("k%d", rapid.IntRange(0, 5).Draw(rt, "key")) }
	value := string(store.Quote(rapid.StringN(0, 4, -1).Draw(rt, "value")))
	change := func(path, body string) { control(s, "POST", "/_control/"+path, body) }
	switch rapid.IntRange(0, 8).Draw(rt, "kind") {
	case 0, 1, 2:
		if s.catalogue.Load().byName["contact"] != nil {
			operation := rapid.SampledFrom([]string{"upsert", "delete", "insert"}).Draw(rt, "operation")
			write(t, s, "contact", operation, `{"email":"`+key()+`","last_name":`+value+`}`, `{"email":"`+key()+`","last_name":"x"}`)
		}
	case 3: // creates fields on write
		write(t, s, "event", "upsert", `{"event_id":"`+key()+`","made_`+key()+`":`+value+`}`)
	case 4:
		change("schema", `{"action":"add_field","object":"contact","definition":{"name":"`+key()+`","type":"string","unique":true}}`)
	case 5:
		change("schema", `{"action":"rename_field","object":"contact","field":"`+key()+`","to":"renamed_`+key()+`"}`)
	case 6:
		change("schema", fmt.Sprintf(`{"action":"set_rate_limit","rate_limit":%d}`, rapid.IntRange(0, 9).Draw(rt, "limit")))
	case 7:
		change("hooks/"+rapid.SampledFrom([]string{"alter_schema", "rotate_token", "break_downstream"}).Draw(rt, "hook"),
			`{"action":"`+rapid.SampledFrom([]string{"begin", "end"}).Draw(rt, "action")+`"}`)
	case 8:
		change("schema", `{"action":"remove_object","object":"contact"}`)
	}
}

// TestSnapshotUnderWrites: a batch is in a snapshot as a whole or not at all.
// Each batch gives two records the same value.
func TestSnapshotUnderWrites(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for writer := range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					a, b := fmt.Sprintf("a%d", writer), fmt.Sprintf("b%d", writer)
					invoke(s, rpc.MethodSyncBatch, planOf(s, "contact", "upsert", "email",
						fmt.Sprintf(`{"email":%q,"last_name":"%d"}`, a, n), fmt.Sprintf(`{"email":%q,"last_name":"%d"}`, b, n)))
				}
			})
		}
		for range 30 {
			copied := newSim(t, Config{})
			require.NoError(t, copied.Restore(strings.NewReader(text(t, s))))
			for writer := range 4 {
				a := stored(t, copied, "contact", "email", fmt.Sprintf(`"a%d"`, writer))
				b := stored(t, copied, "contact", "email", fmt.Sprintf(`"b%d"`, writer))
				require.Equal(t, strings.ReplaceAll(a, `"a`, `"b`), b)
			}
		}
		close(stop)
		wg.Wait()
	})
}

// TestRestoreUnderWrites: calls go on, and records acknowledged after the
// restore are there.
func TestRestoreUnderWrites(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		write(t, s, "contact", "upsert", `{"email":"old","last_name":"x"}`)
		saved := text(t, s)
		var wg sync.WaitGroup
		for writer := range 4 {
			wg.Go(func() {
				for n := range 20 {
					answer := invoke(s, rpc.MethodSyncBatch, planOf(s, "contact", "upsert", "email", fmt.Sprintf(`{"email":"%d-%d","last_name":"x"}`, writer, n)))
					require.Contains(t, answer, `"success":true`)
				}
			})
		}
		for range 5 {
			require.NoError(t, s.Restore(strings.NewReader(saved)))
		}
		wg.Wait()
		require.NoError(t, s.Restore(strings.NewReader(saved)))
		_, total, err := s.Records("contact", 0, 0)
		require.NoError(t, err)
		require.Equal(t, 1, total)
		require.Equal(t, []string{"ok"}, write(t, s, "contact", "insert", `{"email":"new","last_name":"x"}`))
		require.NotEmpty(t, stored(t, s, "contact", "email", `"new"`))
	})
}

func TestRestoreRefusesAndChangesNothing(t *testing.T) {
	const head = `{"snapshot":"destsim","version":1,"last_id":9}` + "\n"
	const settings = `{"settings":{"speed":{"maximum_batch_size":1,"maximum_parallel_batches":1,"maximum_records_per_second":1},"rate_limit":0,"down":false,"rotated":false,"chance":"cGNnOgAAAAAAAAAHnjd5uX9KfBU=","total":0}}` + "\n"
	const object = `{"object":{"name":"o","label":"O","can_create_fields":false,"operations":["upsert"],"fields":[{"name":"id","label":"","type":"string","array":false,"identifier":true,"required":true,"unique":true,"createable":true,"updateable":true,"max_length":0}]}}` + "\n"
	record := func(id int, table, data string) string {
		return fmt.Sprintf(`{"record":{"id":%d,"table":%q,"data":%s}}`, id, table, data) + "\n"
	}
	end := func(objects, records int) string {
		return fmt.Sprintf(`{"end":{"objects":%d,"records":%d}}`, objects, records) + "\n"
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":              {"", "line 1: the snapshot is cut off: its last line, the end, is missing"},
		"something else":       {"{}\n", `line 1: not a snapshot of a simulated destination: the first line must be {"snapshot":"destsim",…}`},
		"not JSON":             {"snapshot\n", "line 1: not JSON: not the start of a value at byte 0"},
		"later version":        {`{"snapshot":"destsim","version":2}`, "line 1: version 2 of the snapshot is not known; this program reads version 1"},
		"negative id":          {`{"snapshot":"destsim","version":1,"last_id":-1}`, "line 1: last_id -1 is negative"},
		"unknown member":       {head + `{"faults":[]}`, `line 2: decode: json: unknown field "faults"`},
		"no settings":          {head + object, "line 2: the line is none that may stand here"},
		"settings twice":       {head + settings + settings, "line 3: the line is none that may stand here"},
		"object after records": {head + settings + record(1, "o", "{}") + object, "line 4: the line is none that may stand here"},
		"bad speed":            {head + `{"settings":{"rate_limit":1}}`, "line 2: speed: three integers of 1 or more are needed"},
		"bad limit":            {head + strings.Replace(settings, `"rate_limit":0`, `"rate_limit":-1`, 1), "line 2: rate_limit -1 is negative"},
		"no end of settings":   {head + end(0, 0), "line 2: the settings are missing"},
		"object twice":         {head + settings + object + object, `line 4: object "o" occurs twice`},
		"object without name":  {head + settings + `{"object":{"fields":[]}}`, "line 3: an object without a name"},
		"bad operation":        {head + settings + strings.Replace(object, "upsert", "upsort", 1), `line 3: object "o": operations: unknown operation "upsort"`},
		"bad type":             {head + settings + strings.Replace(object, `"string"`, `"text"`, 1), `line 3: object "o": field "id": type: unknown type "text"`},
		"id twice":             {head + settings + object + record(2, "o", "{}") + record(2, "o", "{}"), "line 5: id 2 of the record does not lie above 2 and up to last_id 9"},
		"id above the last":    {head + settings + object + record(10, "o", "{}"), "line 4: id 10 of the record"},
		"data is a list":       {head + settings + object + record(1, "o", "[]"), "line 4: record 1: the data is not an object"},
		"field twice":          {head + settings + object + record(1, "o", `{"a":1,"\u0061":2}`), `line 4: record 1: field "a" occurs twice`},
		"lone surrogate":       {head + settings + object + record(1, "o", `{"a":"\ud800"}`), "line 4: record 1: decode string: lone surrogate"},
		"bad created field":    {head + settings + object + `{"record":{"id":1,"table":"\u0000fields","data":{"object":1}}}`, "line 4: record 1 is no created field"},
		"cut off":              {head + settings + object + record(1, "o", "{}"), "line 5: the snapshot is cut off"},
		"cut within a line":    {head + settings + object[:40], "line 3: not JSON"},
		"wrong count":          {head + settings + object + end(1, 1), "line 4: 1 objects and 0 records came, 1 and 1 were written"},
		"more after the end":   {head + settings + object + end(1, 0) + "{}", "line 4: something follows after the end"},
	} {
		t.Run(name, func(t *testing.T) {
			stores(t, func(t *testing.T, config Config) {
				s := newSim(t, config)
				write(t, s, "contact", "upsert", `{"email":"a","last_name":"x"}`)
				before := text(t, s)
				w := control(s, "POST", "/_control/restore", tc.text)
				require.Equal(t, http.StatusBadRequest, w.Code)
				var failure controlError
				require.NoError(t, json.Unmarshal(w.Body.Bytes(), &failure))
				require.Contains(t, failure.Error, "restore snapshot: "+tc.want)
				require.Equal(t, before, text(t, s))
			})
		})
	}
	// The pieces above are good when they are put together rightly.
	s := newSim(t, Config{})
	require.NoError(t, s.Restore(strings.NewReader(head+settings+object+record(1, "o", ` { "\u0069d" : "\u0061" } `)+end(1, 1))))
	require.Equal(t, `{"id":"a"}`, stored(t, s, "o", "id", `"a"`))
}

// TestRestoreSurvivesARestart: the restored content of a file is there in the
// next process, and ids that were given are not given again.
func TestRestoreSurvivesARestart(t *testing.T) {
	from := newSim(t, Config{})
	write(t, from, "event", "upsert", `{"event_id":"e","made":"on write"}`)
	write(t, from, "contact", "upsert", `{"email":"a","last_name":"x"}`, `{"email":"gone","last_name":"x"}`)
	write(t, from, "contact", "delete", `{"email":"gone"}`)
	config := Config{Store: "sqlite:" + t.TempDir() + "/records.db"}
	to, err := New(config)
	require.NoError(t, err)
	require.NoError(t, to.Restore(strings.NewReader(text(t, from))))
	require.NoError(t, to.Close())
	require.ErrorContains(t, to.Restore(strings.NewReader(text(t, from))), store.ErrClosed.Error())
	require.ErrorContains(t, to.Snapshot(io.Discard), store.ErrClosed.Error())
	again := newSim(t, config)
	require.JSONEq(t, `{"event_id":"e","made":"on write"}`, stored(t, again, "event", "event_id", `"e"`))
	require.NotNil(t, again.catalogue.Load().byName["event"].byName["made"])
	write(t, again, "contact", "insert", `{"email":"b","last_name":"x"}`)
	list, total, err := again.Records("contact", 0, 10)
	require.NoError(t, err)
	require.Equal(t, 2, total)
	require.Equal(t, int64(5), list[1].ID, "1 field, 2 event, 3 contact, 4 gone")
}

func TestSnapshotOverHTTP(t *testing.T) {
	s := newSim(t, Config{Token: "the-endpoint-token", ControlToken: "the-control-token"})
	require.Equal(t, []string{"ok"}, words(t, post(s, string(rpc.EncodeRequest(nil, rpc.MethodSyncBatch,
		[]byte(planOf(s, "contact", "upsert", "email", `{"email":"a","last_name":"x"}`)), "id-1")), "Authorization", "Bearer the-endpoint-token").Body.String()))
	w := control(s, "GET", "/_control/snapshot", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/x-ndjson", w.Header().Get("Content-Type"))
	require.NotContains(t, w.Body.String(), "token")
	for line := range strings.Lines(w.Body.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.NoError(t, s.Reset())
	restored := control(s, "POST", "/_control/restore", w.Body.String())
	require.Equal(t, http.StatusOK, restored.Code, restored.Body.String())
	require.NotEmpty(t, stored(t, s, "contact", "email", `"a"`))
	require.Equal(t, "the-endpoint-token", *s.token.Load())
}

// stuckWriter fails after some bytes.
type stuckWriter struct {
	http.ResponseWriter
	left int
}

var errStuck = errors.New("stuck")

func (w *stuckWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errStuck
	}
	return w.ResponseWriter.Write(b)
}

// TestSnapshotThatCannotBeWritten: the reader of half a snapshot must see that
// its connection broke.
func TestSnapshotThatCannotBeWritten(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		for i := range 40 {
			write(t, s, "contact", "upsert", fmt.Sprintf(`{"email":"%d","last_name":%q}`, i, strings.Repeat("x", 5000)))
		}
		r := httptest.NewRequest("GET", "/_control/snapshot", nil)
		r.RemoteAddr, r.Host = "127.0.0.1:4711", "localhost"
		w := &stuckWriter{httptest.NewRecorder(), 100_000}
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { s.ServeHTTP(w, r) })
		require.ErrorIs(t, s.Snapshot(&stuckWriter{httptest.NewRecorder(), 0}), errStuck)
		require.Equal(t, []string{"ok"}, write(t, s, "contact", "upsert", `{"email":"a","last_name":"x"}`), "nothing is left locked")
	})
}

// FuzzRestore: whatever comes is refused without a trace, or is a state whose
// snapshot restores to itself.
func FuzzRestore(f *testing.F) {
	s := newSim(f, Config{})
	write(f, s, "event", "upsert", `{"event_id":"e","made":"on write"}`)
	write(f, s, "contact", "upsert", `{"email":"a","last_name":"x","tags":["\u0000",null]}`)
	good := text(f, s)
	f.Add([]byte(good))
	for _, change := range [][2]string{
		{`"data":{`, `"data":{"a":[[1, {"b":"\/"}]],`}, {`"version":1`, `"version":1.0`}, {`"last_id":3`, `"last_id":9223372036854775807`},
		{`"operations":[`, `"operations":null,"x":[`}, {`"label":"Contact"`, `"label":null`}, {"\n", "\r\n"}, {"\n", "\n\n"}, {`"id":`, `"ID":`},
	} {
		f.Add([]byte(strings.ReplaceAll(good, change[0], change[1])))
	}
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		s, other := newSim(t, Config{}), newSim(t, Config{})
		before := text(t, s)
		if s.Restore(bytes.NewReader(snapshot)) != nil {
			require.Equal(t, before, text(t, s))
			return
		}
		after := text(t, s)
		require.NoError(t, other.Restore(strings.NewReader(after)))
		require.Equal(t, after, text(t, other))
		for _, o := range s.catalogue.Load().objects { // the index is built over whatever came
			params := `{"object":` + string(encode(o.Ref())) + `}`
			require.NotEmpty(t, invoke(s, rpc.MethodListFields, params))
			for _, field := range o.fields {
				control(s, "POST", "/_control/readback", `{"object":`+string(store.Quote(o.APIName))+`,"identifier_field":`+string(field.quoted)+`,"identifiers":["a"]}`)
			}
		}
	})
}
