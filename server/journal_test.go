package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestJournalOfRequests(t *testing.T) {
	w := newWorld(t)
	w.do("GET", "/destinations?page=2&token=in-the-query", w.key, nil)
	made := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second", "return_workspace_api_key": true}).want(201)
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second"}).want(409)
	w.do("GET", "/users", "wrong-token", nil).want(401)

	a := w.control("GET", "/journal/requests", nil).want(200)
	require.EqualValues(t, 4, a.id("total"))
	require.Equal(t, "listDestinations", a.at("entries.0.operation"))
	require.Equal(t, "/api/v1/destinations", a.at("entries.0.path"))
	require.Equal(t, "page=2&token=[hidden]", a.at("entries.0.query"))
	require.Equal(t, made.header.Get("X-Request-Id"), a.at("entries.1.id"))
	require.Equal(t, "Second", a.at("entries.1.request.name"))
	require.Equal(t, "[hidden]", a.at("entries.1.response.data.api_key"))
	require.EqualValues(t, 409, a.id("entries.2.status"))
	require.EqualValues(t, 0, a.id("entries.3.organization_id"))
	require.NotContains(t, string(a.text), made.at("data.api_key"))
	require.NotContains(t, string(a.text), w.pat)

	organization := a.id("entries.0.organization_id")
	for filter, want := range map[string]int{
		"operation=createWorkspace": 2, "status=409": 1, "status=4xx": 2 + boolInt(a.id("entries.0.status") == 400), "method=POST": 2,
		fmt.Sprintf("organization=%d", organization): 3, "organization=999": 0,
		fmt.Sprintf("workspace=%d", a.id("entries.0.workspace_id")): 1,
		"after=2": 2, "after=" + made.header.Get("X-Request-Id"): 2, "after=4": 0,
	} {
		require.Len(t, w.control("GET", "/journal/requests?"+filter, nil).want(200).at("entries"), want, filter)
	}
	page := w.control("GET", "/journal/requests?limit=3", nil).want(200)
	require.EqualValues(t, 3, page.id("next"))
	rest := w.control("GET", "/journal/requests?limit=3&after=3", nil).want(200)
	require.Len(t, rest.at("entries"), 1)
	require.Nil(t, rest.at("next"))
	w.control("GET", "/journal/requests?after=req_1", nil).want(400)

	w.control("DELETE", "/journal/requests", nil).want(200)
	require.Empty(t, w.control("GET", "/journal/requests", nil).want(200).at("entries"))
	w.do("GET", "/users", w.pat, nil).want(200)
	next := w.control("GET", "/journal/requests", nil).want(200)
	require.EqualValues(t, 5, next.id("entries.0.number"), "numbers go on")
	require.Equal(t, "req_000000000005", next.at("entries.0.id"), "ids count")
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestJournalOfCalls(t *testing.T) {
	w := newWorld(t)
	id := w.newDestination()
	a := w.control("GET", "/journal/calls", nil).want(200)
	require.Equal(t, "test_connection", a.at("entries.0.method"))
	require.Equal(t, "ok", a.at("entries.0.outcome"))
	for _, secret := range []string{"unguessable-segment", "destination-token", "header-secret"} {
		require.NotContains(t, string(a.text), secret)
	}
	organization := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.organization_id")
	total := int(a.id("total"))
	for filter, want := range map[string]int{
		"method=list_objects": 1, "outcome=tls": 0, fmt.Sprintf("destination=%d", id): total, "destination=999": 0,
		fmt.Sprintf("organization=%d", organization): total, "organization=999": 0, "status=200": total, "status=5xx": 0,
	} {
		require.Len(t, w.control("GET", "/journal/calls?"+filter, nil).want(200).at("entries"), want, filter)
	}
	w.control("DELETE", "/journal/calls", nil).want(200)
	require.Empty(t, w.control("GET", "/journal/calls", nil).want(200).at("entries"))
}

func TestJournalWithoutBodies(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, false, w.control("POST", "/journal", `{"bodies":false}`).want(200).at("bodies"))
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second"}).want(201)
	a := w.control("GET", "/journal/requests", nil).want(200)
	require.Nil(t, a.at("entries.0.request"))
	require.Nil(t, a.at("entries.0.response"))
	require.EqualValues(t, len(`{"name":"Second"}`), a.id("entries.0.request_bytes"))
}

