package violation

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// tokenViolations break rules of authentication (spec 5.1).
func tokenViolations() []violation {
	return []violation{
		opens("TOK-002", "the list of source types is open to everybody", "GET /source_types", false),
		opens("TOK-002.2", "a sync is changed without a token", "PATCH /syncs/*", false),
		opens("TOK-003", "the list of users is open to everybody", "GET /users", true),
		opens("TOK-003.2", "everybody changes the role of an invitation to a workspace", "PUT /workspaces/*/invitations/*", true),
		closes("TOK-004", "the runs of a sync are refused to workspace API keys", "GET /syncs/*/sync_runs", http.StatusForbidden),
		closes("TOK-004.2", "the creation of models is refused to workspace API keys", "POST /sources/*/models", http.StatusUnauthorized),
		closes("TOK-005", "the list of users is refused to personal access tokens", "GET /users", http.StatusForbidden),
		closes("TOK-005.2", "an update of an invitation is refused to personal access tokens", "PATCH /invitations/*", http.StatusUnauthorized),
		takes("TOK-006", "a personal access token lists the destinations of the first workspace", "GET /destinations", personal, false),
		takes("TOK-006.2", "a personal access token changes a sync of the first workspace", "PATCH /syncs/*", personal, false),
		takes("TOK-007", "a workspace API key lists the users", "GET /users", workspaceKey, true),
		takes("TOK-007.2", "a workspace API key invites people", "POST /invitations", workspaceKey, true),
		takes("TOK-008", "a workspace API key that lacks its end, or goes on after it, is taken", "GET /syncs", nearlyKey, false),
		takes("TOK-008.2", "a workspace API key is compared without regard to case", "GET /syncs", anyCaseKey, false),
		breaks("TOK-008.3", "an unknown token is refused with 403", seams{tell: func(a *exchange.Answer) {
			if a.Status == http.StatusUnauthorized && strings.HasPrefix(a.HTTP.Header.Get("Authorization"), "Bearer ") {
				a.Status = http.StatusForbidden
			}
		}}),
		breaks("TOK-011", "HTTP Basic is not read", seams{ask: func(q *exchange.Request) {
			if _, _, basic := q.HTTP.BasicAuth(); basic {
				q.HTTP.Header.Set("Authorization", "Unknown")
			}
		}}),
		{Violation{ID: "TOK-012", Changes: "the user bearer needs no good password"}, func(s *Service) seams {
			return seams{ask: func(q *exchange.Request) {
				if user, password, basic := q.HTTP.BasicAuth(); basic && user == "bearer" && password != s.Key() {
					text := base64.StdEncoding.EncodeToString([]byte("bearer:" + s.Key()))
					q.HTTP.Header.Set("Authorization", "Basic "+text)
				}
			}}
		}},
		breaks("TOK-013", "the key in the answer to a new workspace is not the one that is kept", seams{tell: func(a *exchange.Answer) {
			if a.Is("POST /workspaces") {
				a.Data(func(w map[string]any) {
					if key, ok := w["api_key"].(string); ok {
						w["api_key"] = key + "0"
					}
				})
			}
		}}),
		elsewhere("TOK-014", "a destination is found by its id in any workspace", "GET /destinations/*"),
		elsewhere("TOK-014.2", "a sync is found by its id in any workspace", "GET /syncs/*"),
	}
}

// signed lets a request come with a token.
func signed(q *exchange.Request, token string) { q.HTTP.Header.Set("Authorization", "Bearer "+token) }

// opens lets a call in that brings no token.
func opens(id, changes, call string, organization bool) violation {
	return takes(id, changes, call, func(_ *Service, token string) bool { return token == "" }, organization)
}

// takes lets a call in that brings a token which it should not take.
func takes(id, changes, call string, which func(s *Service, token string) bool, organization bool) violation {
	return violation{Violation{ID: id, Changes: changes}, func(s *Service) seams {
		return seams{ask: func(q *exchange.Request) {
			if !q.Is(call) || !which(s, strings.TrimPrefix(q.HTTP.Header.Get("Authorization"), "Bearer ")) {
				return
			}
			if organization {
				signed(q, s.Token())
			} else {
				signed(q, s.Key())
			}
		}}
	}}
}

func personal(s *Service, token string) bool     { return token == s.Token() }
func workspaceKey(s *Service, token string) bool { return token == s.Key() }

// nearlyKey is a key cut short, or with something after it.
func nearlyKey(s *Service, token string) bool {
	key := s.Key()
	return len(token) > len(key)/2 && token != key && (strings.HasPrefix(key, token) || strings.HasPrefix(token, key))
}

func anyCaseKey(s *Service, token string) bool {
	return token != s.Key() && strings.EqualFold(token, s.Key())
}

// closes refuses a call although its token is good.
func closes(id, changes, call string, status int) violation {
	return breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		if a.Is(call) && a.HTTP.Header.Get("Authorization") != "" {
			a.Status, a.Body = status, []byte(`{"status":"error","message":"no access","errors":[]}`)
		}
	}})
}

// again carries a request out once more beside the real one, with a token.
func (s *Service) again(r *http.Request, token string, body []byte) *httptest.ResponseRecorder {
	other := r.Clone(r.Context())
	other.Header.Set("Authorization", "Bearer "+token)
	other.Body, other.ContentLength = exchange.NewBody(body)
	recorded := httptest.NewRecorder()
	s.API.ServeHTTP(recorded, other)
	return recorded
}

// elsewhere answers from the first workspace what the caller's own does not have.
func elsewhere(id, changes, call string) violation {
	return violation{Violation{ID: id, Changes: changes}, func(s *Service) seams {
		return seams{tell: func(a *exchange.Answer) {
			if a.Is(call) && a.Status == http.StatusNotFound {
				found := s.again(a.HTTP, s.Key(), nil)
				a.Status, a.Body = found.Code, found.Body.Bytes()
			}
		}}
	}}
}
