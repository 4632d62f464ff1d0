package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen/internal/wire"
)

// fakeService is as much of a service as the checks read: lists of so many items, and
// runs that end after so many polls. wrong changes its replies.
type fakeService struct {
	items, polls int
	end          string // the status that runs end with
	wrong        func(call string, body map[string]any) (status int)

	mu    sync.Mutex
	runs  int
	asked map[int]int // polls by run
	calls map[string]int
	auth  string
}

func (f *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.auth = r.Header.Get("Authorization")
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	for i, part := range parts {
		if _, err := strconv.Atoi(part); err == nil {
			parts[i] = "{id}"
		}
	}
	call := r.Method + " /" + strings.Join(parts, "/")
	f.calls[call]++
	id := 0
	if parts := strings.Split(r.URL.Path, "/"); len(parts) > 4 {
		id, _ = strconv.Atoi(parts[4])
	}
	var body map[string]any
	switch call {
	case "GET /syncs", "GET /destinations", "GET /sources", "GET /syncs/{id}/sync_runs":
		body = f.list(r, id)
	case "GET /syncs/{id}":
		body = map[string]any{"status": "success", "data": map[string]any{"id": id, "status": "Up to Date"}}
	case "POST /syncs/{id}/trigger":
		f.runs++
		body = map[string]any{"status": "success", "data": map[string]any{"sync_run_id": 100 + f.runs}}
	case "GET /sync_runs/{id}":
		f.asked[id]++
		body = map[string]any{"status": "success", "data": f.run(id, 7)}
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	status := http.StatusOK
	if f.wrong != nil {
		if s := f.wrong(call, body); s != 0 {
			status = s
		}
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (f *fakeService) run(id, sync int) map[string]any {
	status := "working"
	if f.asked[id] >= f.polls {
		status = f.end
	}
	return map[string]any{"id": id, "sync_id": sync, "status": status, "canceled": false, "error_message": "no such host"}
}

func (f *fakeService) list(r *http.Request, sync int) map[string]any {
	number := func(name string) int { n, _ := strconv.Atoi(r.URL.Query().Get(name)); return n }
	page, per := number("page"), number("per_page")
	data := []any{}
	for i := (page - 1) * per; i < min(page*per, f.items); i++ {
		item := map[string]any{"id": i + 1, "status": "ready"}
		if sync > 0 {
			item = f.run(100+i, sync)
		}
		data = append(data, item)
	}
	last := (f.items + per - 1) / per
	p := map[string]any{"total_records": f.items, "per_page": per, "page": page, "last_page": last, "prev_page": nil, "next_page": nil}
	if page > 1 {
		p["prev_page"] = page - 1
	}
	if page < last {
		p["next_page"] = page + 1
	}
	return map[string]any{"status": "success", "pagination": p, "data": data}
}

// loadFake runs a load of one client against a fake, as long as count requests.
func loadFake(t *testing.T, f *fakeService, o Options) (*Result, error) {
	t.Helper()
	f.asked, f.calls = map[int]int{}, map[string]int{}
	if f.end == "" {
		f.end = "completed"
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	o.Target.URL, o.Target.Token = server.URL+"/", "key-of-the-workspace"
	if o.Connections == 0 {
		o.Connections = 1
	}
	o.Service.PollInterval = time.Millisecond
	return Run(context.Background(), o)
}

func TestServiceLists(t *testing.T) {
	f := &fakeService{items: 7}
	r, err := loadFake(t, f, Options{Count: 18, Service: &Service{Scenario: ScenarioList, PerPage: 3}})
	require.NoError(t, err)
	require.Zero(t, r.Errors, r.ErrorMessages)
	require.EqualValues(t, 18, r.Requests)
	require.EqualValues(t, 18, r.Acknowledged)
	require.EqualValues(t, 6, r.Service.Lists, "three lists of three pages, twice")
	require.EqualValues(t, 42, r.Service.Items)
	require.Nil(t, r.Service.Runs)
	require.Equal(t, "closed", r.Load.Mode)
	require.Equal(t, "count", r.Ended)
	require.Equal(t, "Bearer key-of-the-workspace", f.auth)
	require.Len(t, r.Service.Calls, 3)
	for i, call := range []string{"GET /syncs", "GET /destinations", "GET /sources"} {
		require.Equal(t, call, r.Service.Calls[i].Call)
		require.EqualValues(t, 6, r.Service.Calls[i].Requests)
		require.Zero(t, r.Service.Calls[i].FailedRequests)
		require.Positive(t, r.Service.Calls[i].Latency.P50)
		require.Equal(t, 7, f.calls[call], "once before the load")
	}
	require.Empty(t, r.Useless())

	for _, client := range []Transport{{Standard: true}, {Reconnect: true}} {
		r, err = loadFake(t, &fakeService{items: 0}, Options{Count: 3, Transport: client, Service: &Service{Scenario: ScenarioList}})
		require.NoError(t, err)
		require.Zero(t, r.Errors, r.ErrorMessages)
		require.EqualValues(t, 3, r.Service.Lists, "an empty list has one page")
	}
	r, err = loadFake(t, f, Options{Count: 3, Service: &Service{Scenario: ScenarioList, Lists: []string{"sync_runs"}, Syncs: []int64{7}, PerPage: 3}})
	require.NoError(t, err)
	require.Zero(t, r.Errors, r.ErrorMessages)
	require.Equal(t, "GET /syncs/{id}/sync_runs", r.Service.Calls[0].Call)
}

func TestServiceRates(t *testing.T) {
	r, err := loadFake(t, &fakeService{items: 3}, Options{Count: 20, Connections: 4, Stages: constant(2000), Duration: time.Minute, Service: &Service{Scenario: ScenarioList}})
	require.NoError(t, err)
	require.Equal(t, "open", r.Load.Mode)
	require.EqualValues(t, 20, r.Requests)
	require.Zero(t, r.Errors, r.ErrorMessages)
	require.InDelta(t, 2000, r.Load.Rate, 1e-6)
}

func TestServicePolls(t *testing.T) {
	f := &fakeService{items: 2, polls: 3}
	r, err := loadFake(t, f, Options{Count: 12, Service: &Service{Scenario: ScenarioPoll, Syncs: []int64{7}}})
	require.NoError(t, err)
	require.Zero(t, r.Errors, r.ErrorMessages)
	require.Len(t, r.Service.Calls, 3)
	for i, call := range []string{"GET /syncs/{id}", "GET /syncs/{id}/sync_runs", "GET /sync_runs/{id}"} {
		require.Equal(t, call, r.Service.Calls[i].Call)
		require.EqualValues(t, 4, r.Service.Calls[i].Requests)
	}
	// Without a sync, those of the workspace; without a run, the next sync follows.
	f = &fakeService{items: 1}
	f.wrong = func(call string, body map[string]any) int {
		if strings.HasSuffix(call, "sync_runs") {
			body["data"], body["pagination"] = []any{}, map[string]any{"total_records": 0, "per_page": 1, "page": 1, "last_page": 0, "prev_page": nil, "next_page": nil}
		}
		return 0
	}
	r, err = loadFake(t, f, Options{Count: 4, Service: &Service{Scenario: ScenarioPoll}})
	require.NoError(t, err)
	require.Zero(t, r.Errors, r.ErrorMessages)
	require.Len(t, r.Service.Calls, 2)
	_, err = loadFake(t, &fakeService{}, Options{Service: &Service{Scenario: ScenarioPoll}})
	require.ErrorContains(t, err, "no sync that could be polled")
}

func TestServiceTriggers(t *testing.T) {
	f := &fakeService{polls: 3}
	r, err := loadFake(t, f, Options{Count: 9, Write: true, Service: &Service{Scenario: ScenarioTrigger, Syncs: []int64{7}, FullSync: true}})
	require.NoError(t, err)
	require.Zero(t, r.Errors, r.ErrorMessages)
	runs := r.Service.Runs
	require.EqualValues(t, 3, runs.Started, "a trigger and three polls each")
	require.EqualValues(t, 3, runs.Completed, "the last is polled to its end after the load")
	require.Zero(t, runs.Going)
	require.EqualValues(t, 9, r.Requests, "what is polled after the load is not measured")
	require.Equal(t, 9, f.calls["GET /sync_runs/{id}"])
	require.Positive(t, runs.TimeToEnd.P50)

	for status, want := range map[string]RunFigures{"failed": {Failed: 2, Failure: "no such host"}, "skipped": {Skipped: 2}, "cancelled": {Canceled: 2}} {
		r, err = loadFake(t, &fakeService{polls: 1, end: status}, Options{Count: 4, Write: true, Service: &Service{Scenario: ScenarioTrigger, Syncs: []int64{7}}})
		require.NoError(t, err)
		require.Zero(t, r.Errors, "an end is an end")
		runs, want.Started = r.Service.Runs, 2
		want.Histogram = runs.Histogram
		require.Equal(t, want, *runs)
		require.Equal(t, status == "failed", r.Useless() != "", status)
		limit, err := ParseThreshold("runs-failed>1")
		require.NoError(t, err)
		limit.Check(r)
		require.Equal(t, status == "failed", limit.Failed)
	}
}

// TestServiceViolations: each check finds the reply that is wrong.
func TestServiceViolations(t *testing.T) {
	pagination := func(name string, value any) func(string, map[string]any) int {
		return func(_ string, body map[string]any) int { body["pagination"].(map[string]any)[name] = value; return 0 }
	}
	data := func(name string, value any) func(string, map[string]any) int {
		return func(_ string, body map[string]any) int {
			if d, ok := body["data"].(map[string]any); ok {
				d[name] = value
			} else if len(body["data"].([]any)) > 0 {
				body["data"].([]any)[0].(map[string]any)[name] = value
			}
			return 0
		}
	}
	whole := func(name string, value any) func(string, map[string]any) int {
		return func(_ string, body map[string]any) int { body[name] = value; return 0 }
	}
	for _, c := range []struct {
		name, scenario, call, kind string
		wrong                      func(call string, body map[string]any) int
	}{
		{"status 500", ScenarioList, "GET /syncs", wire.KindStatus, func(string, map[string]any) int { return 500 }},
		{"status 429", ScenarioList, "GET /syncs", wire.KindThrottled, func(string, map[string]any) int { return 429 }},
		{"status 201", ScenarioTrigger, "POST /syncs/{id}/trigger", wire.KindStatus, func(string, map[string]any) int { return 201 }},
		{"no success", ScenarioList, "GET /syncs", wire.KindEnvelope, whole("status", "ok")},
		{"status is no word", ScenarioPoll, "GET /syncs/{id}", wire.KindEnvelope, whole("status", 200)},
		{"no data", ScenarioPoll, "GET /syncs/{id}", wire.KindEnvelope, whole("data", nil)},
		{"data is no list", ScenarioList, "GET /syncs", wire.KindEnvelope, whole("data", "x")},
		{"no pagination", ScenarioList, "GET /syncs", wire.KindPagination, whole("pagination", nil)},
		{"pagination of another type", ScenarioList, "GET /syncs", wire.KindPagination, whole("pagination", 5)},
		{"another page", ScenarioList, "GET /syncs", wire.KindPagination, pagination("page", 2)},
		{"another per_page", ScenarioList, "GET /syncs", wire.KindPagination, pagination("per_page", 25)},
		{"no next page", ScenarioList, "GET /syncs", wire.KindPagination, pagination("next_page", nil)},
		{"a page is jumped over", ScenarioList, "GET /syncs", wire.KindPagination, pagination("next_page", 3)},
		{"next page is a word", ScenarioList, "GET /syncs", wire.KindPagination, pagination("next_page", "2")},
		{"a page before the first", ScenarioList, "GET /syncs", wire.KindPagination, pagination("prev_page", 1)},
		{"wrong last page", ScenarioList, "GET /syncs", wire.KindPagination, pagination("last_page", 9)},
		{"a total that is a word", ScenarioList, "GET /syncs", wire.KindPagination, pagination("total_records", "7")},
		{"no total", ScenarioList, "GET /syncs", wire.KindPagination, pagination("total_records", nil)},
		{"an item without id", ScenarioList, "GET /syncs", wire.KindItem, data("id", nil)},
		{"an id that is a word", ScenarioList, "GET /syncs", wire.KindItem, data("id", "1")},
		{"an item twice on a page", ScenarioList, "GET /syncs", wire.KindItemRepeated, data("id", 2)},
		{"an item too few", ScenarioList, "GET /syncs", wire.KindItemMissing, func(_ string, body map[string]any) int {
			body["data"] = body["data"].([]any)[1:]
			return 0
		}},
		{"an item too many", ScenarioList, "GET /syncs", wire.KindPagination, func(_ string, body map[string]any) int {
			body["data"] = append(body["data"].([]any), map[string]any{"id": 99})
			return 0
		}},
		{"another sync", ScenarioPoll, "GET /syncs/{id}", wire.KindItem, data("id", 8)},
		{"a sync in no state", ScenarioPoll, "GET /syncs/{id}", wire.KindItem, data("status", "asleep")},
		{"a run of another sync", ScenarioPoll, "GET /syncs/{id}/sync_runs", wire.KindItem, data("sync_id", 8)},
		{"a run in no state", ScenarioPoll, "GET /syncs/{id}/sync_runs", wire.KindRunState, data("status", "asleep")},
		{"another run", ScenarioPoll, "GET /sync_runs/{id}", wire.KindItem, data("id", 8)},
		{"a run that ends twice", ScenarioPoll, "GET /sync_runs/{id}", wire.KindRunState, data("status", "failed")},
		{"no run id", ScenarioTrigger, "POST /syncs/{id}/trigger", wire.KindItem, data("sync_run_id", nil)},
		{"the same run again", ScenarioTrigger, "POST /syncs/{id}/trigger", wire.KindItem, data("sync_run_id", 7)},
		{"a run in no state, triggered", ScenarioTrigger, "GET /sync_runs/{id}", wire.KindRunState, data("status", "asleep")},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeService{items: 7, polls: 0}
			seen := 0
			f.wrong = func(call string, body map[string]any) int {
				if call != c.call {
					return 0
				}
				if seen++; seen == 1 && call != "GET /sync_runs/{id}" && !strings.HasPrefix(call, "POST") && call != "GET /syncs/{id}/sync_runs" {
					return 0 // sent before the load
				}
				return c.wrong(call, body)
			}
			o := Options{Count: 6, Write: true, Service: &Service{Scenario: c.scenario, PerPage: 3}}
			if c.scenario != ScenarioList {
				o.Service.Syncs = []int64{7}
			}
			if c.kind == wire.KindRunState && c.scenario == ScenarioTrigger {
				o.Service.RunTimeout = 50 * time.Millisecond // no reply shows that it has ended
			}
			r, err := loadFake(t, f, o)
			require.NoError(t, err)
			require.Positive(t, r.ErrorsByKind[c.kind], "%v", r.ErrorMessages)
			require.Len(t, r.ErrorsByKind, 1, "%v", r.ErrorMessages)
			require.LessOrEqual(t, r.FailedRequests, r.Errors, "what is polled after the load counts as well")
			at := slices.IndexFunc(r.Service.Calls, func(have CallFigures) bool { return have.Call == c.call })
			require.Positive(t, r.Service.Calls[at].FailedRequests)
			require.Contains(t, r.ErrorMessages[0].Example.Identifier, strings.Fields(c.call)[0]+" /")
		})
	}
}

// TestServiceRunsThatDoNotEnd are given up, and said.
func TestServiceRunsThatDoNotEnd(t *testing.T) {
	r, err := loadFake(t, &fakeService{polls: 1 << 30}, Options{Count: 1, Write: true, Service: &Service{Scenario: ScenarioTrigger, Syncs: []int64{7}, RunTimeout: 20 * time.Millisecond}})
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Service.Runs.Unfinished)
	require.Zero(t, r.Service.Runs.Going)
	require.EqualValues(t, 1, r.ErrorsByKind[wire.KindRunUnfinished], r.ErrorMessages)
	require.Contains(t, r.ErrorMessages[0].Message, "it is working")
	require.Contains(t, r.Useless(), "the only run has not completed")
}

func TestServiceReports(t *testing.T) {
	options := func() Options {
		return Options{Count: 8, Write: true, Service: &Service{Scenario: ScenarioTrigger, Syncs: []int64{7}}}
	}
	f := &fakeService{polls: 1}
	a, err := loadFake(t, f, options())
	require.NoError(t, err)
	b, err := loadFake(t, &fakeService{polls: 1, end: "failed"}, options())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "r.json")
	out, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, a.WriteJSON(out))
	require.NoError(t, out.Close())
	again, err := ReadResult(file)
	require.NoError(t, err)
	require.Equal(t, a.Service, again.Service)

	c := Compare(a, b, 0.05)
	worse := map[string]bool{}
	for _, d := range c.Differences {
		worse[d.Name] = d.Worse
	}
	require.True(t, worse["runs failed"])
	require.Contains(t, worse, "POST /syncs/{id}/trigger p99")
	require.NotContains(t, worse, "records per second")

	b.Started, b.Target = a.Started, a.Target
	m, err := Merge([]*Result{a, b})
	require.NoError(t, err)
	require.EqualValues(t, 8, m.Service.Runs.Started)
	require.EqualValues(t, 4, m.Service.Runs.Failed)
	require.EqualValues(t, 8, m.Service.Calls[0].Requests)
	require.InDelta(t, max(a.Service.Calls[0].Latency.Max, b.Service.Calls[0].Latency.Max), m.Service.Calls[0].Latency.Max, 1)
	require.EqualValues(t, 4, a.Service.Runs.Started, "what was given is left alone")
	b.Load.Scenario = ScenarioPoll
	_, err = Merge([]*Result{a, b})
	require.ErrorContains(t, err, "another")
}

func TestServiceOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"name the scenario":          {Service: &Service{}},
		"no scenario \"walk\"":       {Service: &Service{Scenario: "walk"}},
		"name each with --sync":      {Service: &Service{Scenario: ScenarioTrigger}, Write: true},
		"say so with --write":        {Service: &Service{Scenario: ScenarioTrigger, Syncs: []int64{1}}},
		"from 1 to 100":              {Service: &Service{Scenario: ScenarioList, PerPage: 101}},
		"no list \"shoes\"":          {Service: &Service{Scenario: ScenarioList, Lists: []string{"shoes"}}},
		"list \"syncs\" is named":    {Service: &Service{Scenario: ScenarioList, Lists: []string{"syncs", "syncs"}}},
		"go together":                {Service: &Service{Scenario: ScenarioList, Syncs: []int64{1}}},
		"lists are walked":           {Service: &Service{Scenario: ScenarioPoll, Lists: []string{"syncs"}}},
		"full syncs are started":     {Service: &Service{Scenario: ScenarioPoll, FullSync: true}},
		"sync 4 is named twice":      {Service: &Service{Scenario: ScenarioPoll, Syncs: []int64{4, 4}}},
		"declares no speed":          {Service: &Service{Scenario: ScenarioList}, AsDeclared: true},
		"rates exclude each other":   {Service: &Service{Scenario: ScenarioList}, Closed: true, Stages: constant(1)},
		"sends no records":           {Service: &Service{Scenario: ScenarioList}, Cleanup: true},
		"cannot be negative":         {Service: &Service{Scenario: ScenarioList}, Count: -1},
		"the API key could be read":  {Service: &Service{Scenario: ScenarioList}, Target: Target{URL: "http://example.com"}},
		"its address alone":          {Service: &Service{Scenario: ScenarioList}, Target: Target{URL: "https://u:secret-word@example.com"}},
		"must start with":            {Service: &Service{Scenario: ScenarioList}, Target: Target{URL: "example.com"}},
		"replica: the URL of the se": {Service: &Service{Scenario: ScenarioList}, Target: Target{URL: "https://a.test", Replicas: []string{"b"}}},
	} {
		if o.Target.URL == "" {
			o.Target.URL = "http://127.0.0.1:1"
		}
		err := o.Check()
		var usage *wire.UsageError
		require.ErrorAs(t, err, &usage, want)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret-word")
	}
	for _, raw := range []string{"http://127.0.0.1:1", "http://127.0.0.1:1/", "http://127.0.0.1:1/api/v1", "http://127.0.0.1:1/api/v1/"} {
		base, err := apiURL(raw, "")
		require.NoError(t, err)
		require.Equal(t, "http://127.0.0.1:1/api/v1", base)
	}
	_, err := NewClient(context.Background(), Options{Service: &Service{Scenario: ScenarioList}})
	require.ErrorContains(t, err, "single batches")
}

// TestServiceBefore: problems of the whole load show before it.
func TestServiceBefore(t *testing.T) {
	for status, want := range map[int]string{401: "GET /syncs/7: HTTP status 401", 404: "is the URL that of a service", 500: "HTTP status 500: out of order"} {
		f := &fakeService{}
		f.wrong = func(_ string, body map[string]any) int { body["message"] = "out of order"; return status }
		_, err := loadFake(t, f, Options{Write: true, Service: &Service{Scenario: ScenarioTrigger, Syncs: []int64{7}}})
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, f.calls["GET /syncs/{id}"], fmt.Sprint(status))
		require.Zero(t, f.calls["POST /syncs/{id}/trigger"])
	}
}
