package server

import (
	"maps"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func (w *world) fault(body map[string]any) string {
	w.t.Helper()
	return w.control("POST", "/faults", body).want(201).at("id").(string)
}

// codes calls GET /users n times.
func (w *world) codes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = w.do("GET", "/users", w.pat, nil).code
	}
	return list
}

func TestFaultTriggers(t *testing.T) {
	for name, tc := range map[string]struct {
		trigger map[string]any
		want    []int
	}{
		"always":         {nil, []int{503, 503, 503, 503, 503, 503}},
		"first n":        {map[string]any{"first_n": 2}, []int{503, 503, 200, 200, 200, 200}},
		"every":          {map[string]any{"every": 3}, []int{200, 200, 503, 200, 200, 503}},
		"after n":        {map[string]any{"after_n": 4}, []int{200, 200, 200, 200, 503, 503}},
		"together":       {map[string]any{"after_n": 1, "every": 2, "first_n": 4}, []int{200, 200, 503, 200, 503, 200}},
		"times":          {map[string]any{"times": 1, "every": 2}, []int{200, 503, 200, 200, 200, 200}},
		"one operation":  {map[string]any{"operation": "listSyncs"}, []int{200, 200, 200, 200, 200, 200}},
		"pattern":        {map[string]any{"operation": "list*", "first_n": 1}, []int{503, 200, 200, 200, 200, 200}},
		"method, path":   {map[string]any{"operation": "GET /users", "first_n": 1}, []int{503, 200, 200, 200, 200, 200}},
		"any method":     {map[string]any{"operation": "* /u*", "first_n": 1}, []int{503, 200, 200, 200, 200, 200}},
		"another path":   {map[string]any{"operation": "GET /users/*"}, []int{200, 200, 200, 200, 200, 200}},
		"another tenant": {map[string]any{"organization_id": 99}, []int{200, 200, 200, 200, 200, 200}},
		"own tenant":     {map[string]any{"organization_id": 1, "times": 1}, []int{503, 200, 200, 200, 200, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			body := map[string]any{"kind": "status", "status": 503}
			maps.Copy(body, tc.trigger)
			w.fault(body)
			require.Equal(t, tc.want, w.codes(6))
		})
	}
}

// TestFaultByChance: the same seed strikes the same calls.
func TestFaultByChance(t *testing.T) {
	struck := func(seed int) []int {
		w := newWorld(t)
		w.fault(map[string]any{"kind": "status", "probability": 0.5, "seed": seed})
		return w.codes(40)
	}
	one := struck(7)
	require.Equal(t, one, struck(7))
	require.NotEqual(t, one, struck(8))
	holds(t, one, 200, 500)
}

