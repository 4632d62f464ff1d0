package destsim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// glance is one thing that a naive client does with a destination, and what it
// writes down about it.
type glance func(t *testing.T, s *Sim) string

// seen runs a glance on a new destination. Within the bubble time passes only
// while everybody sleeps, so durations are exact and cost nothing.
func seen(t *testing.T, violation string, look glance) (what string) {
	t.Helper()
	config := Config{Speed: rpc.Speed{MaximumBatchSize: 100}, Delays: Delays{Batch: 3 * time.Second, Work: time.Second}}
	if violation != "" {
		config.Violate = []string{violation}
	}
	synctest.Test(t, func(t *testing.T) { what = look(t, newSim(t, config)) })
	return what
}

// sighting says which glances a violation changes, and a part of what they see
// then. same names those that must see no difference; nil is all others but
// those in blur.
type sighting struct {
	id         string
	sees       map[string]string
	same, blur []string
}

func testSightings(t *testing.T, all []violation, table []sighting) {
	t.Helper()
	glances := allGlances()
	kept := map[string]string{}
	clean := func(name string) string {
		if _, known := kept[name]; !known {
			kept[name] = seen(t, "", glances[name])
		}
		return kept[name]
	}
	ids := map[string]bool{}
	for _, row := range table {
		ids[row.id] = true
		t.Run(row.id, func(t *testing.T) {
			require.NotEmpty(t, row.sees)
			for name, part := range row.sees {
				require.Contains(t, glances, name)
				require.NotContains(t, clean(name), part, "%s shows it without the violation", name)
				require.Contains(t, seen(t, row.id, glances[name]), part, name)
			}
			for _, name := range unchanged(row, glances) {
				require.Contains(t, glances, name)
				require.Equal(t, clean(name), seen(t, row.id, glances[name]), name)
			}
		})
	}
	for _, v := range all {
		require.True(t, ids[v.ID], "nobody looks at %s", v.ID)
		require.NotEmpty(t, v.Changes)
	}
	require.Len(t, ids, len(all))
}

func unchanged(row sighting, glances map[string]glance) []string {
	if row.same != nil || testing.Short() { // -short looks at what changes
		return row.same
	}
	var names []string
	for name := range glances {
		if _, changes := row.sees[name]; !changes && !slices.Contains(row.blur, name) {
			names = append(names, name)
		}
	}
	return names
}

// asks makes calls and joins what comes back by lines.
func asks(method string, params ...string) glance {
	return func(_ *testing.T, s *Sim) string {
		var lines []string
		for _, p := range params {
			lines = append(lines, bareReply(invoke(s, method, p)))
		}
		return strings.Join(lines, "\n")
	}
}

// bareReply is a reply without what is the same in all of them.
func bareReply(reply string) string {
	return strings.TrimSuffix(strings.TrimPrefix(reply, `{"jsonrpc":"2.0","id":"id-1",`), "}")
}

func about(object string) string {
	return fmt.Sprintf(`{"object":{"object_api_name":%q,"label":"x"}}`, object)
}

// step is one batch: the object, the operation, the active identifier.
type step struct {
	to      string
	records []string
}

// does sends batches, each by "object operation identifier", and looks at what
// is stored under the keys afterwards.
func does(keys string, steps ...step) glance {
	return func(t *testing.T, s *Sim) string {
		var lines []string
		object, active := "", ""
		for _, st := range steps {
			word := strings.Fields(st.to)
			object, active = word[0], word[2]
			lines = append(lines, bareReply(invoke(s, rpc.MethodSyncBatch, planOf(s, object, word[1], active, st.records...))))
		}
		for _, key := range strings.Fields(keys) {
			if s.catalogue.Load().byName[object].byName[active].Identifier {
				lines = append(lines, key+" is "+stored(t, s, object, active, key))
			}
		}
		return strings.Join(lines, "\n")
	}
}

// headers are the values of the rate limit header of some replies.
func headers(methods ...string) glance {
	return func(_ *testing.T, s *Sim) string {
		var lines []string
		for _, m := range methods {
			w := post(s, string(rpc.EncodeRequest(nil, m, []byte(`{}`), "id-1")))
			lines = append(lines, fmt.Sprintf("%d %q", w.Code, w.Header()["X-Ratelimit-Limit"]))
		}
		return strings.Join(lines, "\n")
	}
}

