package controlapi

// Seeded is what a seed made, by the names in it. Tokens are shown once.
type Seeded struct {
	Connectors    []string             `json:"connectors,omitempty"` // types that it declares
	Organizations []SeededOrganization `json:"organizations"`
}

// SeededOrganization is one organization of a seed. Email and
// PersonalAccessToken are those of the admin of a new organization.
type SeededOrganization struct {
	ID                  int64                 `json:"id"`
	Name                string                `json:"name"`
	UserID              int64                 `json:"user_id"`
	Email               string                `json:"email"`
	PersonalAccessToken string                `json:"personal_access_token,omitempty"`
	Users               map[string]SeededUser `json:"users"`
	Workspaces          []SeededWorkspace     `json:"workspaces"`
	Invitations         map[string]int64      `json:"invitations"`
}

// SeededUser is a user by the e-mail address.
type SeededUser struct {
	ID                  int64  `json:"id"`
	PersonalAccessToken string `json:"personal_access_token"`
}

// SeededWorkspace has the ids of everything in a workspace by name; syncs by
// their label.
type SeededWorkspace struct {
	ID           int64                    `json:"id"`
	Name         string                   `json:"name"`
	APIKey       string                   `json:"api_key"`
	Sources      map[string]int64         `json:"sources"`
	Models       map[string]int64         `json:"models"`
	Topics       map[string]int64         `json:"topics"`
	Datasets     map[string]int64         `json:"datasets"`
	Destinations map[string]int64         `json:"destinations"`
	Syncs        map[string]int64         `json:"syncs"`
	Webhooks     map[string]SeededWebhook `json:"webhooks"`
	Invitations  map[string]int64         `json:"invitations"`
}

// SeededWebhook is a webhook with the secret that is shown once.
type SeededWebhook struct {
	ID     int64  `json:"id"`
	Secret string `json:"secret"`
}
