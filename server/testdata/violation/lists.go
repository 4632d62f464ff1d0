package violation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// listsViolations break the rules of LST: the list envelope and its limits (spec 2.1, 8).
func listsViolations() []violation {
	return []violation{
		tells("LST-001", "the list of syncs has the status ok", "GET /syncs", func(body map[string]any) { body["status"] = "ok" }),
		tells("LST-001.2", "the list of source types holds an object by name", "GET /source_types", byName),
		tells("LST-001.3", "the list of users has no pagination", "GET /users", func(body map[string]any) { delete(body, "pagination") }),
		paginates("LST-002", "total_records of the destinations is a string", "GET /destinations", func(p map[string]any) { p["total_records"] = exchange.Text(p["total_records"]) }),
		paginates("LST-002.2", "the list of runs has no last_page", "GET /syncs/*/sync_runs", func(p map[string]any) { delete(p, "last_page") }),
		paginates("LST-003", "next_page of the syncs is left out on the last page", "GET /syncs", func(p map[string]any) {
			if p["next_page"] == nil {
				delete(p, "next_page")
			}
		}),
		paginates("LST-003.2", "prev_page of the users is false on the first page", "GET /users", func(p map[string]any) {
			if p["prev_page"] == nil {
				p["prev_page"] = false
			}
		}),
		tells("LST-004", "total_records of the runs counts the page", "GET /syncs/*/sync_runs", func(body map[string]any) {
			counted(body)["total_records"] = len(body["data"].([]any))
		}),
		paginates("LST-004.2", "total_records of the source types is one too many", "GET /source_types", plus("total_records", 1)),
		paginates("LST-005", "next_page of the destinations goes on after the last page", "GET /destinations", func(p map[string]any) {
			p["next_page"] = exchange.Number(p["page"]) + 1
		}),
		paginates("LST-007", "last_page of the syncs rounds down", "GET /syncs", func(p map[string]any) {
			p["last_page"] = exchange.Number(p["total_records"]) / exchange.Number(p["per_page"])
		}),
		breaks("LST-009", "page 0 of the syncs is refused", refusesQuery("GET /syncs", func(q map[string][]string) bool { return slices.Equal(q["page"], []string{"0"}) })),
		asks("LST-009.2", "page 0 of the objects is page 2", "GET /destinations/*/objects", func(q map[string][]string) {
			if slices.Equal(q["page"], []string{"0"}) {
				q["page"] = []string{"2"}
			}
		}),
		asks("LST-010", "a page of objects has 20 records by default", "GET /destinations/*/objects", sized("20")),
		asks("LST-010.2", "a page of users has 50 records by default", "GET /users", sized("50")),
		breaks("LST-012", "a page of more than 100 destinations is refused", refusesQuery("GET /destinations", beyond100)),
		asks("LST-012.2", "a page of more than 100 runs has 25", "GET /syncs/*/sync_runs", func(q map[string][]string) {
			if beyond100(q) {
				delete(q, "per_page")
			}
		}),
		asks("LST-013", "per_page of the source types is not read", "GET /source_types", func(q map[string][]string) { delete(q, "per_page") }),
		tells("LST-013.2", "a page of users has one record less than it says", "GET /users", func(body map[string]any) {
			if data := body["data"].([]any); int64(len(data)) == exchange.Number(counted(body)["per_page"]) && len(data) > 2 {
				body["data"] = data[1:]
			}
		}),
		{Violation{ID: "LST-014", Changes: "page 2 of the syncs begins with the last record of page 1"}, overlapping("GET /syncs")},
		tells("LST-015", "syncs come in the order of their last change", "GET /syncs", byChange),
		asks("LST-015.2", "the oldest run comes first, unless desc is asked for", "GET /syncs/*/sync_runs", func(q map[string][]string) {
			if len(q["order"]) == 0 {
				q["order"] = []string{"asc"}
			}
		}),
		asks("LST-017", "the order of users is not read", "GET /users", func(q map[string][]string) { delete(q, "order") }),
		tells("LST-020", "next of the users is a path", "GET /users", func(body map[string]any) {
			if next, ok := body["next"].(string); ok {
				body["next"] = next[strings.Index(next, "/users"):]
			}
		}),
		tells("LST-020.2", "next of the users is left out on the last page", "GET /users", func(body map[string]any) {
			if body["next"] == nil {
				delete(body, "next")
			}
		}),
		tells("LST-022", "the list of datasets is called datasets", "GET /datasets", func(body map[string]any) {
			body["datasets"] = body["data"]
			delete(body, "data")
		}),
	}
}

