package violation

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// organizationViolations break the rules of ORG: workspaces, users and invitations (spec 2.13, 2.14).
func organizationViolations() []violation {
	return append(append(workspaceViolations(), invitationViolations()...), workspaceInvitationViolations()...)
}

func workspaceViolations() []violation {
	return []violation{
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
