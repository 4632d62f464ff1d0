package server

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
)

// fillJournal makes so many requests of the API.
func fillJournal(t testing.TB, w *world, requests int) {
	t.Helper()
	for range requests {
		r := httptest.NewRequest("GET", api.BasePath+"/syncs", nil)
		r.Header.Set("Authorization", "Bearer "+w.key)
		w.s.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// fillJournalWithBodies makes as many entries with bodies as the journal keeps: their
// replies fill the memory that it has.
func fillJournalWithBodies(w *world, requests int) {
	r := httptest.NewRequest("GET", api.BasePath+"/syncs/1", nil)
	r.Header.Set("Authorization", "Bearer "+w.key)
	mappings := strings.Repeat(`{"from":{"type":"column","data":"Email"},"to":"email","lookup_field":null},`, 4)
	for i := range requests {
		c := &call.Call{Ctx: w.t.Context(), Shared: w.s.shared, R: r, Op: w.s.ready["fetchSync"], Began: w.s.Clock().Now()}
		recorder := w.s.answering.Record(c)
		recorder.Code, recorder.Body = 200, fmt.Appendf(nil, `{"id":%d,"mappings":[%s null],"label":"Kunden in Köln"}`, i, mappings)
		w.s.answering.Recorded(c, recorder)
	}
}

// BenchmarkConsoleOfManyRequests opens the list of requests with 100,000 in the journal,
// with bodies that fill its memory: its newest page, its oldest one, and pages that look
// for texts: one that no request has, one that only the oldest has, one of bytes that
// every body is full of, and one beyond ASCII.
func BenchmarkConsoleOfManyRequests(b *testing.B) {
	w := newWorld(b, func(c *Config) { c.Development = false })
	fillJournalWithBodies(w, 100_000)
	v := newVisitor(b, w.s)
	for _, page := range []struct{ name, path string }{
		{"newest", "/requests"}, {"oldest", "/requests?before=51"},
		{"search", "/requests?text=nothing-has-this"}, {"search-oldest", "/requests?text=req_000000000001"},
		{"search-common", "/requests?text=%22%3A%22%2C%22"}, {"search-beyond-ascii", "/requests?text=m%C3%BCnchen"},
		{"filter", "/requests?method=PATCH&status=5xx"}, {"path", "/requests?path=/users"},
	} {
		b.Run(page.name, func(b *testing.B) {
			for b.Loop() {
				v.open(page.path).want(200)
			}
		})
	}
}

// TestConsoleOfManyRequests: a page has its rows and no more, however many requests there
// are; the oldest are forgotten beyond what is kept.
func TestConsoleOfManyRequests(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Development = false })
	const made = 12_000
	fillJournal(t, w, made)
	v := newVisitor(t, w.s)
	row := regexp.MustCompile(`<tr id="x-req_`)
	for _, path := range []string{"/requests", "/requests?before=9000", "/requests?status=200"} {
		page := v.open(path).want(200)
		require.Len(t, row.FindAllString(page.Body.String(), -1), 50, path)
		require.Less(t, page.Body.Len(), 64<<10, path)
	}
	v.open("/requests").has(fmt.Sprintf("%d,000 exchanges so far", made/1000))
	require.NotContains(t, v.open("/requests").Body.String(), "are forgotten")
	require.Len(t, row.FindAllString(v.open("/requests?before=11").want(200).Body.String(), -1), 10)
}
