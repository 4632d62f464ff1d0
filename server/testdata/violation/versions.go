package violation

import (
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// versionsViolations break the rules of DEP: versions and what is deprecated (spec 9).
func versionsViolations() []violation {
	return []violation{
		breaks("DEP-001", "version 2 of the API is version 1", seams{ask: func(q *exchange.Request) {
			if rest, other := strings.CutPrefix(q.HTTP.URL.Path, "/api/v2/"); other {
				q.HTTP.URL.Path = api.BasePath + "/" + rest
			}
		}}),
		breaks("DEP-002", "models can no longer be created", seams{tell: func(a *exchange.Answer) {
			if a.Is("POST /sources/*/models") {
				a.Status, a.Body = http.StatusGone, []byte(`{"status":"error","message":"use datasets"}`)
			}
		}}),
		tells("DEP-002.2", "a new model has the status success", "POST /sources/*/models", func(body map[string]any) { body["status"] = "success" }),
		breaks("DEP-006", "a dataset does not show its query", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /datasets/*") {
				a.Data(func(d map[string]any) { delete(d, "query") })
			}
		}}),
	}
}