// tells changes the body of one good answer.
func tells(id, changes, call string, change func(map[string]any), also ...Also) violation {
	v := breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		if a.Is(call) && a.Status < http.StatusMultipleChoices {
			a.Edit(change)
		}
	}})
	v.Also = also
	return v
}

// paginates changes the pagination of one list.
func paginates(id, changes, call string, change func(map[string]any)) violation {
	return tells(id, changes, call, func(body map[string]any) { change(counted(body)) })
}

// asks changes the query of one call.
func asks(id, changes, call string, change func(map[string][]string)) violation {
	return breaks(id, changes, seams{ask: func(q *exchange.Request) {
		if q.Is(call) {
			q.Query(change)
		}
	}})
}

// refusesQuery answers 400 to a call with such a query.
func refusesQuery(call string, which func(map[string][]string) bool) seams {
	return seams{tell: func(a *exchange.Answer) {
		if a.Is(call) && which(a.HTTP.URL.Query()) {
			a.Status, a.Body = http.StatusBadRequest, []byte(`{"status":"error","message":"the query is invalid","errors":[]}`)
		}
	}}
}

func counted(body map[string]any) map[string]any { return body["pagination"].(map[string]any) }

func plus(member string, n int64) func(map[string]any) {
	return func(m map[string]any) { m[member] = exchange.Number(m[member]) + n }
}

// sized gives a default of per_page.
func sized(size string) func(map[string][]string) {
	return func(q map[string][]string) {
		if len(q["per_page"]) == 0 {
			q["per_page"] = []string{size}
		}
	}
}

func beyond100(q map[string][]string) bool {
	return len(q["per_page"]) > 0 && len(q["per_page"][0]) > 2 && q["per_page"][0] != "100"
}

// byName makes an object of a list.
func byName(body map[string]any) {
	named := map[string]any{}
	for _, one := range body["data"].([]any) {
		named[fmt.Sprint(one.(map[string]any)["service_name"])] = one
	}
	body["data"] = named
}

// byChange orders by updated_at, where the newest change is that of the oldest record.
func byChange(body map[string]any) {
	slices.SortStableFunc(body["data"].([]any), func(a, b any) int {
		return strings.Compare(fmt.Sprint(a.(map[string]any)["updated_at"]), fmt.Sprint(b.(map[string]any)["updated_at"]))
	})
}

// more reads another page of the list that an answer is about.
func (s *Service) more(a *exchange.Answer, query func(map[string][]string)) []any {
	r := a.HTTP.Clone(a.HTTP.Context())
	values := r.URL.Query()
	query(values)
	r.URL.RawQuery = values.Encode()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	var body struct{ Data []any }
	if json.Unmarshal(s.again(r, token, nil).Body.Bytes(), &body) != nil {
		return nil
	}
	return body.Data
}

// overlapping lets page 2 begin one record too early.
func overlapping(call string) func(*Service) seams {
	return func(s *Service) seams {
		return seams{tell: func(a *exchange.Answer) {
			if !a.Is(call) || a.HTTP.URL.Query().Get("page") != "2" {
				return
			}
			first := s.more(a, func(q map[string][]string) { q["page"] = []string{"1"} })
			a.Edit(func(body map[string]any) {
				if data, ok := body["data"].([]any); ok && len(data) > 0 && len(first) > 0 {
					body["data"] = append([]any{first[len(first)-1]}, data[:len(data)-1]...)
				}
			})
		}}
	}
}
