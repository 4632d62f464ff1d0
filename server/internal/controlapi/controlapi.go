// Package controlapi has what /_control answers with: the types that its handlers fill and
// that the pages for browsers, which are made from these answers, read. It has no behaviour.
package controlapi

import (
	"encoding/json"

	"github.com/destkit/destkit/server/api"
)

// Organization is an organization as the list shows it, with the ids by which
// everything in it is called.
type Organization struct {
	ID         int64                   `json:"id"`
	Name       string                  `json:"name"`
	CreatedAt  api.Time                `json:"created_at"`
	Users      []OrganizationUser      `json:"users"`
	Workspaces []OrganizationWorkspace `json:"workspaces"`
}

type OrganizationUser struct {
	ID    int64  `json:"id"`
	Email string `json:"email"`
	Role  string `json:"role"`
}

type OrganizationWorkspace struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Mail is one e-mail of the mailbox.
type Mail struct {
	ID             int64    `json:"id"`
	At             api.Time `json:"at"`
	OrganizationID int64    `json:"organization_id"`
	WorkspaceID    *int64   `json:"workspace_id"`
	Kind           string   `json:"kind"`
	From           string   `json:"from"`
	To             []string `json:"to"`
	Subject        string   `json:"subject"`
	Text           string   `json:"text"`
	// Delivery of the copy for the mail server: open, delivered, failed; "" when
	// none is named.
	Delivery    string    `json:"delivery"`
	Attempts    int64     `json:"attempts"`
	NextAttempt *api.Time `json:"next_attempt_at"`
	Error       string    `json:"error"` // of the last attempt
}

// WebhookDelivery is one delivery. Of the endpoint only scheme and host are shown:
// the rest may be secret, and so is what signs the body.
type WebhookDelivery struct {
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
	LastAttempt *api.Time       `json:"last_attempt_at"`
	NextAttempt *api.Time       `json:"next_attempt_at"` // null when it is over
	HTTPStatus  *int64          `json:"http_status"`     // of the last attempt; null without an answer
	Error       *string         `json:"error"`           // of the last attempt
	Body        json.RawMessage `json:"body"`
}

// RequestEntry is one request of the API. Bodies are JSON with every secret
// replaced, or null where there was none, where it was no JSON, where it was
// too large to keep, or where bodies are switched off.
type RequestEntry struct {
	Number         int64           `json:"number"` // in the order in which requests ended
	ID             string          `json:"id"`     // X-Request-Id of the reply
	At             api.Time        `json:"at"`     // on the service's clock
	DurationMS     float64         `json:"duration_ms"`
	OrganizationID int64           `json:"organization_id"` // 0: no caller was recognised
	WorkspaceID    int64           `json:"workspace_id"`    // 0: none
	Operation      string          `json:"operation"`       // "": no operation has this path
	Method         string          `json:"method"`
	Path           string          `json:"path"`
	Query          string          `json:"query"`
	Status         int             `json:"status"` // 0: the connection was dropped
	RequestBytes   int             `json:"request_bytes"`
	ResponseBytes  int             `json:"response_bytes"`
	Request        json.RawMessage `json:"request"`
	Response       json.RawMessage `json:"response"`
	Faults         []string        `json:"faults"` // ids of the faults that struck
}