// TestFaultPhases: before the commit nothing has happened, after it only the
// answer is lost.
func TestFaultPhases(t *testing.T) {
	for phase, workspaces := range map[string]int64{"before": 1, "after": 2} {
		for _, kind := range []string{"status", "drop"} {
			t.Run(kind+" "+phase, func(t *testing.T) {
				w := newWorld(t)
				w.fault(map[string]any{"kind": kind, "phase": phase, "operation": "createWorkspace", "times": 1})
				create := func() int { return w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second"}).code }
				if kind == "drop" {
					require.PanicsWithValue(t, http.ErrAbortHandler, func() { create() })
				} else {
					require.Equal(t, 500, create())
				}
				require.Equal(t, workspaces, w.do("GET", "/workspaces", w.pat, nil).want(200).id("pagination.total_records"))
				entry := w.control("GET", "/journal/requests?operation=createWorkspace", nil).want(200)
				require.Equal(t, "fault_1", entry.at("entries.0.faults.0"))
				if kind == "drop" {
					require.EqualValues(t, 0, entry.id("entries.0.status"))
				}
				w.control("GET", "/journal/requests?fault=fault_1&status=0", nil).want(200)
			})
		}
	}
}

func TestRetryAfter(t *testing.T) {
	proves(t, "F-7.1-12", "F-8-08")
	w := newWorld(t)
	w.standsAt("2026-12-01T08:00:00Z")
	require.Equal(t, []int{200, 200, 200}, w.codes(3))
	for _, tc := range []struct {
		given any
		want  string
	}{
		{nil, "1"}, {30, "30"}, {"120", "120"}, {0, "0"},
		{"Wed, 02 Dec 2026 08:00:00 GMT", "Wed, 02 Dec 2026 08:00:00 GMT"},
		{"date:90", "Tue, 01 Dec 2026 08:01:30 GMT"},
	} {
		body := map[string]any{"kind": "rate_limited", "times": 1}
		if tc.given != nil {
			body["retry_after"] = tc.given
		}
		w.fault(body)
		a := w.do("GET", "/users", w.pat, nil).want(429)
		require.Equal(t, tc.want, a.header.Get("Retry-After"))
		require.Equal(t, "error", a.at("status"))
	}
}

func TestUnfiredFaults(t *testing.T) {
	w := newWorld(t)
	fired := w.fault(map[string]any{"kind": "status", "operation": "listUsers"})
	unfired := w.fault(map[string]any{"kind": "status", "operation": "listUsers", "after_n": 10})
	w.codes(2)
	list := w.control("GET", "/faults", nil).want(200)
	list.is("faults.0.matched", 2, "faults.0.fired", 2)
	require.EqualValues(t, 0, list.id("faults.1.matched"), "a fault that ends a call hides it from later ones")
	missing := w.control("GET", "/faults/unfired", nil).want(200)
	require.Len(t, missing.at("faults"), 1)
	require.Equal(t, unfired, missing.at("faults.0.id"))
	require.Equal(t, unfired, w.s.Faults().Unfired()[0].ID)

	require.Equal(t, false, w.control("DELETE", "/faults/"+fired, nil).want(200).at("armed"))
	require.Equal(t, []int{200}, w.codes(1))
	require.Len(t, w.control("DELETE", "/faults", nil).want(200).at("faults"), 1)
	require.Empty(t, w.s.Faults().Unfired())
}

func TestFaultsAreChecked(t *testing.T) {
	w := newWorld(t)
	for body, want := range map[string]string{
		`{}`:                                                               "kind: must be latency",
		`{"kind":"status","statsu":500}`:                                   `did you mean "status"`,
		`{"kind":"status","status":200}`:                                   "status: must be from 400 to 599",
		`{"kind":"drop","status":500}`:                                     "status: goes with the kind status",
		`{"kind":"latency"}`:                                               "latency: must be a duration",
		`{"kind":"latency","latency":"1h"}`:                                "latency: must be a duration",
		`{"kind":"drop","phase":"later"}`:                                  "phase: must be before or after",
		`{"kind":"drop","operation":"lstSyncs"}`:                           `did you mean "listSyncs"`,
		`{"kind":"drop","operation":"["}`:                                  "not a pattern",
		`{"kind":"drop","operation":"GRAB /x"}`:                            "the method must be",
		`{"kind":"drop","operation":"GET x"}`:                              "a pattern such as /syncs/*",
		`{"kind":"drop","probability":2}`:                                  "probability: must be from 0 to 1",
		`{"kind":"drop","every":-1}`:                                       "every: must not be negative",
		`{"kind":"rate_limited","retry_after":"soon"}`:                     "retry_after: must be seconds",
		`{"kind":"rate_limited","retry_after":"date:9223372036854775807"}`: "retry_after: must be from 0 to",
		`{"kind":"rate_limited","retry_after":-1}`:                         "retry_after: must be from 0 to 315360000 seconds",
		`{"kind":"latency","latency":"1s","retry_after":3}`:                "retry_after: goes with",
	} {
		a := w.control("POST", "/faults", body).want(400)
		require.Contains(t, a.at("message"), want, body)
	}
	require.Empty(t, w.control("GET", "/faults", nil).want(200).at("faults"))
}

// TestFaultsSpareControl: the control API is never struck, so faults can always
// be taken away.
func TestFaultsSpareControl(t *testing.T) {
	w := newWorld(t)
	w.fault(map[string]any{"kind": "drop"})
	w.control("GET", "/clock", nil).want(200)
	w.do("GET", "/users", "unknown", nil).want(401)
	w.control("DELETE", "/faults", nil).want(200)
	w.do("GET", "/users", w.pat, nil).want(200)
}
