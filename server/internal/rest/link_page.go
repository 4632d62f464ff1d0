package rest

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

//go:embed link_page.html
var linkPageText string

var linkTemplate = template.Must(template.New("link").Parse(linkPageText))

// linkPage is what a link shows.
type linkPage struct {
	Title, Lead string
	Allow       string // the word on the button; "": there is nothing to decide
	Problems    []string
	Fields      []formField
	Nonce       string
}

// maxForm bounds what a form may send.
const maxForm = 1 << 20

// openLink is a link with the workspace whose page it opens.
type openLink struct {
	*store.Link
	who call.Principal
}

// RouteLinks serves the pages of links. No client sends a token in a header there: the
// address is the key.
func (h *Handlers) RouteLinks(mux *http.ServeMux) {
	mux.HandleFunc("GET "+LinkPath+"{token}", h.serveLink)
	mux.HandleFunc("POST "+LinkPath+"{token}", h.serveLink)
}

// serveLink shows the page of a link, or takes its answer.
func (h *Handlers) serveLink(w http.ResponseWriter, r *http.Request) {
	var form url.Values
	if r.Method == http.MethodPost {
		if !h.fromOwnPage(r) {
			h.showLink(w, http.StatusForbidden, nil, linkPage{Title: "This form was sent by another site", Lead: "Nothing was changed. Open the link again."})
			return
		}
		var err error
		call.Patiently(w, r, func() {
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			err = r.ParseForm()
		})
		if err != nil {
			h.showLink(w, http.StatusBadRequest, nil, linkPage{Title: "The form cannot be read", Lead: "Go back and try again."})
			return
		}
		form = r.PostForm
	}
	hold := h.Lock.Enter(r.Context())
	defer hold.Leave()
	ctx := hold.Ctx
	l, err := h.linkOfToken(ctx, r.PathValue("token"))
	if err != nil {
		h.showLinkFailure(w, l, err)
		return
	}
	if form == nil {
		page, err := h.linkForm(ctx, l)
		if err != nil {
			h.showLinkFailure(w, l, err)
			return
		}
		h.showLink(w, http.StatusOK, l, page)
		return
	}
	h.answerLink(ctx, w, l, form)
}

// Why a link opens nothing.
var (
	errLinkUsed    = errors.New("this link was used before")
	errLinkExpired = errors.New("this link has expired")
)

// linkOfToken finds a link that still opens its page.
func (h *Handlers) linkOfToken(ctx context.Context, token string) (*openLink, error) {
	l := &openLink{}
	err := h.Shared.Store.View(ctx, func(tx *store.Tx) (err error) {
		if l.Link, err = tx.LinkByToken(token); err != nil {
			return err
		}
		workspace, err := store.Workspaces.Any(tx, l.WorkspaceID)
		if err != nil {
			return err
		}
		l.who = call.Principal{Workspace: workspace, OrganizationID: workspace.OrganizationID, WorkspaceID: workspace.ID}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !l.UsedAt.IsZero():
		return nil, errLinkUsed
	case !h.Clock.Now().Before(l.ExpiresAt):
		return nil, errLinkExpired
	}
	return l, nil
}

// answerLink carries out a person's decision, and sends the browser back. A link is
// spent before anything is done, so that two answers at once do nothing twice; a
// refused form can be sent again.
func (h *Handlers) answerLink(ctx context.Context, w http.ResponseWriter, l *openLink, form url.Values) {
	switch form.Get("answer") {
	case "allow", "refuse":
	default:
		h.showLinkFailure(w, l, problem.InvalidField("answer", "must be allow or refuse"))
		return
	}
	if err := h.Shared.Store.Update(ctx, func(tx *store.Tx) error { return tx.UseLink(l.Link) }); err != nil {
		if errors.Is(err, store.ErrConflict) {
			err = errLinkUsed
		}
		h.showLinkFailure(w, l, err)
		return
	}
	if form.Get("answer") == "refuse" {
		h.sendBack(w, l, url.Values{"status": {"refused"}})
		return
	}
	outcome, err := h.actOnLink(ctx, l, form)
	if err == nil {
		outcome.Set("status", "success")
		h.sendBack(w, l, outcome)
		return
	}
	// The caller may have gone; the link opens again all the same.
	_ = h.Shared.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.ReopenLink(l.Link) })
	f := problem.Of(err)
	page, formErr := h.linkForm(ctx, l)
	if formErr != nil || f.Code >= http.StatusInternalServerError {
		h.showLinkFailure(w, l, err)
		return
	}
	page.refused(f, form)
	h.showLink(w, f.Code, l, page)
}

// sendBack redirects to where the link's maker wanted, with what happened.
func (h *Handlers) sendBack(w http.ResponseWriter, l *openLink, outcome url.Values) {
	u, err := url.Parse(l.RedirectURI) // checked when the link was made
	if err != nil {
		h.showLinkFailure(w, l, err)
		return
	}
	query := u.Query()
	maps.Copy(query, outcome)
	u.RawQuery = query.Encode()
	h.protectLink(w, l, "")
	w.Header().Set("Location", u.String())
	w.WriteHeader(http.StatusSeeOther)
}

// showLinkFailure shows why there is no page.
func (h *Handlers) showLinkFailure(w http.ResponseWriter, l *openLink, err error) {
	code, page := http.StatusGone, linkPage{Title: "This page is not available", Lead: "Ask for a new link where you found this one."}
	switch {
	case errors.Is(err, errLinkUsed), errors.Is(err, errLinkExpired):
		page.Problems = []string{err.Error()}
	case errors.Is(err, store.ErrNotFound):
		code, page.Problems = http.StatusNotFound, []string{"there is no such link, or what it was for is gone"}
	default:
		f := problem.Of(err)
		if code = f.Code; f.Cause != nil {
			h.Log.Error("page of a link failed", "error", f.Cause)
		}
		page.Problems = []string{f.Message}
	}
	h.showLink(w, code, l, page)
}

// showLink writes a page. l may be nil.
func (h *Handlers) showLink(w http.ResponseWriter, code int, l *openLink, page linkPage) {
	page.Nonce = rand.Text()
	var text bytes.Buffer
	if err := linkTemplate.Execute(&text, page); err != nil {
		h.Log.Error("page of a link cannot be written", "error", err)
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return
	}
	h.protectLink(w, l, page.Nonce)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(text.Bytes())
}

// protectLink keeps a page from running, loading or framing anything but what it is
// for: it may be framed by, and send the browser to, the site of its redirect_uri.
func (h *Handlers) protectLink(w http.ResponseWriter, l *openLink, nonce string) {
	site := ""
	if l != nil {
		if u, err := url.Parse(l.RedirectURI); err == nil {
			site = " " + u.Scheme + "://" + u.Host
		}
	}
	policy := fmt.Sprintf("default-src 'none'; form-action 'self'%s; frame-ancestors 'self'%[1]s; base-uri 'none'", site)
	if nonce != "" {
		policy += "; style-src 'nonce-" + nonce + "'"
	}
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	// The address is the key: it goes to no other site.
	header.Set("Referrer-Policy", "same-origin")
}

// fromOwnPage reports whether a form comes from a page of this service: browsers say
// where a request was made, and pages cannot change that.
func (h *Handlers) fromOwnPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if base, err := url.Parse(h.Shared.BaseURL); err == nil && base.Host != "" && u.Host == base.Host {
		return true // behind a proxy that gives another Host
	}
	return u.Host == r.Host
}
