package server

import (
	"context"
	"net/http"
	"time"

	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/violation"
)

// Violation is one way in which the service can break one rule on purpose, so that a
// judge of services can be judged.
type Violation = violation.Violation

// Violations lists what Config.Violate takes.
func Violations() []Violation { return violation.All() }

// CheckViolations reports whether there is a violation of each id; the error names the
// nearest one.
func CheckViolations(ids []string) error { return violation.Check(ids) }

// breakRules makes the configured violations work.
func (s *Server) breakRules() (err error) {
	s.broken, err = violation.Break(s.config.Violate, &violation.Service{
		API:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }),
		View: func(ctx context.Context, read func(*store.Tx) error) error { return s.store.View(ctx, read) },
		Now:  func() time.Time { return s.clock.Now() },
		Key: func() string {
			return given(s.config.WorkspaceAPIKey, s.first, func(t *Tokens) string { return t.WorkspaceAPIKey })
		},
		Token: func() string {
			return given(s.config.PersonalAccessToken, s.first, func(t *Tokens) string { return t.PersonalAccessToken })
		},
		Settings: violation.Settings{CacheTTL: &s.config.CacheTTL, AllowPlainHTTP: &s.config.AllowPlainHTTP, PartialSyncUpdate: &s.dialect.PartialSyncUpdate},
	})
	return err
}

// given is a token of the configuration, which is taken over at every start, or that
// of an organization that this start has made.
func given(configured string, made *Tokens, token func(*Tokens) string) string {
	if configured == "" && made != nil {
		return token(made)
	}
	return configured
}
