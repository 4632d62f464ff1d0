package violation

import (
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// versionsViolations break the rules of DEP: versions and what is deprecated (spec 9).
func versionsViolations() []violation {
	undated := func(call string) seams {
		return seams{tell: func(a *exchange.Answer) {
			if a.Is(call) {
				a.Header.Del("Deprecation")
			}
		}}
	}
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
		breaks("DEP-003", "a new model is answered without Deprecation", undated("POST /sources/*/models")),
		breaks("DEP-004", "a new sync with deprecated fields is answered without Deprecation", undated("POST /syncs")),
		breaks("DEP-005", "every answer about a destination says that it is deprecated", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /destinations/*") {
				a.Header.Set("Deprecation", "@1672531200")
			}
		}}),
		breaks("DEP-006", "a dataset does not show its query", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /datasets/*") {
				a.Data(func(d map[string]any) { delete(d, "query") })
			}
		}}),
	}
}