// contacts are n records of contacts numbered from first.
func contacts(first, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"email":"n%d","last_name":"x"}`, first+i)
	}
	return list
}

// statuses are the HTTP statuses of n calls of test_connection at one moment,
// as runs, and of one a second later.
func statuses(n int) glance {
	return func(_ *testing.T, s *Sim) string {
		count := map[int]int{}
		for range n {
			count[post(s, testCall).Code]++
		}
		time.Sleep(time.Second)
		return fmt.Sprint(count, " then ", post(s, testCall).Code)
	}
}

// sized sends one batch of n records.
func sized(n int) glance {
	return func(_ *testing.T, s *Sim) string {
		body := rpc.EncodeRequest(nil, rpc.MethodSyncBatch, []byte(planOf(s, "contact", "upsert", "email", contacts(0, n)...)), "id-1")
		w := post(s, string(body))
		return fmt.Sprint(w.Code, " ", bareReply(w.Body.String()))
	}
}

// wholeBatch sends one batch of n records and counts what is acknowledged and stored.
func wholeBatch(n int) glance {
	return func(t *testing.T, s *Sim) string {
		reply := invoke(s, rpc.MethodSyncBatch, planOf(s, "contact", "upsert", "email", contacts(0, n)...))
		there := 0
		for i := range n {
			if stored(t, s, "contact", "email", fmt.Sprintf(`"n%d"`, i)) != "" {
				there++
			}
		}
		return fmt.Sprint(strings.Count(reply, `"success":true`), " acknowledged, ", there, " stored")
	}
}

// together sends batches of n records at once, each in the sync run that is
// named, and counts the answers and how long all of them took.
func together(n int, runs ...int) glance {
	return func(_ *testing.T, s *Sim) string {
		var wg sync.WaitGroup
		var mu sync.Mutex
		failed := 0
		start := time.Now()
		for i, run := range runs {
			params := inRun(planOf(s, "contact", "upsert", "email", contacts(i*n, n)...), run)
			wg.Go(func() {
				reply := invoke(s, rpc.MethodSyncBatch, params)
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(reply, "-32000") {
					failed++
				}
			})
		}
		wg.Wait()
		return fmt.Sprint(failed, " errors in ", time.Since(start))
	}
}

func inRun(params string, run int) string {
	return strings.Replace(params, `"sync_run_id":1`, fmt.Sprintf(`"sync_run_id":%d`, run), 1)
}

// durations are how long batches of n records take one after the other.
func durations(n, batches int) glance {
	return func(_ *testing.T, s *Sim) string {
		var took []time.Duration
		for i := range batches {
			start := time.Now()
			invoke(s, rpc.MethodSyncBatch, planOf(s, "contact", "upsert", "email", contacts(i*n, n)...))
			took = append(took, time.Since(start))
		}
		return fmt.Sprint(took)
	}
}

// flood sends batches of one record at one moment and counts what is
// acknowledged and what is stored; then one more a second later.
func flood(batches int, runs int) glance {
	return func(t *testing.T, s *Sim) string {
		acknowledged, kept := 0, 0
		send := func(i int) {
			params := inRun(planOf(s, "contact", "upsert", "email", contacts(i, 1)...), 1+i%runs)
			if strings.Contains(invoke(s, rpc.MethodSyncBatch, params), `"success":true`) {
				acknowledged++
			}
			if stored(t, s, "contact", "email", fmt.Sprintf(`"n%d"`, i)) != "" {
				kept++
			}
		}
		for i := range batches {
			send(i)
		}
		time.Sleep(time.Second)
		send(batches)
		return fmt.Sprint(acknowledged, " acknowledged, ", kept, " stored")
	}
}

// abandoned reports whether a batch still lands when its client goes away.
func abandoned(t *testing.T, s *Sim) string {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := rpc.EncodeRequest(nil, rpc.MethodSyncBatch, []byte(planOf(s, "contact", "upsert", "email", contacts(0, 4)...)), "id-1")
	r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(string(body)))
	s.ServeHTTP(httptest.NewRecorder(), r)
	return stored(t, s, "contact", "email", `"n0"`)
}

// ordered sends a batch whose schema stands in the order that is given.
func ordered(schema []string, records ...string) glance {
	return func(t *testing.T, s *Sim) string {
		var members []string
		for _, name := range schema {
			f, err := json.Marshal(rpc.SchemaField{ActiveIdentifier: name == "email", Field: s.catalogue.Load().byName["contact"].byName[name].Field})
			require.NoError(t, err)
			members = append(members, fmt.Sprintf("%q:%s", name, f))
		}
		params := fmt.Sprintf(`{"sync_plan":{"object":{"object_api_name":"contact","label":"Contact"},"operation":"upsert","sync_run_id":1,"sync_id":2,"schema":{%s}},"records":[%s]}`,
			strings.Join(members, ","), strings.Join(records, ","))
		return bareReply(invoke(s, rpc.MethodSyncBatch, params)) + " " + stored(t, s, "contact", "email", `"a"`) + stored(t, s, "contact", "email", `"b"`)
	}
}
