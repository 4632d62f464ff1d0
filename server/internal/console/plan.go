package console

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/destkit/destkit/internal/console"
)

// planPage is what a run would do (POST /_control/syncs/{id}/plan).
type planPage struct {
	Workspace, Sync int64
	Full            bool
	Plan            struct {
		Label          *string      `json:"label"`
		Operation      string       `json:"operation"`
		FullSync       bool         `json:"full_sync"`
		FullSyncReason *string      `json:"full_sync_reason"`
		Rows           int64        `json:"source_record_count"`
		Actions        planActions  `json:"actions"`
		Refused        []planReason `json:"refused"`
		Doubtful       []planReason `json:"doubtful"`
		Sample         []struct {
			Action     string          `json:"action"`
			Identifier json.RawMessage `json:"identifier"`
			Record     json.RawMessage `json:"record"`
			Reason     *string         `json:"reason"`
		} `json:"sample"`
		Failure *struct {
			Code    string  `json:"error_code"`
			Message string  `json:"error_message"`
			Detail  *string `json:"error_detail"`
		} `json:"failure"`
		DurationMS float64 `json:"duration_ms"`
	}
}

type planActions struct {
	Create    int64 `json:"create"`
	Change    int64 `json:"change"`
	Resend    int64 `json:"resend"`
	Delete    int64 `json:"delete"`
	Refuse    int64 `json:"refuse"`
	Skip      int64 `json:"skip"`
	Unchanged int64 `json:"unchanged"`
}

type planReason struct {
	Reason string `json:"reason"`
	Rows   int64  `json:"rows"`
}

func (s *site) plan(r *console.Request) (any, error) {
	p := planPage{Workspace: r.ID("workspace"), Sync: r.ID("sync"), Full: r.Query("full") == "true"}
	if _, err := s.Perform(r.Context(), p.Workspace, "fetchSync", map[string]int64{"sync_id": p.Sync}, nil, nil); err != nil {
		return nil, err // it may be of another workspace
	}
	err := s.Control.Do(r.Context(), http.MethodPost, fmt.Sprintf("/_control/syncs/%d/plan", p.Sync), map[string]any{"full": p.Full, "limit": 25}, &p.Plan)
	return p, err
}
