package violation

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

func invitationViolations() []violation {
	return []violation{
		breaks("ORG-010", "an open invitation has a time at which it was claimed", null("POST /invitations", "claimed_at", "1970-01-01T00:00:00.000Z")),
		breaks("ORG-010.2", "an open invitation leaves claimed_by_id out", seams{tell: func(a *exchange.Answer) {
			if a.Is("POST /invitations") {
				a.Data(func(i map[string]any) {
					if i["claimed_by_id"] == nil {
						delete(i, "claimed_by_id")
					}
				})
			}
		}}),
		accepts("ORG-012", "an unknown role in the organization is member", "POST /invitations", func(body map[string]any) {
			if role := body["role"]; role != "admin" && role != "member" {
				body["role"] = "member"
			}
		}),
		accepts("ORG-012.2", "an unknown role of an update is member", "PATCH /invitations/*", func(body map[string]any) {
			if role := body["role"]; role != "admin" && role != "member" {
				body["role"] = "member"
			}
		}),
		breaks("ORG-013", "only the first workspace of an invitation is shown", seams{tell: func(a *exchange.Answer) {
			if a.Is("POST /invitations") {
				a.Data(func(i map[string]any) {
					if all, _ := i["associated_workspace_invitations"].([]any); len(all) > 1 {
						i["associated_workspace_invitations"] = all[:1]
					}
				})
			}
		}}),
		breaks("ORG-014", "an invitation to a workspace that does not exist is answered well", seams{tell: func(a *exchange.Answer) {
			if a.Is("POST /invitations") && a.Status == http.StatusBadRequest && strings.Contains(string(a.Body), "no such workspace") && !strings.Contains(string(a.Body), "[0]") {
				a.Status, a.Body = http.StatusOK, []byte(`{"status":"success","data":{"id":0}}`)
			}
		}}),
		{Violation{ID: "ORG-015", Changes: "an invitation to another organization's workspace is answered well"}, foreignWorkspaces},
		breaks("ORG-017", "an update of an invitation shows the old role", seams{tell: func(a *exchange.Answer) {
			if a.Is("PATCH /invitations/*") {
				a.Data(func(i map[string]any) { i["role"] = "member" })
			}
		}}),
		breaks("ORG-018", "a claimed invitation has no claimed_at", seams{tell: func(a *exchange.Answer) {
			if a.Is("GET /invitations/*") {
				a.Data(func(i map[string]any) { i["claimed_at"] = nil })
			}
		}}),
		breaks("ORG-019", "an update of a claimed invitation is answered well", seams{tell: func(a *exchange.Answer) {
			if a.Is("PATCH /invitations/*") && a.Status == http.StatusConflict {
				a.Status, a.Body = http.StatusOK, []byte(`{"status":"updated","data":{"id":0}}`)
			}
		}}),
		{Violation{ID: "ORG-021", Changes: "the claim makes everybody a viewer of the workspaces"}, viewersOnly},
		{Violation{ID: "ORG-022", Changes: "a member is invited to workspaces, and not added"}, membersWait},
	}
}

func workspaceInvitationViolations() []violation {
	const many, one = "POST /workspaces/*/invitations", "PUT /workspaces/*/invitations/*"
	return []violation{
		breaks("ORG-024", "an invitation to a workspace has claimed_at", seams{tell: func(a *exchange.Answer) {
			if a.Is(many) {
				a.Data(func(i map[string]any) { i["claimed_at"] = nil })
			}
		}}),
		accepts("ORG-026", "an unknown role in a workspace is viewer", many, func(body map[string]any) {
			if role := body["role"]; role == "admin" || role == "member" {
				body["role"] = "viewer"
			}
		}),
		accepts("ORG-026.2", "an unknown role of an update is viewer", one, func(body map[string]any) {
			if body["role"] == "admin" {
				body["role"] = "viewer"
			}
		}),
		breaks("ORG-027", "only the first address is invited", seams{ask: func(q *exchange.Request) {
			if q.Is(many) {
				q.Edit(func(body map[string]any) {
					if emails, _ := body["emails"].([]any); len(emails) > 1 {
						body["emails"] = emails[:1]
					}
				})
			}
		}}),
		tells("ORG-028", "an update of an invitation to a workspace has the status success", one, func(body map[string]any) { body["status"] = "success" }),
		{Violation{ID: "ORG-030", Changes: "an update of an invitation to a workspace is answered and not stored"}, forgetsRole(one, "operator", "viewer")},
	}
}

// foreignWorkspaces answers well what names a workspace that exists elsewhere.
func foreignWorkspaces(s *Service) seams {
	return seams{tell: func(a *exchange.Answer) {
		if !a.Is("POST /workspaces/*/invitations") || a.Status != http.StatusNotFound {
			return
		}
		id := exchange.Number(strings.Split(strings.TrimPrefix(a.HTTP.URL.Path, api.BasePath), "/")[2])
		exists := s.View(a.HTTP.Context(), func(tx *store.Tx) error {
			_, err := store.Workspaces.Any(tx, id)
			return err
		}) == nil
		if exists {
			a.Status, a.Body = http.StatusOK, []byte(`{"status":"success","data":{"id":0}}`)
		}
	}}
}

// forgetsRole stores another role than the one that it answers.
func forgetsRole(call, given, stored string) func(*Service) seams {
	return func(*Service) seams {
		var asked sync.Map
		return seams{
			ask: func(q *exchange.Request) {
				if q.Is(call) {
					q.Edit(func(body map[string]any) {
						if body["role"] == given {
							asked.Store(q.HTTP.Context(), true)
							body["role"] = stored
						}
					})
				}
			},
			tell: func(a *exchange.Answer) {
				if _, was := asked.LoadAndDelete(a.HTTP.Context()); was {
					a.Data(func(i map[string]any) { i["role"] = given })
				}
			},
		}
	}
}

// viewersOnly stores the role viewer for each workspace of an invitation, and
// shows the one that was given.
func viewersOnly(*Service) seams {
	var asked sync.Map
	return seams{
		ask: func(q *exchange.Request) {
			if !q.Is("POST /invitations") {
				return
			}
			q.Edit(func(body map[string]any) {
				workspaces, _ := body["workspaces"].([]any)
				for _, one := range workspaces {
					if w, ok := one.(map[string]any); ok && w["role"] == "editor" {
						asked.Store(fmt.Sprint(body["email"], w["id"]), true)
						w["role"] = "viewer"
					}
				}
			})
		},
		tell: func(a *exchange.Answer) {
			if !a.Is("POST /invitations") {
				return
			}
			a.Data(func(i map[string]any) {
				all, _ := i["associated_workspace_invitations"].([]any)
				for _, one := range all {
					w := one.(map[string]any)
					if _, was := asked.Load(fmt.Sprint(i["email"], w["workspace_id"])); was {
						w["role"] = "editor"
					}
				}
			})
		},
	}
}

// membersWait drops the workspaces of an invitation for a member.
func membersWait(s *Service) seams {
	return seams{ask: func(q *exchange.Request) {
		if !q.Is("POST /invitations") {
			return
		}
		r := q.HTTP.Clone(q.HTTP.Context())
		r.Method, r.URL.Path, r.URL.RawQuery = http.MethodGet, api.BasePath+"/users", "per_page=100"
		token := strings.TrimPrefix(q.HTTP.Header.Get("Authorization"), "Bearer ")
		users := s.again(r, token, nil).Body.String()
		q.Edit(func(body map[string]any) {
			if strings.Contains(users, `"`+fmt.Sprint(body["email"])+`"`) {
				delete(body, "workspaces")
			}
		})
	}}
}
