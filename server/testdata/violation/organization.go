package violation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// organizationViolations break the rules of ORG: workspaces, users and invitations (spec 2.13, 2.14).
func organizationViolations() []violation {
	return append(append(workspaceViolations(), invitationViolations()...), workspaceInvitationViolations()...)
}

func workspaceViolations() []violation {
	return []violation{
		tells("ORG-001", "a new workspace has the status created", "POST /workspaces", func(body map[string]any) { body["status"] = "created" }),
		breaks("ORG-001.2", "a new workspace is answered with 200", seams{tell: func(a *exchange.Answer) {
			if a.Is("POST /workspaces") && a.Status == http.StatusCreated {
				a.Status = http.StatusOK
			}
		}}),
		breaks("ORG-002", "a workspace without addresses has no notification_emails", seams{tell: func(a *exchange.Answer) {
			if a.Is("POST /workspaces") {
				a.Data(func(w map[string]any) {
					if emails, _ := w["notification_emails"].([]any); len(emails) == 0 {
						delete(w, "notification_emails")
					}
				})
			}
		}}),
		breaks("ORG-003", "the key of a new workspace is never shown", seams{tell: func(a *exchange.Answer) {
			if a.Is("POST /workspaces") {
				a.Data(func(w map[string]any) { delete(w, "api_key") })
			}
		}}),
		breaks("ORG-004", "the key of a new workspace is always shown", seams{ask: func(q *exchange.Request) {
			if q.Is("POST /workspaces") {
				q.Edit(func(body map[string]any) {
					if body["name"] != nil {
						body["return_workspace_api_key"] = true
					}
				})
			}
		}}),
		breaks("ORG-004.2", "a workspace that is read shows its key as null", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /workspaces/*") {
				a.Data(func(w map[string]any) { w["api_key"] = nil })
			}
		}}),
		accepts("ORG-005", "a workspace without a name gets one", "POST /workspaces", func(body map[string]any) {
			if body["name"] == nil {
				body["name"] = "Untitled"
			}
		}),
		renames("ORG-006", "a second workspace of a name is made"),
		{Violation{ID: "ORG-007", Changes: "the name of a workspace is unique over all organizations"}, namesEverywhere},
		breaks("ORG-008", "only the first address for alerts is kept", seams{ask: func(q *exchange.Request) {
			if q.Is("POST /workspaces") {
				q.Edit(func(body map[string]any) {
					if emails, _ := body["notification_emails"].([]any); len(emails) > 1 {
						body["notification_emails"] = emails[:1]
					}
				})
			}
		}}),
		breaks("ORG-031", "a user has no created_at", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /users") {
				a.Data(func(u map[string]any) { delete(u, "created_at") })
			}
		}}),
		tells("ORG-032", "the list of users shows the first one only", "GET /users", func(body map[string]any) {
			if users, _ := body["data"].([]any); len(users) > 1 {
				body["data"] = users[len(users)-1:]
			}
		}, Also{"ORG-019", "who has claimed is looked up in the list of users"}, Also{"ORG-020", "who has claimed is looked up in the list of users"},
			Also{"ORG-021", "who has claimed is looked up in the list of users"}),
		{Violation{ID: "ORG-033", Changes: "who is invited stands in the list of users at once"}, invitedUsers},
		accepts("ORG-034", "an invitation to no address is made", "POST /invitations", func(body map[string]any) {
			if email, _ := body["email"].(string); !strings.Contains(email, "@") {
				body["email"] = "postmaster@example.com"
			}
		}),
		accepts("ORG-034.2", "a workspace takes addresses that are none", "POST /workspaces", func(body map[string]any) {
			if emails, _ := body["notification_emails"].([]any); len(emails) == 1 && !strings.Contains(fmt.Sprint(emails[0]), "@") {
				delete(body, "notification_emails")
			}
		}),
	}
}

// accepts mends a body before it is looked at.
func accepts(id, changes, call string, mend func(map[string]any)) violation {
	return breaks(id, changes, seams{ask: func(q *exchange.Request) {
		if q.Is(call) {
			q.Edit(mend)
		}
	}})
}

// null sets a field that is null.
func null(call, name string, value any) seams {
	return seams{tell: func(a *exchange.Answer) {
		if a.Is(call) {
			a.Data(func(one map[string]any) {
				if one[name] == nil {
					one[name] = value
				}
			})
		}
	}}
}

// renames, as others here, knows a request by its context when it is answered.
// It makes a workspace of a taken name under another one, and shows the
// name that was asked for.
func renames(id, changes string) violation {
	return violation{Violation{ID: id, Changes: changes}, func(s *Service) seams {
		var asked sync.Map
		return seams{
			ask: func(q *exchange.Request) {
				if q.Is("POST /workspaces") {
					asked.Store(q.HTTP.Context(), q.Body)
				}
			},
			tell: func(a *exchange.Answer) {
				if !a.Is("POST /workspaces") || a.Status != http.StatusConflict {
					return
				}
				body, _ := asked.LoadAndDelete(a.HTTP.Context())
				token := strings.TrimPrefix(a.HTTP.Header.Get("Authorization"), "Bearer ")
				made := s.again(a.HTTP, token, exchange.EditJSON(body.([]byte), func(w map[string]any) { w["name"] = fmt.Sprint(w["name"], " 2") }))
				a.Status, a.Body = made.Code, made.Body.Bytes()
			},
		}
	}}
}

// namesEverywhere remembers the names of all organizations.
func namesEverywhere(*Service) seams {
	var names sync.Map
	return seams{tell: func(a *exchange.Answer) {
		if !a.Is("POST /workspaces") || a.Status >= http.StatusMultipleChoices {
			return
		}
		a.Data(func(w map[string]any) {
			if other, known := names.LoadOrStore(w["name"], fmt.Sprint(w["organization_id"])); known && other != fmt.Sprint(w["organization_id"]) {
				a.Status = http.StatusConflict
			}
		})
		if a.Status == http.StatusConflict {
			a.Body = []byte(`{"status":"error","message":"the name is taken"}`)
		}
	}}
}

// invitedUsers adds open invitations to the list of users.
func invitedUsers(s *Service) seams {
	return seams{tell: func(a *exchange.Answer) {
		if !a.Is("GET /users") {
			return
		}
		r := a.HTTP.Clone(a.HTTP.Context())
		r.URL.Path, r.URL.RawQuery = api.BasePath+"/invitations", "per_page=100"
		token := strings.TrimPrefix(a.HTTP.Header.Get("Authorization"), "Bearer ")
		var invited struct{ Data []map[string]any }
		if json.Unmarshal(s.again(r, token, nil).Body.Bytes(), &invited) != nil {
			return
		}
		a.Edit(func(body map[string]any) {
			users, _ := body["data"].([]any)
			for _, i := range invited.Data {
				if i["claimed_at"] == nil {
					users = append(users, map[string]any{"id": i["id"], "email": i["email"], "created_at": i["created_at"], "role": i["role"]})
				}
			}
			body["data"] = users
		})
	}}
}
