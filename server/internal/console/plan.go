package console

import (
	"fmt"
	"net/http"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/internal/controlapi"
)

// planPage is what a run would do (POST /_control/syncs/{id}/plan).
type planPage struct {
	Workspace, Sync int64
	Full            bool
	Plan            controlapi.DryRun
}

func (s *site) plan(r *console.Request) (any, error) {
	p := planPage{Workspace: r.ID("workspace"), Sync: r.ID("sync"), Full: r.Query("full") == "true"}
	if _, err := s.Perform(r.Context(), p.Workspace, "fetchSync", map[string]int64{"sync_id": p.Sync}, nil, nil); err != nil {
		return nil, err // it may be of another workspace
	}
	err := s.Control.Do(r.Context(), http.MethodPost, fmt.Sprintf("/_control/syncs/%d/plan", p.Sync), map[string]any{"full": p.Full, "limit": 25}, &p.Plan)
	return p, err
}
