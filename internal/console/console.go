// Package console owns what the consoles of the service, the simulator and the proxy
// have in common: the layout, who may look, forms and their errors, live updates, and
// lists of exchanges. Pages are html/template files of who uses it, made from what its
// JSON routes answer; there is no build step and nothing comes from another host.
//
// The content of a page is left to its owner: the package reads no store, and publishes
// nothing. Live pages are rendered again by a painter that has one hundredth of a processor for
// all viewers together, so that nothing waits for a page.
package console

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/reach"
)

// Path is the path of a console, below the root of its program. It is below
// /_control, so whoever blocks that from outside blocks this, too.
const Path = "/_control/console"

// Link is an entry of the navigation. Key, after g, opens it.
type Link struct{ Path, Text, Key string }

// Options describe a console.
type Options struct {
	Name  string // of the product's part, such as "service"
	Pages fs.FS  // *.html; each defines title and main, and live where it is. _*.html: parts of several
	Nav   []Link
	// Token is the control token; "" opens the console to callers of this machine.
	// LoopbackToo does so in addition to a token.
	Token       string
	LoopbackToo bool
	// Stamp changes when a page may have changed; nil: always.
	Stamp func() string
	// MaxViewers bounds the live pages; DefaultMaxViewers when zero.
	MaxViewers int
	Log        *slog.Logger // nil drops it
	Style      string       // a sheet in addition to that of the package
	// Funcs are added to those of the package.
	Funcs template.FuncMap
}

// Console serves pages below Path. It is safe for parallel use.
type Console struct {
	opts   Options
	mux    *http.ServeMux
	names  []string                             // of the templates
	sets   func() map[string]*template.Template // by page; read when the first page is shown
	views  *http.ServeMux                       // the pages alone, by which live views are found
	pages  map[string]*pageRoute                // by pattern
	hub    *hub
	styled asset
	script asset
	icon   asset
}

// asset is an embedded file under a name that changes with it.
type asset struct {
	name, kind string
	text       []byte
}

//go:embed templates/*.html
var shared embed.FS

//go:embed console.css
var styleText string

//go:embed console.js
var scriptText []byte

//go:embed icon.svg
var iconText []byte

// policy lets a page load its own files and send forms to its own address.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// pageRoute is a page with what makes its data.
type pageRoute struct {
	name string // of the template
	show func(*Request) (any, error)
}

// Next is what a page gives instead of data when another one, at this path below Path,
// has taken its place. The browser goes there, also from a page that is live.
type Next string

// New prepares a console without pages. The templates are embedded, so one that
// cannot be read is a mistake of the program, and panics, when the first page is shown:
// most services and simulators live and end without a visitor.
func New(opts Options) *Console {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	c := &Console{opts: opts, mux: http.NewServeMux(), views: http.NewServeMux(), pages: map[string]*pageRoute{}}
	c.hub = newHub(c)
	c.styled = newAsset("console.css", "text/css; charset=utf-8", []byte(page.Style+styleText+opts.Style))
	c.script = newAsset("console.js", "text/javascript; charset=utf-8", scriptText)
	c.icon = newAsset("icon.svg", "image/svg+xml", iconText)
	files, err := fs.Glob(opts.Pages, "*.html")
	if err != nil {
		panic(err)
	}
	parts := false
	for _, file := range files {
		if isPart(file) {
			parts = true
		} else {
			c.names = append(c.names, strings.TrimSuffix(file, ".html"))
		}
	}
	c.sets = sync.OnceValue(func() map[string]*template.Template { return c.parse(parts) })
	c.mux.HandleFunc("GET "+Path+"/live", c.hub.serve)
	c.mux.HandleFunc("POST "+Path+"/sign-out", c.signOut)
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.renderProblem(w, c.request(w, r), Refuse(http.StatusNotFound, "there is no page at this address"))
	})
	return c
}

