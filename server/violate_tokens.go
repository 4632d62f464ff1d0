package server

import (
	"net/http"
)

// tokenViolations break rules of authentication (spec 5.1).
func tokenViolations() []violation {
	return []violation{
		{Violation{ID: "TOK-001", Changes: "a call without a token gets what the first workspace's key would give"}, func(s *Server) seams {
			return seams{ask: func(q *apiRequest) {
				if q.r.Header.Get("Authorization") == "" && q.r.Method == http.MethodGet && s.first != nil {
					q.r.Header.Set("Authorization", "Bearer "+s.first.WorkspaceAPIKey)
				}
			}}
		}},
	}
}
