package rest

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// webhookBody is the body of POST and PATCH /webhooks. Nil fields
// of a PATCH keep the stored value.
type webhookBody struct {
	Name        *string   `json:"name"`
	Endpoint    *string   `json:"endpoint"`
	Description *string   `json:"description"`
	Events      *[]string `json:"events"`
}

// apply sets what the body holds and names all that is wrong with it.
func (b webhookBody) apply(c *call.Call, w *store.Webhook) error {
	var problems []api.Problem
	if b.Name != nil {
		w.Name = strings.TrimSpace(*b.Name)
	}
	problems = append(problems, organizations.CheckName("name", w.Name)...)
	if b.Endpoint != nil {
		w.Endpoint = *b.Endpoint
	}
	problems = append(problems, checkEndpoint("endpoint", w.Endpoint)...)
	if c.Has("description") { // null takes it away
		w.Description = b.Description
	}
	if b.Events != nil {
		events, more := chooseEvents(*b.Events)
		w.Events, problems = events, append(problems, more...)
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	return nil
}

// checkEndpoint wants an absolute https URL. The URL may hold
// secrets, so no message repeats it.
func checkEndpoint(field, endpoint string) []api.Problem {
	bad := func(message string) []api.Problem { return []api.Problem{{Field: field, Message: message}} }
	if endpoint == "" {
		return bad("is required: an absolute https URL")
	}
	parsed, err := url.Parse(endpoint)
	switch {
	case err != nil || parsed.Hostname() == "":
		return bad("must be an absolute URL such as https://example.com/hooks")
	case !strings.EqualFold(parsed.Scheme, "https"):
		return bad("must be an https URL")
	case parsed.User != nil: // would appear in logs of proxies
		return bad("must not hold a user or a password; put a secret into the path or the query")
	case parsed.Fragment != "":
		return bad("must not hold a fragment: it is never sent")
	}
	return nil
}

// chooseEvents puts the chosen events into the order of the catalogue, each once. An empty list
// is all of them: a webhook that is never called is pointless.
func chooseEvents(events []string) ([]string, []api.Problem) {
	if len(events) == 0 {
		return slices.Clone(api.WebhookEvents), nil
	}
	var problems []api.Problem
	for i, event := range events {
		if !slices.Contains(api.WebhookEvents, event) {
			problems = append(problems, api.Problem{
				Field:   fmt.Sprintf("events[%d]", i),
				Message: fmt.Sprintf("unknown event %q: must be one of %s", foreign.Clip(event, 64), strings.Join(api.WebhookEvents, ", ")),
			})
		}
	}
	// The order of the catalogue, so that two lists with the same events are
	// equal.
	var chosen []string
	for _, known := range api.WebhookEvents {
		if slices.Contains(events, known) {
			chosen = append(chosen, known)
		}
	}
	return chosen, problems
}

// newSecret makes the key that signs the calls of a webhook: 32
// random bytes as text that needs no escaping anywhere.
func (h *Handlers) newSecret() (string, error) {
	var key [32]byte
	if _, err := io.ReadFull(h.Random, key[:]); err != nil {
		return "", fmt.Errorf("make secret of a webhook: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(key[:]), nil
}

// webhookOf shows a webhook without its secret.
func webhookOf(w *store.Webhook) api.Webhook {
	return api.Webhook{
		ID: w.ID, Name: w.Name, Endpoint: w.Endpoint, Description: w.Description,
		Events: w.Events, CreatedAt: api.Time{Time: w.CreatedAt},
	}
}

// ownWebhook finds the webhook of the path.
var ownWebhook = one(callersWorkspace, "webhook_id", store.Webhooks.Read)

// createWebhook answers with the secret, which is never shown again.
func (h *Handlers) createWebhook(c *call.Call, body webhookBody) (*call.Reply, error) {
	w := &store.Webhook{WorkspaceID: c.Who.WorkspaceID, Events: slices.Clone(api.WebhookEvents)}
	if err := body.apply(c, w); err != nil {
		return nil, err
	}
	secret, err := h.newSecret()
	if err != nil {
		return nil, err
	}
	if err := c.Update(func(tx *store.Tx) error { return tx.CreateWebhook(w, secret) }); err != nil {
		return nil, err
	}
	shown := webhookOf(w)
	shown.Secret = &secret
	return call.Created(shown)
}
