package organizations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
)

// Wish is the body of POST /_control/organizations.
type Wish struct {
	Name       string   `json:"name"`
	Email      string   `json:"email"`
	Workspaces []string `json:"workspaces"`

	Own bool `json:"-"` // of who runs the service
}

// Check fills in missing values, then names all that is wrong.
func (w *Wish) Check() error {
	if w.Name == "" {
		w.Name = "Organization"
	}
	if w.Email == "" {
		// A reserved domain: no mistake can send mail to anybody.
		w.Email = "owner@example.com"
	}
	if len(w.Workspaces) == 0 {
		w.Workspaces = []string{"Workspace"}
	}
	problems := append(CheckName("name", w.Name), CheckAddress("email", w.Email)...)
	for i, name := range w.Workspaces {
		field := fmt.Sprintf("workspaces[%d]", i)
		problems = append(problems, CheckName(field, name)...)
		if slices.Contains(w.Workspaces[:i], name) {
			problems = append(problems, api.Problem{Field: field, Message: "is named twice"})
		}
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	return nil
}

// CheckAddress demands what an e-mail address cannot do without.
func CheckAddress(field, email string) []api.Problem {
	name, host, found := strings.Cut(email, "@")
	if !found || name == "" || host == "" || strings.ContainsAny(email, " \t\r\n<>,;\"") || strings.Contains(host, "@") {
		return []api.Problem{{Field: field, Message: "must be an e-mail address"}}
	}
	return nil
}

// Made is a new organization with everything to call it by. It is
// shown once: personal access tokens are kept as hashes.
type Made struct {
	Tokens                       // with the first workspace
	Workspaces []WorkspaceTokens `json:"workspaces"`
}

// WorkspaceTokens is a workspace with the key that opens it.
type WorkspaceTokens struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	APIKey string `json:"api_key"`
}