// TestMaskedBodies: what is secret is replaced wherever it stands, the rest is
// kept as it was written.
func TestMaskedBodies(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"nothing secret": {`{"name":"Ada","n":1.50}`, `{"name":"Ada","n":1.50}`},
		"credentials": {
			`{"connection":{"name":"x","credentials":{"host":"db","port":5432,"password":"pass-1","user":"u-12"}}}`,
			`{"connection":{"name":"x","credentials":{"host":"db","port":5432,"password":"[hidden]","user":"[hidden]"}}}`,
		},
		"secret below something harmless": {
			`{"credentials":{"columns":[{"name":"a","password":"pass-1"}]}}`,
			`{"credentials":{"columns":[{"name":"a","password":"[hidden]"}]}}`,
		},
		"custom headers": {
			`{"credentials":{"api_version":1,"custom_headers":{"X-A":{"value":"v-12","is_secret":true}}}}`,
			`{"credentials":{"api_version":1,"custom_headers":{"X-A":{"value":"[hidden]","is_secret":true}}}}`,
		},
		"numbers and empty": {`{"password":12345,"secret":"","token":null}`, `{"password":"[hidden]","secret":"","token":null}`},
		"keys in capitals":  {`{"PassWord":"pass-1"}`, `{"PassWord":"[hidden]"}`},
		"escaped key":       {`{"p\u0061ssword":"pass-1"}`, `{"p\u0061ssword":"[hidden]"}`},
		"said again":        {`{"password":"pass-1","note":"it is pass-1!"}`, `{"password":"[hidden]","note":"it is [hidden]!"}`},
		"as a key":          {`{"password":"pass-1","pass-1":true}`, `{"password":"[hidden]","[hidden]":true}`},
		"as a number":       {`{"password":"12345","n":12345}`, `{"password":"[hidden]","n":"[hidden]"}`},
		"workspace key":     {`{"note":"secret-token:abc_DEF-1 and more"}`, `{"note":"[hidden] and more"}`},
		"no JSON":           {`{"password":"pass-1"`, ``},
		"empty":             {``, ``},
		"lists and spaces":  {" [ {\"token\" : [\"a-123\", [\"b-123\"]]} ] ", `[ {"token" : ["[hidden]", ["[hidden]"]]} ]`},
	} {
		t.Run(name, func(t *testing.T) {
			m := &masks{}
			m.learn([]byte(tc.body))
			require.Equal(t, tc.want, string(m.body([]byte(tc.body), true)))
		})
	}
}

// TestMaskingKeepsJSON: whatever the body, what is kept is JSON and holds no
// secret of it.
func TestMaskingKeepsJSON(t *testing.T) {
	word := rapid.StringMatching(`[a-zA-Z0-9"\\,:{}\[\] é-]{1,12}`)
	rapid.Check(t, func(rt *rapid.T) {
		var build func(depth int) any
		build = func(depth int) any {
			switch kind := rapid.IntRange(0, 5).Draw(rt, "kind"); {
			case kind == 0 && depth > 0:
				object := map[string]any{}
				for range rapid.IntRange(0, 4).Draw(rt, "members") {
					key := rapid.OneOf(rapid.SampledFrom(append(secretKeys, harmlessKeys...)), word).Draw(rt, "key")
					object[key] = build(depth - 1)
				}
				return object
			case kind == 1 && depth > 0:
				return []any{build(depth - 1), build(depth - 1)}
			case kind == 2:
				return rapid.IntRange(-99999, 99999).Draw(rt, "n")
			case kind == 3:
				return nil
			case kind == 4:
				return rapid.Bool().Draw(rt, "b")
			}
			return word.Draw(rt, "s")
		}
		body, err := json.Marshal(map[string]any{"rest": build(4), "password": "the-known-secret", "echo": "it was the-known-secret."})
		require.NoError(rt, err)
		m := &masks{}
		m.learn(body)
		kept := m.body(body, true)
		require.True(rt, json.Valid(kept), "%s became %s", body, kept)
		require.NotContains(rt, string(kept), "the-known-secret")
	})
}

