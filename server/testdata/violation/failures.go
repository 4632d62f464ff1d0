package violation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// failuresViolations break the rules of FLT: the form of answers, and refused calls (spec 2, 4, 7.1).
func failuresViolations() []violation {
	return append(failureForms(), failureRules()...)
}

func failureForms() []violation {
	return []violation{
		fails("FLT-001", "an unknown path is answered with a page", http.StatusNotFound, func(a *exchange.Answer) {
			if a.Is("GET /nothing") {
				a.Header.Set("Content-Type", "text/html")
				a.Body = []byte("<h1>Not Found</h1>")
			}
		}, Also{"FLT-002", "a page has no status"}),
		breaks("FLT-001.2", "a destination is answered as text/plain", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /destinations/*") {
				a.Header.Set("Content-Type", "text/plain")
			}
		}}),
		fails("FLT-002", "a body that cannot be read is refused without a status", http.StatusBadRequest, func(a *exchange.Answer) {
			if bytes.Contains(a.Body, []byte("malformed JSON")) {
				a.Edit(func(body map[string]any) { delete(body, "status") })
			}
		}),
		tells("FLT-003", "a changed destination has the status ok", "PATCH /destinations/*", func(body map[string]any) { body["status"] = "ok" }),
		tells("FLT-003.2", "a destination object has the status found", "GET /destinations/*/objects/*", func(body map[string]any) { body["status"] = "found" }),
		fails("FLT-004", "an update of a destination that is not there has the status failed", http.StatusNotFound, func(a *exchange.Answer) {
			if a.Is("PATCH /destinations/*") {
				a.Edit(func(body map[string]any) { body["status"] = "failed" })
			}
		}),
		breaks("FLT-005", "a sync that is not there is null", missing("GET /syncs/*", http.StatusOK, `{"status":"success","data":null}`)),
		breaks("FLT-005.2", "a topic that is not there makes the service fail", missing("PATCH /sources/*/topics/*", http.StatusInternalServerError, `{"status":"error","message":"the service failed"}`)),
		fails("FLT-008", "a connection that is no good is refused with 422", http.StatusBadRequest, func(a *exchange.Answer) {
			if a.Is("POST /destinations") {
				a.Status = http.StatusUnprocessableEntity
			}
		}),
		fails("FLT-008.2", "an update of a sync that is no good has the status failed", http.StatusBadRequest, func(a *exchange.Answer) {
			if a.Is("PATCH /syncs/*") {
				a.Edit(func(body map[string]any) { body["status"] = "failed" })
			}
		}),
		fails("FLT-009", "a topic that is no good is refused without a message", http.StatusBadRequest, func(a *exchange.Answer) {
			if a.Is("POST /sources/*/topics") {
				a.Edit(func(body map[string]any) { delete(body, "message") })
			}
		}),
		breaks("FLT-018", "the id of a sync is a string", field("GET /syncs/*", "id", func(v any) any { return fmt.Sprint(v) })),
		breaks("FLT-018.2", "sync_id of a run is a string", field("GET /syncs/*/sync_runs", "sync_id", func(v any) any { return fmt.Sprint(v) })),
		breaks("FLT-019", "completed_at of a run has no zone", field("GET /syncs/*/sync_runs", "completed_at", func(v any) any {
			return strings.TrimSuffix(fmt.Sprint(v), "Z")
		})),
		breaks("FLT-019.2", "created_at of a destination is two hours east", field("GET /destinations/*", "created_at", func(v any) any {
			return strings.Replace(fmt.Sprint(v), "Z", "+02:00", 1)
		})),
		breaks("FLT-020", "updated_at of a sync is called updatedAt", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /syncs/*") {
				a.Data(func(sync map[string]any) {
					sync["updatedAt"] = sync["updated_at"]
					delete(sync, "updated_at")
				})
			}
		}}),
	}
}

func failureRules() []violation {
	repaired := regexp.MustCompile(`\}+$`)
	digits := regexp.MustCompile(`/syncs/(\d+)[^/\d][^/]*$`)
	return []violation{
		breaks("FLT-011", "what follows the JSON of a body is not looked at", seams{ask: func(q *exchange.Request) {
			var value json.RawMessage
			if q.Is("PATCH /destinations/*") && json.NewDecoder(bytes.NewReader(q.Body)).Decode(&value) == nil {
				q.Body = value
			}
		}}),
		breaks("FLT-011.2", "a body that ends too early is completed", seams{ask: func(q *exchange.Request) {
			if q.Is("POST /destinations") && bytes.HasPrefix(q.Body, []byte("{")) && !repaired.Match(q.Body) {
				q.Body = nil
			}
		}, tell: func(a *exchange.Answer) {
			if a.Is("POST /destinations") && bytes.Contains(a.Body, []byte("is required: send a JSON object")) {
				a.Status, a.Body = http.StatusCreated, []byte(`{"status":"created","data":{"id":0}}`)
			}
		}}),
		breaks("FLT-013", "a Content-Type with a parameter is refused", seams{tell: func(a *exchange.Answer) {
			if strings.HasPrefix(a.HTTP.Header.Get("Content-Type"), "application/json;") {
				a.Status, a.Body = http.StatusUnsupportedMediaType, []byte(`{"status":"error","message":"only application/json"}`)
			}
		}}),
		breaks("FLT-015", "an unknown path is an empty list", missing("GET /*", http.StatusOK, `{"status":"success","data":[]}`)),
		breaks("FLT-017", "an id is read up to the first character that is no digit", seams{ask: func(q *exchange.Request) {
			q.HTTP.URL.Path = digits.ReplaceAllString(q.HTTP.URL.Path, "/syncs/$1")
			q.HTTP.URL.RawPath = ""
		}}),
		breaks("FLT-017.2", "an id that is too large makes the service fail", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /syncs/*") && len(a.HTTP.URL.Path) > len(api.BasePath)+len("/syncs/")+19 {
				a.Status = http.StatusInternalServerError
			}
		}}),
		{Violation{ID: "FLT-021", Changes: "the label of a sync is stored before the rest is looked at"}, labelFirst},
	}
}

// fails changes answers with an HTTP status.
func fails(id, changes string, status int, change func(*exchange.Answer), also ...Also) violation {
	v := breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		if a.Status == status {
			change(a)
		}
	}})
	v.Also = also
	return v
}

// missing answers in another way what is not there.
func missing(call string, status int, body string) seams {
	return seams{tell: func(a *exchange.Answer) {
		if a.Is(call) && a.Status == http.StatusNotFound {
			a.Status, a.Body = status, []byte(body)
		}
	}}
}

// field changes a field of data that is there and not null.
func field(call, name string, change func(any) any) seams {
	return seams{tell: func(a *exchange.Answer) {
		if a.Is(call) && a.Status < http.StatusMultipleChoices {
			a.Data(func(one map[string]any) {
				if v := one[name]; v != nil {
					one[name] = change(v)
				}
			})
		}
	}}
}

// labelFirst stores the label of an update that is then refused.
func labelFirst(s *Service) seams {
	return seams{ask: func(q *exchange.Request) {
		var sent struct{ Label string }
		if !q.Is("PATCH /syncs/*") || json.Unmarshal(q.Body, &sent) != nil || sent.Label == "" {
			return
		}
		token := strings.TrimPrefix(q.HTTP.Header.Get("Authorization"), "Bearer ")
		read := q.HTTP.Clone(q.HTTP.Context())
		read.Method = http.MethodGet
		var now struct{ Data json.RawMessage }
		if json.Unmarshal(s.again(read, token, nil).Body.Bytes(), &now) == nil {
			s.again(q.HTTP, token, exchange.EditJSON(now.Data, func(body map[string]any) { body["label"] = sent.Label }))
		}
	}}
}
