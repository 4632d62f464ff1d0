package rest

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// Kinds of links by what their page does.
const (
	linkSource          = "create source"
	linkDestination     = "create destination"
	linkAuthorize       = "authorize destination" // as linkDestination, by authorize_url
	linkSourceEdit      = "edit source"
	linkDestinationEdit = "edit destination"
	linkSyncEdit        = "edit sync"
	linkSyncs           = "manage syncs"
	linkSegments        = "manage segments"
)

// linkLife is how long a link opens its page, on the service's clock.
const linkLife = 24 * time.Hour

// LinkPath is where the pages of links are: the token is all that opens one.
const LinkPath = "/connect/"

// linkBody is the body of every POST that makes a link.
type linkBody struct {
	Type        string  `json:"type"`
	RedirectURI *string `json:"redirect_uri"`
}

// maxRedirect bounds redirect_uri in bytes.
const maxRedirect = 2000

// redirectHost keeps out what would end a source in a Content-Security-Policy.
var redirectHost = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]+)?$`)

// checkRedirect: a browser is sent there with what happened, so it is an address of
// the web and nothing that a browser would run.
func checkRedirect(uri *string) []api.Problem {
	problem := func(message string) []api.Problem {
		return []api.Problem{{Field: "redirect_uri", Message: message}}
	}
	if uri == nil || *uri == "" {
		return problem("is required: the http or https address that a browser is sent to at the end")
	}
	u, err := url.Parse(*uri)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || !redirectHost.MatchString(u.Host):
		return problem("must be an http or https address, such as https://app.example.com/connected")
	case u.User != nil:
		return problem("must have no user and no password")
	case len(*uri) > maxRedirect:
		return problem("must have at most 2000 characters")
	}
	return nil
}

// linkOf shows a link.
func linkOf(c *call.Call, l *store.Link) api.Link {
	shown := api.Link{
		ID: l.ID, URI: c.Site() + LinkPath + l.Token, RedirectURI: l.RedirectURI,
		ExpiresAt: api.Time{Time: l.ExpiresAt}, UsedAt: api.At(l.UsedAt), CreatedAt: api.Time{Time: l.CreatedAt},
	}
	if l.Type != "" {
		shown.Type = &l.Type
	}
	return shown
}

// listLinks lists the links of one kind in the workspace.
func (h *Handlers) listLinks(kind string) call.Handler {
	return func(c *call.Call) (*call.Reply, error) {
		return call.PageOf(c, func(tx *store.Tx, page store.Page) ([]*store.Link, int64, error) {
			return tx.Links(c.Who.WorkspaceID, kind, nil, page)
		}, func(l *store.Link) api.Link { return linkOf(c, l) })
	}
}

// createLink makes a link of a kind. target finds the edited object; nil: none.
func (h *Handlers) createLink(kind string, target owner) call.Handler {
	return taking(func(c *call.Call, body linkBody) (*call.Reply, error) {
		l, err := h.newLink(c, kind, body, target)
		if err != nil {
			return nil, err
		}
		return call.Created(linkOf(c, l))
	})
}

func (h *Handlers) newLink(c *call.Call, kind string, body linkBody, target owner) (*store.Link, error) {
	l := &store.Link{WorkspaceID: c.Who.WorkspaceID, Kind: kind, Type: body.Type}
	problems := append(h.checkLinkType(kind, body.Type), checkRedirect(body.RedirectURI)...)
	if body.RedirectURI != nil {
		l.RedirectURI = *body.RedirectURI
	}
	err := c.Update(func(tx *store.Tx) error {
		// A missing object is 404, regardless of the body.
		if target != nil {
			id, err := target(c, tx)
			if err != nil {
				return err
			}
			l.TargetID = &id
		}
		if len(problems) > 0 {
			return problem.Invalid(problems)
		}
		l.ExpiresAt = h.Clock.Now().Add(linkLife)
		return tx.CreateLink(l)
	})
	return l, err
}

// checkLinkType: only types whose credentials can be given in a form.
func (h *Handlers) checkLinkType(kind, typ string) []api.Problem {
	var known []string
	switch kind {
	case linkSource:
		for _, t := range h.Sources.Types().Types() {
			if t.ConfigurationFields.Linkable() {
				known = append(known, t.ServiceName)
			}
		}
	case linkDestination, linkAuthorize:
		for _, t := range h.Gate.Types() {
			if t.CreatableViaAPI && t.ConfigurationFields.Linkable() {
				known = append(known, t.ServiceName)
			}
		}
	default:
		return nil
	}
	for _, name := range known {
		if name == typ {
			return nil
		}
	}
	return []api.Problem{{Field: "type", Message: "must be a type that links create: " + strings.Join(known, ", ")}}
}

// authorizeURL makes a link to the page on which a person allows the service to
// write.
func (h *Handlers) authorizeURL(c *call.Call) (*call.Reply, error) {
	query := c.R.URL.Query()
	redirect := query.Get("redirect_uri")
	l, err := h.newLink(c, linkAuthorize, linkBody{Type: query.Get("type"), RedirectURI: &redirect}, nil)
	if err != nil {
		return nil, err
	}
	return &call.Reply{Code: http.StatusOK, Body: map[string]string{"authorize_url": linkOf(c, l).URI}}, nil
}

// linkOperations make and list the links with which people give the credentials of a
// connection, or change a sync in a form.
func (h *Handlers) linkOperations() map[string]call.Handler {
	destination := func(c *call.Call, tx *store.Tx) (int64, error) {
		d, err := ownDestination(c, tx)
		if err != nil {
			return 0, err
		}
		return d.ID, nil
	}
	return map[string]call.Handler{
		"listSourceConnectLinks":       h.listLinks(linkSource),
		"createSourceConnectLink":      h.createLink(linkSource, nil),
		"listDestinationConnectLinks":  h.listLinks(linkDestination),
		"createDestinationConnectLink": h.createLink(linkDestination, nil),
		"createSourceEditLink":         h.createLink(linkSourceEdit, sourceOfPath),
		"createDestinationEditLink":    h.createLink(linkDestinationEdit, destination),
		"createSyncEditLink":           h.createLink(linkSyncEdit, syncOfPath),
		"listSyncManagementLinks":      h.listLinks(linkSyncs),
		"createSyncManagementLink":     h.createLink(linkSyncs, nil),
		"listSegmentManagementLinks":   h.listLinks(linkSegments),
		"createSegmentManagementLink":  h.createLink(linkSegments, nil),
		"fetchAuthorizeURL":            h.authorizeURL,
	}
}
