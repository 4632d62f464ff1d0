package violation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// Calls of /destinations as violations name them.
const (
	makesDestination   = "POST /destinations"
	fetchesDestination = "GET /destinations/*"
	listsDestinations  = "GET /destinations"
	savesDestination   = "PATCH /destinations/*"
)

// answersAt is a violation that changes one kind of answers.
func answersAt(id, changes, call string, change func(*exchange.Answer)) violation {
	return breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		if a.Is(call) {
			change(a)
		}
	}})
}

// showsAt is a violation that changes what such answers show, once for each
// thing of a list.
func showsAt(id, changes, call string, change func(map[string]any)) violation {
	return answersAt(id, changes, call, func(a *exchange.Answer) { a.Data(change) })
}

// also names the other checks that a violation trips.
func (v violation) also(id, why string) violation {
	v.Also = append(slices.Clone(v.Also), Also{id, why})
	return v
}

// destinationsViolations break the rules of DST: connections to destinations (spec 2.2).
func destinationsViolations() []violation {
	return slices.Concat(destinationViews(), destinationChanges(), destinationTests(), destinationSecrets())
}

// destinationViews change what is shown of destinations (spec 2.2, 4).
func destinationViews() []violation {
	return []violation{
		showsAt("DST-001", "the list of destinations shows created_at in milliseconds", listsDestinations, func(d map[string]any) {
			d["created_at"] = json.Number("1767603600000")
		}).also("DST-007", "a number is not the created_at that was shown before"),
		showsAt("DST-001.2", "a fetched destination has no objects", fetchesDestination, func(d map[string]any) { delete(d, "objects") }),
		showsAt("DST-001.3", "the answer to a change writes last_tested_at in local time without zone", savesDestination, func(d map[string]any) {
			if at, ok := d["last_tested_at"].(string); ok {
				d["last_tested_at"] = strings.Replace(strings.TrimSuffix(at, "Z"), "T", " ", 1)
			}
		}),
		showsAt("DST-001.4", "a new destination shows last_test_succeeded as a word", makesDestination, func(d map[string]any) {
			if passed, ok := d["last_test_succeeded"].(bool); ok {
				d["last_test_succeeded"] = map[bool]string{true: "yes", false: "no"}[passed]
			}
		}).also("DST-013", "the word is not true").also("DST-016", "the word is not false"),
		showsAt("DST-003", "the list of destinations shows names in lower case", listsDestinations, func(d map[string]any) {
			if name, ok := d["name"].(string); ok {
				d["name"] = strings.ToLower(name)
			}
		}).also("DST-007", "the list is one of the places where a new name is looked for"),
		answersAt("DST-005", "the list of destinations shows every entry twice", listsDestinations, func(a *exchange.Answer) {
			a.Edit(func(body map[string]any) {
				data, _ := body["data"].([]any)
				body["data"] = slices.Concat(data, data)
			})
		}),
		answersAt("DST-005.2", "the list of destinations leaves out what is of the type custom_api", listsDestinations, func(a *exchange.Answer) {
			a.Edit(func(body map[string]any) {
				data, _ := body["data"].([]any)
				body["data"] = slices.DeleteFunc(data, func(one any) bool {
					d, _ := one.(map[string]any)
					return d["type"] == api.TypeCustomAPI
				})
			})
		}),
	}
}

// destinationChanges break updates, unknown ids and refusals (spec 4, 7.1).
func destinationChanges() []violation {
	return []violation{
		{Violation{ID: "DST-007", Changes: "a new name is answered and not stored"}, forgetsName},
		answersAt("DST-009", "an unknown destination is answered with 200 and no data", fetchesDestination, func(a *exchange.Answer) {
			if a.Status == http.StatusNotFound {
				a.Status, a.Body = http.StatusOK, []byte(`{"status":"not_found","data":null}`)
			}
		}).also("DST-029", "what was deleted is unknown from then on"),
		answersAt("DST-009.2", "changing an unknown destination answers 400", savesDestination, func(a *exchange.Answer) {
			if a.Status == http.StatusNotFound {
				a.Status = http.StatusBadRequest
			}
		}),
		showsAt("DST-011", "the answer to a change shows is_file_system_destination as null", savesDestination, func(d map[string]any) {
			d["is_file_system_destination"] = nil
		}),
		showsAt("DST-011.2", "the answer to a change leaves is_file_system_destination out", savesDestination, func(d map[string]any) {
			delete(d, "is_file_system_destination")
		}),
		answersAt("DST-029", "deleting a destination answers 204", "DELETE /destinations/*", func(a *exchange.Answer) {
			if a.Status == http.StatusOK {
				a.Status, a.Body = http.StatusNoContent, nil
			}
		}),
		{Violation{ID: "DST-029.2", Changes: "a deleted destination stays in the list"}, listsDeleted},
		answersAt("DST-028", "a connection of an unknown type is answered with 422", makesDestination, func(a *exchange.Answer) {
			if a.Status == http.StatusBadRequest && strings.Contains(string(a.Body), "service_connection.type") {
				a.Status = http.StatusUnprocessableEntity
			}
		}),
		breaks("DST-028.2", "a connection without a URL is made for an address that nobody has", seams{ask: func(q *exchange.Request) {
			if q.Is(makesDestination) {
				editCredentials(q, func(credentials map[string]any) {
					if credentials["webhook_url"] == nil {
						credentials["webhook_url"] = "http://127.0.0.1:1/"
					}
				})
			}
		}}),
	}
}

// listsDeleted shows what was deleted as it was when it was made.
func listsDeleted(*Service) seams {
	var lock sync.Mutex
	made, gone := map[string]any{}, []any{} // by path
	return seams{tell: func(a *exchange.Answer) {
		lock.Lock()
		defer lock.Unlock()
		switch {
		case a.Is(makesDestination):
			a.Data(func(d map[string]any) { made[a.HTTP.URL.Path+"/"+fmt.Sprint(d["id"])] = d })
		case a.Is("DELETE /destinations/*") && made[a.HTTP.URL.Path] != nil:
			gone = append(gone, made[a.HTTP.URL.Path])
		case a.Is(listsDestinations):
			a.Edit(func(body map[string]any) {
				if list, ok := body["data"].([]any); ok {
					body["data"] = append(list, gone...)
				}
			})
		}
	}}
}

// editCredentials changes the credentials of a connection that is made or saved.
func editCredentials(q *exchange.Request, change func(map[string]any)) {
	q.Edit(func(body map[string]any) {
		connection, _ := body["service_connection"].(map[string]any)
		if credentials, ok := connection["credentials"].(map[string]any); ok {
			change(credentials)
		}
	})
}

// forgetsName takes the name out of every change and shows it all the same.
func forgetsName(*Service) seams {
	var lock sync.Mutex
	asked := map[string]any{} // by path
	return seams{
		ask: func(q *exchange.Request) {
			if !q.Is(savesDestination) {
				return
			}
			q.Edit(func(body map[string]any) {
				connection, _ := body["service_connection"].(map[string]any)
				lock.Lock()
				asked[q.HTTP.URL.Path] = connection["name"]
				lock.Unlock()
				delete(connection, "name")
			})
		},
		tell: func(a *exchange.Answer) {
			if a.Is(savesDestination) {
				lock.Lock()
				defer lock.Unlock()
				if name := asked[a.HTTP.URL.Path]; name != nil {
					a.Data(func(d map[string]any) { d["name"] = name })
				}
			}
		},
	}
}
