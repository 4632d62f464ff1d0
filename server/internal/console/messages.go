package console

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
)

// mail is one of GET /_control/mailbox.
type mail struct {
	ID             int64     `json:"id"`
	At             api.Time  `json:"at"`
	OrganizationID int64     `json:"organization_id"`
	Kind           string    `json:"kind"`
	From           string    `json:"from"`
	To             []string  `json:"to"`
	Subject        string    `json:"subject"`
	Text           string    `json:"text"`
	Delivery       string    `json:"delivery"`
	NextAttempt    *api.Time `json:"next_attempt_at"`
	Error          string    `json:"error"`
}

func (s *site) mailbox(r *console.Request) (any, error) {
	query := url.Values{"limit": {"100"}}
	for _, name := range []string{"to", "kind"} {
		if value := r.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	return get[struct {
		Mails []mail `json:"mails"`
		Total int64  `json:"total"`
	}](r.Context(), s, "/mailbox", query)
}

func (s *site) emptyMailbox(r *console.Request) (string, error) {
	if err := s.Control.Do(r.Context(), http.MethodDelete, "/_control/mailbox", nil, nil); err != nil {
		return "", err
	}
	r.Done("The mailbox is empty.")
	return "/mailbox", nil
}

// delivery is one of GET /_control/webhook_deliveries.
type delivery struct {
	ID          int64           `json:"id"`
	WorkspaceID int64           `json:"workspace_id"`
	WebhookID   int64           `json:"webhook_id"`
	Site        string          `json:"site"`
	SyncID      int64           `json:"sync_id"`
	SyncRunID   int64           `json:"sync_run_id"`
	Event       string          `json:"event"`
	Status      string          `json:"status"`
	Attempts    int64           `json:"attempts"`
	CreatedAt   api.Time        `json:"created_at"`
	NextAttempt *api.Time       `json:"next_attempt_at"`
	HTTPStatus  *int64          `json:"http_status"`
	Error       *string         `json:"error"`
	Body        json.RawMessage `json:"body"`
}

func (s *site) webhooks(r *console.Request) (any, error) {
	query := url.Values{"limit": {"100"}}
	for _, name := range []string{"event", "status", "sync"} {
		if value := r.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	return get[struct {
		Deliveries []delivery `json:"deliveries"`
		Total      int64      `json:"total"`
	}](r.Context(), s, "/webhook_deliveries", query)
}
