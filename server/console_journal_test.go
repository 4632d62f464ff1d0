package server

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// TestConsoleOfManyRequests: a page has its rows and no more, however many requests there
// are; the oldest are forgotten beyond what is kept.
func TestConsoleOfManyRequests(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Development = false })
	const made = 12_000
	for range made {
		r := httptest.NewRequest("GET", api.BasePath+"/syncs", nil)
		r.Header.Set("Authorization", "Bearer "+w.key)
		w.s.ServeHTTP(httptest.NewRecorder(), r)
	}
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
