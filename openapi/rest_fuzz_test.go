package openapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// FuzzCheckRequest: any query, id and body of any operation gives problems and
// never a panic; a body without problems can be decoded by the service.
func FuzzCheckRequest(f *testing.F) {
	all := Operations()
	for i, o := range all {
		f.Add(uint8(i), "page=2&order=asc", "1", "application/json", o.RequestExample())
		for _, e := range o.Examples() {
			if e.Status == 0 {
				f.Add(uint8(i), "", "abc", "", e.Body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, query, id, contentType string, body []byte) {
		o := all[int(which)%len(all)]
		r := &http.Request{Method: o.Method, URL: &url.URL{Path: "/", RawQuery: query}, Header: http.Header{"Content-Type": {contentType}}}
		values := map[string]string{}
		for _, p := range o.path {
			values[p.name] = id
		}
		problems := o.CheckRequest(r, values, body)
		for _, p := range problems {
			require.NotEmpty(t, p.Place)
			require.NotEmpty(t, p.Message)
		}
		require.LessOrEqual(t, len(problems), 8*maxProblems)
		numbered := o.NumberIDs(body)
		require.Equal(t, string(numbered), string(o.NumberIDs(numbered)), "once is enough")
		for _, p := range o.CheckRequest(r, values, numbered) {
			// A body with a repeated name is left as it is.
			require.False(t, p.Loose && p.OfBody() && !slices.ContainsFunc(problems, func(p RESTProblem) bool { return p.Malformed }), p.String())
		}
		if len(problems) == 0 && (o.ID == "createSync" || o.ID == "updateSync") {
			var decoded api.SyncConfig
			require.NoError(t, json.Unmarshal(body, &decoded), "%s", body)
		}
	})
}

// FuzzCheckResponse: any reply gives an error or none, and never a panic.
func FuzzCheckResponse(f *testing.F) {
	all := Operations()
	for i, o := range all {
		for _, e := range o.Examples() {
			f.Add(uint8(i), uint16(e.Status), e.Body)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, status uint16, body []byte) {
		o := all[int(which)%len(all)]
		if err := o.CheckResponse(int(status), replyHeaders(), body); err != nil {
			require.ErrorContains(t, err, o.ID)
		}
	})
}
