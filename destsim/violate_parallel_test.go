package destsim

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// atOnce sends calls that meet, one a millisecond after the other so that their
// order is known, and joins the replies by lines.
func atOnce(s *Sim, bodies ...[]byte) string {
	replies := make([]string, len(bodies))
	var wg sync.WaitGroup
	for i, body := range bodies {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			replies[i] = post(s, string(body)).Body.String()
		})
	}
	wg.Wait()
	return strings.Join(replies, "\n") + "\n"
}

// fieldsAtOnce asks n times for the fields of the objects by turns. Of each
// reply it tells the id and the first field.
func fieldsAtOnce(method string, n int) glance {
	return func(_ *testing.T, s *Sim) string {
		bodies := make([][]byte, n)
		for i := range bodies {
			bodies[i] = rpc.EncodeRequest(nil, method, []byte(about([]string{"contact", "order", "event"}[i%3])), fmt.Sprint("id-", i))
		}
		var lines []string
		for line := range strings.Lines(atOnce(s, bodies...)) {
			lines = append(lines, line[:min(len(line), 80)])
		}
		return strings.Join(lines, "\n")
	}
}

// meets sends batches of contacts at once, each by "operation run", and tells
// what is stored afterwards.
func meets(keys string, steps ...step) glance {
	return func(t *testing.T, s *Sim) string {
		bodies := make([][]byte, len(steps))
		for i, st := range steps {
			operation, run, _ := strings.Cut(st.to, " ")
			params := strings.Replace(planOf(s, "contact", operation, "email", st.records...), `"sync_run_id":1`, `"sync_run_id":`+run, 1)
			bodies[i] = rpc.EncodeRequest(nil, rpc.MethodSyncBatch, []byte(params), "id-1")
		}
		out := atOnce(s, bodies...)
		for _, key := range strings.Fields(keys) {
			out += key + " is " + stored(t, s, "contact", "email", quoted(key)) + "\n"
		}
		return out
	}
}

func quoted(text string) string { return string(store.Quote(text)) }

// timed tells how long calls at once take, shortest first.
func timed(method string, n int) glance {
	return func(_ *testing.T, s *Sim) string {
		took := make([]time.Duration, n)
		var wg sync.WaitGroup
		for i := range took {
			wg.Go(func() {
				start := time.Now()
				invoke(s, method, `{}`)
				took[i] = time.Since(start)
			})
		}
		wg.Wait()
		slices.Sort(took)
		return fmt.Sprint(took)
	}
}

// versions are the records of a batch in which all values are the same text.
func versions(text string, keys ...string) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = fmt.Sprintf(`{"email":%q,"last_name":%q,"first_name":%q}`, key, text, text)
	}
	return list
}

func parallelGlances() map[string]glance {
	ab, cd := versions("x", "a", "b"), versions("x", "c", "d")
	three := func(text string) []string { return versions(text, "a", "b", "c") }
	return map[string]glance{
		"nine fields":        fieldsAtOnce(rpc.MethodListFields, 9),
		"eight fields":       fieldsAtOnce(rpc.MethodListFields, 8),
		"nine operations":    fieldsAtOnce(rpc.MethodSupportedOperations, 9),
		"two upserts":        meets("a c", step{"upsert 1", ab}, step{"upsert 1", cd}),
		"upserts of two":     meets("a c", step{"upsert 1", ab}, step{"upsert 2", cd}),
		"two inserts":        meets("a c", step{"insert 1", ab}, step{"insert 1", cd}),
		"insert and update":  meets("a c", step{"insert 1", ab}, step{"update 1", cd}),
		"operations of two":  meets("a c", step{"insert 1", ab}, step{"update 2", cd}),
		"threes, other keys": meets("a d", step{"upsert 1", three("1")}, step{"upsert 1", versions("2", "d", "e", "f")}),
		"threes":             meets("a c", step{"upsert 1", three("1")}, step{"upsert 1", three("2")}),
		"threes of two":      meets("a c", step{"upsert 1", three("1")}, step{"upsert 2", three("2")}),
		"threes inserted":    meets("a c", step{"insert 1", three("1")}, step{"insert 1", three("2")}),
		"an upsert alone":    meets("a b", step{"upsert 1", ab}),
		"three alone":        meets("a b", step{"upsert 1", three("1")}),
		"objects at once":    timed(rpc.MethodListObjects, 3),
		"objects once":       timed(rpc.MethodListObjects, 1),
		"speeds at once":     timed(rpc.MethodGetSyncSpeed, 3),
	}
}

