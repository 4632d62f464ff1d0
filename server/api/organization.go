package api

// Roles in an organization and in a workspace (spec 4).
const (
	RoleAdmin    = "admin"
	RoleMember   = "member"
	RoleOwner    = "owner"
	RoleEditor   = "editor"
	RoleOperator = "operator"
	RoleViewer   = "viewer"
)

// Workspace belongs to one organization (spec 2.14). APIKey is shown only if
// requested at creation.
type Workspace struct {
	ID                 int64    `json:"id"`
	Name               string   `json:"name"`
	OrganizationID     int64    `json:"organization_id"`
	CreatedAt          Time     `json:"created_at"`
	NotificationEmails []string `json:"notification_emails"`
	APIKey             *string  `json:"api_key,omitempty"`
}

// User of an organization, or of a workspace with the role there (spec 2.14).
type User struct {
	ID        int64  `json:"id"`
	Email     string `json:"email"`
	CreatedAt Time   `json:"created_at"`
	Role      string `json:"role"`
}

// Invitation to an organization (spec 2.13).
type Invitation struct {
	ID                   int64                  `json:"id"`
	Email                string                 `json:"email"`
	CreatedAt            Time                   `json:"created_at"`
	CreatedByID          int64                  `json:"created_by_id"`
	ClaimedAt            *Time                  `json:"claimed_at"`
	ClaimedByID          *int64                 `json:"claimed_by_id"`
	Role                 string                 `json:"role"`
	WorkspaceInvitations []AssociatedInvitation `json:"associated_workspace_invitations"`
}

// AssociatedInvitation is the part of an invitation for one workspace.
type AssociatedInvitation struct {
	ID          int64  `json:"id"`
	WorkspaceID int64  `json:"workspace_id"`
	Role        string `json:"role"`
}

// WorkspaceInvitation is the reply to an invitation to one workspace
// (spec 2.13, last sentence).
type WorkspaceInvitation struct {
	ID          int64  `json:"id"`
	Email       string `json:"email"`
	CreatedAt   Time   `json:"created_at"`
	CreatedByID int64  `json:"created_by_id"`
	ClaimedByID *int64 `json:"claimed_by_id"`
	Role        string `json:"role"`
}

// Webhook is notified of sync events. Secret is shown at
// creation only.
type Webhook struct {
	ID          int64    `json:"id"`
	Name        string   `json:"name"`
	Endpoint    string   `json:"endpoint"`
	Description *string  `json:"description"`
	Events      []string `json:"events"`
	CreatedAt   Time     `json:"created_at"`
	Secret      *string  `json:"secret,omitempty"`
}

// WebhookEvents are the events a webhook can ask for.
var WebhookEvents = []string{
	"sync.triggered", "sync.started", "sync.completed", "sync.success",
	"sync.failed", "sync.alert.raised", "sync.alert.resolved",
}
