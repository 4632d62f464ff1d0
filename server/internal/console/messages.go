package console

import (
	"net/http"
	"net/url"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/internal/controlapi"
)

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