func TestParallelViolationsShow(t *testing.T) {
	const good = `{"identifier":%q,"success":true}`
	pair := func(first, second string) string {
		return `{"record_results":[` + fmt.Sprintf(good, first) + "," + fmt.Sprintf(good, second) + "]}}\n"
	}
	table := []effect{
		{id: "PAR-001", sees: map[string]string{"nine fields": `"id":"id-8","result":{"fields":[{"field_api_name":"email"`}},
		{id: "PAR-001.2", sees: map[string]string{"nine fields": `"id":"id-0","result":{"fields":[{"field_api_name":"event_id"`}},
		{id: "PAR-002", sees: map[string]string{"two upserts": pair("c", "d") + `{"jsonrpc":"2.0","id":"id-1","result":` + pair("c", "d") + `a is {`}},
		{id: "PAR-002.2", sees: map[string]string{"two upserts": pair("c", "d") + `a is {"email":"a","last_name":"x","first_name":"x"}` + "\nc is \n"}},
		{id: "PAR-003", sees: map[string]string{"threes": "a is 2×{"}},
		{id: "PAR-003.2", sees: map[string]string{"threes": `a is {"email":"a","last_name":"2","first_name":"1"}`}},
		{id: "PAR-004", sees: map[string]string{"objects at once": "[20ms 40ms 60ms]", "objects once": "[20ms]"}},
		{id: "PAR-005", sees: map[string]string{"insert and update": `"identifier":"b","success":false,"error_message":"record not present"}]}}`}},
	}
	testEachShown(t, parallelViolations(), table)
	testEffects(t, parallelGlances(), table)
}

// clocked writes down when each piece of a reply was written.
type clocked struct {
	*httptest.ResponseRecorder
	start  time.Time
	pieces []string
}

func (c *clocked) Write(b []byte) (int, error) {
	c.pieces = append(c.pieces, fmt.Sprintf("%d bytes after %s", len(b), time.Since(c.start)))
	return c.ResponseRecorder.Write(b)
}

// pieces tells in which pieces the reply to a call comes.
func pieces(method, params string) glance {
	return func(_ *testing.T, s *Sim) string {
		w := &clocked{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
		body := rpc.EncodeRequest(nil, method, []byte(params), "id-1")
		s.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(string(body))))
		return strings.Join(w.pieces, ", ")
	}
}

// fullBatch tells how long n new contacts with a further field take.
func fullBatch(n int, field string) glance {
	return func(t *testing.T, s *Sim) string {
		records := make([]string, n)
		for i := range records {
			records[i] = fmt.Sprintf(`{"email":"n%d","last_name":"x"%s}`, i, field)
		}
		start := time.Now()
		good := strings.Count(strings.Join(write(t, s, "contact", "upsert", records...), " "), "ok")
		return fmt.Sprint(good, " in ", time.Since(start))
	}
}

func TestTimeViolationsShow(t *testing.T) {
	glances := map[string]glance{
		"operations of contact": pieces(rpc.MethodSupportedOperations, about("contact")),
		"operations of event":   pieces(rpc.MethodSupportedOperations, about("event")),
		"operations of none":    pieces(rpc.MethodSupportedOperations, about("nope")),
		"fields of event":       pieces(rpc.MethodListFields, about("event")),
		"objects":               pieces(rpc.MethodListObjects, `{}`),
		"full":                  fullBatch(1000, `,"age":1`),
		"full but minimal":      fullBatch(1000, ""),
		"not full":              fullBatch(999, `,"age":1`),
	}
	d := Delays{}.resolve()
	table := []effect{
		{id: "TIM-001", sees: map[string]string{"operations of event": "after " + d.Planning.String()}},
		{id: "TIM-002", sees: map[string]string{"full": "1000 in " + d.Batch.String()}},
		{id: "TIM-003", sees: map[string]string{"operations of event": "36 bytes after 0s, 37 bytes after " + d.Stall.String()}},
	}
	testEachShown(t, timeViolations(), table)
	testEffects(t, glances, table)
}
