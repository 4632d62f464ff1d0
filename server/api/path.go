package api

// BasePath is the root of the API and includes the version (spec 9).
const BasePath = "/api/v1"

// Link is a page for a browser: a person opens URI, decides, and is sent
// to RedirectURI with what happened. It opens once, and not after ExpiresAt.
type Link struct {
	ID          int64   `json:"id"`
	Type        *string `json:"type"` // of the source or destination to create; null: none is created
	URI         string  `json:"uri"`
	RedirectURI string  `json:"redirect_uri"`
	ExpiresAt   Time    `json:"expires_at"`
	UsedAt      *Time   `json:"used_at"`
	CreatedAt   Time    `json:"created_at"`
}