// parse reads the templates: the layout with shared parts, and each page on top of it.
func (c *Console) parse(parts bool) map[string]*template.Template {
	shell := template.Must(template.New("").Funcs(functions).Funcs(c.opts.Funcs).ParseFS(shared, "templates/*.html"))
	sets := map[string]*template.Template{
		"door": template.Must(template.Must(shell.Clone()).Parse(`{{define "title"}}Not open{{end}}{{define "main"}}{{template "door" .}}{{end}}`)),
	}
	if parts {
		template.Must(shell.ParseFS(c.opts.Pages, "_*.html"))
	}
	for _, name := range c.names {
		sets[name] = template.Must(template.Must(shell.Clone()).ParseFS(c.opts.Pages, name+".html"))
	}
	sets[noPage] = shell
	return sets
}

// noPage is the layout alone, for answers without a page.
const noPage = ""

// isPart reports whether a file has parts of several pages, and is none.
func isPart(name string) bool { return strings.HasPrefix(name, "_") }

func newAsset(name, kind string, text []byte) asset {
	sum := sha256.Sum256(text)
	stem, ext, _ := strings.Cut(name, ".")
	return asset{name: "/" + stem + "-" + hex.EncodeToString(sum[:6]) + "." + ext, kind: kind, text: text}
}

// Page adds a page at a path below Path such as "/syncs/{id}", made by the template
// of that name.
func (c *Console) Page(path, name string, show func(*Request) (any, error)) {
	if !slices.Contains(c.names, name) {
		panic("console: no template " + name)
	}
	p := &pageRoute{name, show}
	pattern := "GET " + Path + path
	c.pages[pattern] = p
	c.views.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { c.show(w, c.request(w, r), p) })
}

// Action adds the handler of a form. do gives the path, below Path, of the page
// that is shown next, with a note in Request.Done. An error shows the page at
// back, where {names} are those of path, with the message and the input.
func (c *Console) Action(path, back string, do func(*Request) (next string, err error)) {
	c.mux.HandleFunc("POST "+Path+path, func(w http.ResponseWriter, r *http.Request) {
		req := c.request(w, r)
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		err := parseForm(r)
		var next string
		if err == nil {
			next, err = do(req)
		}
		if err != nil {
			target := fill(back, r)
			if r.URL.RawQuery != "" && !strings.Contains(target, "?") {
				target += "?" + r.URL.RawQuery
			}
			c.again(w, req, target, problemOf(err))
			return
		}
		if req.wrote {
			return
		}
		req.keepNote()
		http.Redirect(w, r, req.Root+next, http.StatusSeeOther)
	})
}

// Handle adds a route that writes its own response, such as a download.
func (c *Console) Handle(method, path string, serve func(*Request)) {
	c.mux.HandleFunc(method+" "+Path+path, func(w http.ResponseWriter, r *http.Request) { serve(c.request(w, r)) })
}

// maxForm bounds what a form sends, files included.
const maxForm = 256 << 20

// inMemory is how much of a form with files is kept in memory.
const inMemory = 8 << 20

func parseForm(r *http.Request) error {
	err := r.ParseMultipartForm(inMemory)
	if errors.Is(err, http.ErrNotMultipart) {
		err = nil // ParseForm was called
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Refuse(http.StatusRequestEntityTooLarge, "the form has more than %d bytes", large.Limit)
	}
	if err != nil {
		return Refuse(http.StatusBadRequest, "the form cannot be read: %v", err)
	}
	return nil
}

// fill writes the values of a path into a template of another one.
func fill(pattern string, r *http.Request) string {
	for {
		before, after, found := strings.Cut(pattern, "{")
		if !found {
			return pattern
		}
		name, rest, _ := strings.Cut(after, "}")
		pattern = before + url.PathEscape(r.PathValue(name)) + rest
	}
}

