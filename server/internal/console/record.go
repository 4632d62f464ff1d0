package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/controlapi"
)

// explained is what became of a record.
type explained struct{ controlapi.Explained }

// Name is the identifier as people write it.
func (e explained) Name() string {
	return recordLine{SyncRunRecord: api.SyncRunRecord{Identifier: e.Identifier}}.Shown()
}

// recordPage is one record's way through a run, and what the destination has of it.
type recordPage struct {
	explained
	Workspace int64
	Asked     bool   // the destination was queried
	Readback  string // the address of its hook; "" where the service has the store itself
	Trouble   string // why it could not be
	Findings  []finding
	Truncated bool
}

// finding is one of POST /_control/audit.
type finding struct {
	Kind       string          `json:"kind"`
	Identifier json.RawMessage `json:"identifier"`
	Field      *string         `json:"field"`
	Message    string          `json:"message"`
	Expected   json.RawMessage `json:"expected"`
	Actual     json.RawMessage `json:"actual"`
}

func (s *site) record(r *console.Request) (any, error) {
	p := recordPage{Workspace: r.ID("workspace"), Readback: r.Query("readback"), Asked: r.Query("audit") != ""}
	// The run must be of this workspace: explain looks at those of all.
	if _, err := s.Perform(r.Context(), p.Workspace, "fetchSyncRun", map[string]int64{"sync_run_id": r.ID("run")}, nil, nil); err != nil {
		return nil, err
	}
	var err error
	p.explained, err = get[explained](r.Context(), s, "/explain", url.Values{"sync_run_id": {r.Value("run")}, "identifier": {r.Query("identifier")}})
	if err != nil || !p.Asked {
		return p, err
	}
	body := map[string]any{"sync_id": p.SyncID, "limit": 10_000}
	if p.Readback != "" {
		body["readback"] = map[string]string{"url": p.Readback}
	}
	audit, err := post[struct {
		Findings  []finding `json:"findings"`
		Truncated bool      `json:"truncated"`
	}](r.Context(), s, "/audit", body)
	if err != nil {
		refused, ok := err.(*console.Problem)
		if !ok || refused.Code >= http.StatusInternalServerError {
			return nil, err
		}
		p.Trouble = refused.Message
		return p, nil
	}
	p.Truncated = audit.Truncated
	for _, f := range audit.Findings {
		if bytes.Equal(bytes.TrimSpace(f.Identifier), bytes.TrimSpace(p.Identifier)) {
			p.Findings = append(p.Findings, f)
		}
	}
	return p, nil
}

// Again is the address of the page with the destination queried.
func (p recordPage) Again() string {
	return fmt.Sprintf("/workspaces/%d/runs/%d/record", p.Workspace, p.RunID)
}

func (s *site) mailbox(r *console.Request) (any, error) {
	query := url.Values{"limit": {"100"}}
	for _, name := range []string{"to", "kind"} {
		if value := r.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	return get[struct {
		Mails []controlapi.Mail `json:"mails"`
		Total int64             `json:"total"`
	}](r.Context(), s, "/mailbox", query)
}

func (s *site) emptyMailbox(r *console.Request) (string, error) {
	if err := s.Control.Do(r.Context(), http.MethodDelete, "/_control/mailbox", nil, nil); err != nil {
		return "", err
	}
	r.Done("The mailbox is empty.")
	return "/mailbox", nil
}

func (s *site) webhooks(r *console.Request) (any, error) {
	query := url.Values{"limit": {"100"}}
	for _, name := range []string{"event", "status", "sync"} {
		if value := r.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	return get[struct {
		Deliveries []controlapi.WebhookDelivery `json:"deliveries"`
		Total      int64                        `json:"total"`
	}](r.Context(), s, "/webhook_deliveries", query)
}
