package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/seam"
	"github.com/destkit/destkit/server/internal/store"
)

// begin makes the first organization of an empty store, takes over the tokens of the
// configuration, and gives up what a stopped process has left.
func (s *Server) begin(ctx context.Context) error {
	return s.store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.AbandonRefreshes(); err != nil {
			return err
		}
		first, err := tx.Setting(organizations.SettingFirst)
		if errors.Is(err, store.ErrNotFound) {
			if s.first, err = organizations.Begin(tx, "First organization", "owner@example.com", "First workspace"); err == nil {
				// By ids, since clients may give other names.
				first = fmt.Sprintf("%d %d", s.first.UserID, s.first.WorkspaceID)
				err = tx.SetSetting(organizations.SettingFirst, first)
			}
		}
		if err != nil {
			return err
		}
		return s.config.adopt(tx, first)
	})
}

// adopt takes over the tokens that the configuration names; first are the ids of the
// first user and workspace.
func (c *Config) adopt(tx *store.Tx, first string) error {
	var userID, workspaceID int64
	if _, err := fmt.Sscan(first, &userID, &workspaceID); err != nil {
		return fmt.Errorf("read setting %s: %w", organizations.SettingFirst, err)
	}
	// At every start, so that a deployment can change its tokens.
	if token := c.PersonalAccessToken; token != "" {
		if err := tx.AdoptAccessToken(userID, token); err != nil {
			return fmt.Errorf("take over the personal access token: %w", err)
		}
	}
	if key := c.WorkspaceAPIKey; key != "" {
		if err := tx.AdoptWorkspaceKey(workspaceID, key); err != nil {
			return fmt.Errorf("take over the workspace API key: %w", err)
		}
	}
	return nil
}

func init() {
	seam.Set = func(config any, seams func(*seam.Service) seam.Seams) { config.(*Config).seams = seams }
}

// seamed collects the hooks of a test, which may change the configuration, too.
func (s *Server) seamed() seam.Seams {
	if s.config.seams == nil {
		return seam.Seams{}
	}
	return s.config.seams(&seam.Service{
		API:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }),
		View: func(ctx context.Context, read func(*store.Tx) error) error { return s.store.View(ctx, read) },
		First: func() (string, string) {
			if s.first == nil {
				return "", ""
			}
			return s.first.PersonalAccessToken, s.first.WorkspaceAPIKey
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return s.gate.DialContext(ctx, network, address)
		},
		CacheTTL: &s.config.CacheTTL, AllowPlainHTTP: &s.config.AllowPlainHTTP, PartialSyncUpdate: &s.dialect.PartialSyncUpdate,
	})
}