func FuzzMask(f *testing.F) {
	for _, seed := range []string{`{}`, `{"password":"x"}`, `[1,2,{"token":["a",{"b":1}]}]`, `"a"`, `{"a":"\""}`, `{"credentials":{"host":"\u0041"}}`, `-1e5`, `{"secret":"true","a":true}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := &masks{}
		m.learn(body)
		if kept := m.body(body, true); kept != nil {
			require.True(t, json.Valid(kept), "%q became %q", body, kept)
			require.True(t, json.Valid(body))
		}
	})
}

func TestTextsAreCleaned(t *testing.T) {
	w := newWorld(t)
	r := httptest.NewRequest("POST", "/api/v1/x", nil)
	r.Header.Set("Authorization", "Bearer bearer-secret")
	c := &call{s: w.s, r: r, body: []byte(`{"credentials":{"auth_token":"a b/c+secret"}}`)}
	text := w.s.journal.clean(c, "dial bearer-secret ?t=a+b%2Fc%2Bsecret, a b/c+secret; secret-token:xyz'")
	require.Equal(t, "dial [hidden] ?t=[hidden], [hidden]; [hidden]'", text)
}

// TestRing: within its bounds the ring keeps the newest entries.
func TestRing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most, room := rapid.IntRange(1, 6).Draw(rt, "most"), rapid.IntRange(10, 40).Draw(rt, "room")
		r := newRing(most, room, func(s *string) int { return len(*s) })
		var model []string
		first, last := int64(1), int64(0)
		for range rapid.IntRange(0, 40).Draw(rt, "steps") {
			if rapid.IntRange(0, 9).Draw(rt, "step") == 0 {
				r.clear()
				model, first = nil, last+1
				continue
			}
			entry := strings.Repeat("x", rapid.IntRange(0, 15).Draw(rt, "size"))
			r.add(entry, func(_ *string, number int64) { last++; require.Equal(rt, last, number) })
			model = append(model, entry)
			size := 0
			for _, kept := range model {
				size += len(kept)
			}
			for len(model) > most || size > room && len(model) > 1 {
				size -= len(model[0])
				model, first = model[1:], first+1
			}
		}
		after := rapid.Int64Range(0, last+2).Draw(rt, "after")
		limit := rapid.IntRange(1, 8).Draw(rt, "limit")
		list, next, all, dropped := r.page(after, limit, func(*string) bool { return true })
		want := append([]string{}, model[min(len(model), int(max(0, after+1-first))):]...)
		if len(want) > limit {
			require.Equal(rt, max(first, after+1)+int64(limit)-1, next)
		} else {
			require.Zero(rt, next)
		}
		require.Equal(rt, want[:min(len(want), limit)], list)
		require.EqualValues(rt, len(model), all-dropped)

		// What is taken is the end of what is there.
		entries, size := rapid.IntRange(0, 8).Draw(rt, "entries"), rapid.IntRange(0, 60).Draw(rt, "size")
		taken, lost := r.take(entries, size)
		require.EqualValues(rt, all, lost+int64(len(taken)))
		require.Equal(rt, append([]string{}, model[len(model)-len(taken):]...), append([]string{}, taken...))
		if rest := len(model) - len(taken); rest > 0 && len(taken) < entries {
			require.Greater(rt, len(strings.Join(model[rest-1:], "")), size)
		}
		r.add("x", func(_ *string, number int64) { last++; require.Equal(rt, last, number) })
		list, _, all, dropped = r.page(0, 10, func(*string) bool { return true })
		require.Equal(rt, []string{"x"}, list)
		require.EqualValues(rt, 1, all)
		require.Zero(rt, dropped)
	})
}

// TestJournalInParallel: no two requests share an id, none is lost.
func TestJournalInParallel(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				r := httptest.NewRequest("GET", BasePath+"/users", nil)
				r.Header.Set("Authorization", "Bearer "+w.pat)
				w.s.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
	wg.Wait()
	var page struct{ Entries []RequestEntry }
	require.NoError(t, json.Unmarshal(w.control("GET", "/journal/requests", nil).want(200).text, &page))
	ids := map[string]bool{}
	for _, e := range page.Entries {
		ids[e.ID] = true
		require.Equal(t, http.StatusOK, e.Status)
	}
	require.Len(t, ids, 160)
}

func BenchmarkJournal(b *testing.B) {
	w := newWorld(b)
	r := httptest.NewRequest("GET", BasePath+"/syncs/1", nil)
	r.Header.Set("Authorization", "Bearer "+w.key)
	c := &call{s: w.s, r: r, op: w.s.ready["fetchSync"], began: w.s.Now()}
	body := bytes.Repeat([]byte(`{"from":{"type":"column","data":"email"},"to":"email","lookup_field":null}`), 20)
	b.ReportAllocs()
	for b.Loop() {
		recorder := w.s.journal.begin(c)
		recorder.code, recorder.body = 200, body
		recorder.end()
	}
}