// ServeHTTP answers requests below Path.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	// Not no-referrer: a browser would send its forms with the origin null.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if reach.OwnOrigin(r) {
		http.Error(w, reach.ErrOutbound.Error(), http.StatusForbidden)
		return
	}
	switch strings.TrimPrefix(r.URL.Path, Path) {
	case c.styled.name:
		c.styled.serve(w, r)
		return
	case c.script.name:
		c.script.serve(w, r)
		return
	case c.icon.name:
		c.icon.serve(w, r)
		return
	case "":
		http.Redirect(w, r, c.request(w, r).Root+"/", http.StatusSeeOther)
		return
	case "/sign-in":
		if r.Method == http.MethodPost {
			c.signIn(w, r)
			return
		}
	}
	if err := c.admit(r); err != nil {
		c.renderDoor(w, c.request(w, r), err)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// serve sends a file that never changes under its name. It holds nothing of the
// program's state, so it is open to all: the sign-in page needs it.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.text))
}

// Front sends a browser that opens the address of the program to its console.
func (c *Console) Front(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, Path+"/", http.StatusSeeOther)
}

// Admitted reports whether a request may see the console.
func (c *Console) Admitted(r *http.Request) bool { return c.admit(r) == nil }

// Guarded reports whether the console has a token to sign in with.
func (c *Console) Guarded() bool { return c.opts.Token != "" }

// Close ends the live updates of all viewers.
func (c *Console) Close() { c.hub.close() }

// Finish shows every viewer its page once more, as it is now, and ends the live updates.
// The screen then shows the final state, even when the program is gone.
func (c *Console) Finish() {
	c.hub.last()
	c.hub.close()
}

// show makes a page and writes it.
func (c *Console) show(w http.ResponseWriter, req *Request, p *pageRoute) {
	data, err := p.show(req)
	if err != nil {
		c.renderProblem(w, req, problemOf(err))
		return
	}
	if next, ok := data.(Next); ok {
		http.Redirect(w, req.HTTP, req.Root+string(next), http.StatusSeeOther)
		return
	}
	c.render(w, http.StatusOK, p.name, c.frame(req, data))
}

// again shows a form once more, with the errors.
func (c *Console) again(w http.ResponseWriter, req *Request, path string, wrong *Problem) {
	target, err := url.Parse(Path + path)
	var p *pageRoute
	if err == nil {
		r := req.HTTP.Clone(req.HTTP.Context())
		r.Method, r.URL = http.MethodGet, target
		p = c.find(r)
		if p != nil {
			back := c.request(w, r)
			var data any
			data, err = p.show(back)
			if _, gone := data.(Next); err == nil && !gone {
				f := c.frame(back, data)
				f.Error, f.typed = wrong, req.HTTP.PostForm
				c.render(w, wrong.Code, p.name, f)
				return
			}
		}
	}
	c.renderProblem(w, req, wrong)
}

// find gives the page of a request and sets the values of its path.
func (c *Console) find(r *http.Request) *pageRoute {
	_, pattern := c.views.Handler(r)
	p := c.pages[pattern]
	if p != nil {
		setPathValues(r, strings.TrimPrefix(pattern, "GET "))
	}
	return p
}

// setPathValues does what a mux does when it serves.
func setPathValues(r *http.Request, pattern string) {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	for i, piece := range strings.Split(pattern, "/") {
		if name, ok := strings.CutPrefix(piece, "{"); ok && i < len(parts) {
			value, err := url.PathUnescape(parts[i])
			if err != nil {
				value = parts[i]
			}
			r.SetPathValue(strings.TrimSuffix(name, "}"), value)
		}
	}
}

// render writes a page as a whole or, where its template fails, a plain error.
func (c *Console) render(w http.ResponseWriter, code int, name string, f *Frame) {
	set := c.sets()[name]
	if set == nil {
		set = c.sets()[noPage]
	}
	var b bytes.Buffer
	f.page = set
	if err := set.ExecuteTemplate(&b, "layout", f); err != nil {
		c.opts.Log.Error("page cannot be written", "page", name, "error", err)
		http.Error(w, "the page cannot be written; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes())
}

// renderProblem writes a page that has nothing but an error.
func (c *Console) renderProblem(w http.ResponseWriter, req *Request, wrong *Problem) {
	f := c.frame(req, nil)
	f.Error = wrong
	c.render(w, wrong.Code, "", f)
}
