package console

import (
	"context"
	"encoding/base64"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Request is one call of a page or a form.
type Request struct {
	HTTP *http.Request
	W    http.ResponseWriter
	Root string // the address of the console, for links

	c     *Console
	note  string
	wrote bool // the action has answered by itself
}

func (c *Console) request(w http.ResponseWriter, r *http.Request) *Request {
	return &Request{HTTP: r, W: w, Root: Path, c: c}
}

// called carries the request of the browser to the calls that are made for it: replies
// name addresses as that has used them.
type called struct{}

// Context is that of the request.
func (r *Request) Context() context.Context {
	return context.WithValue(r.HTTP.Context(), called{}, r.HTTP)
}

// Value is a value of the path.
func (r *Request) Value(name string) string { return r.HTTP.PathValue(name) }

// ID is a number of the path; 0, which nothing has, where it is none.
func (r *Request) ID(name string) int64 {
	n, err := strconv.ParseInt(r.HTTP.PathValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Query is a parameter of the address without spaces around it.
func (r *Request) Query(name string) string { return strings.TrimSpace(r.HTTP.URL.Query().Get(name)) }

// Form is a field of the form without spaces around it.
func (r *Request) Form(name string) string { return strings.TrimSpace(r.HTTP.PostForm.Get(name)) }

// Checked reports whether a box of the form is ticked.
func (r *Request) Checked(name string) bool { return r.HTTP.PostForm.Get(name) != "" }

// Number reads an optional number of the form.
func (r *Request) Number(name string) (n int64, given bool, err error) {
	text := r.Form(name)
	if text == "" {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, true, Refuse(http.StatusBadRequest, "%s: must be a whole number", name)
	}
	return n, true, nil
}

// Done is the note that the next page shows.
func (r *Request) Done(note string) { r.note = note }

// Show answers an action with a page instead of sending the browser to another one:
// for content that is shown once.
func (r *Request) Show(name string, data any) {
	r.wrote = true
	r.c.render(r.W, http.StatusOK, name, r.c.frame(r, data))
}

// Fail answers with a page that has nothing but an error.
func (r *Request) Fail(err error) { r.c.renderProblem(r.W, r, problemOf(err)) }

// A note travels in a cookie that the next page takes away: an address that had it
// could be sent around.
const noteCookie = "destkit_note"

// longestNote bounds a note in bytes; cookies have room for 4 KiB.
const longestNote = 1000

func (r *Request) keepNote() {
	if r.note == "" {
		return
	}
	note := r.note
	for len(note) > longestNote || !utf8.ValidString(note) {
		note = note[:min(len(note), longestNote+1)-1]
	}
	http.SetCookie(r.W, r.cookie(noteCookie, base64.RawURLEncoding.EncodeToString([]byte(note)), 30))
}

// takeNote gives the note of the last action, once.
func (r *Request) takeNote() string {
	kept, err := r.HTTP.Cookie(noteCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(r.W, r.cookie(noteCookie, "", -1))
	text, err := base64.RawURLEncoding.DecodeString(kept.Value)
	if err != nil || !utf8.Valid(text) || len(text) > longestNote {
		return ""
	}
	return string(text)
}

func (r *Request) cookie(name, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: r.Root + "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.HTTP.TLS != nil,
	}
}

// Frame is what a template gets: Data of the page, and its surroundings.
type Frame struct {
	Name, Root          string
	Style, Script, Icon string
	Nav                 []Link
	Here                string // the path of the page below Root
	Query               url.Values
	Live                string // the address of the live updates; "" where there are none
	Note                string
	Error               *Problem
	Signed              bool // in with the token
	Data                any

	page  *template.Template
	typed url.Values
}

// frame puts data into the surroundings of a page.
func (c *Console) frame(r *Request, data any) *Frame {
	here := strings.TrimPrefix(r.HTTP.URL.Path, Path)
	f := &Frame{
		Name: c.opts.Name, Root: r.Root, Style: r.Root + c.styled.name, Script: r.Root + c.script.name, Icon: r.Root + c.icon.name,
		Nav: c.opts.Nav, Here: here, Query: r.HTTP.URL.Query(), Data: data, Signed: c.opts.Token != "" && signedIn(r.HTTP, c.opts.Token),
	}
	if r.W != nil {
		f.Note = r.takeNote()
	}
	view := here
	if r.HTTP.URL.RawQuery != "" {
		view += "?" + r.HTTP.URL.RawQuery
	}
	f.Live = r.Root + "/live?page=" + url.QueryEscape(view)
	return f
}

// Main is the page's own part, and Title its name.
func (f *Frame) Main() (template.HTML, error)  { return f.part("main") }
func (f *Frame) Title() (template.HTML, error) { return f.part("title") }

// HasLive reports whether the page has a part that is kept up to date.
func (f *Frame) HasLive() bool {
	return f.page != nil && f.page.Lookup("live") != nil && f.Data != nil
}

func (f *Frame) part(name string) (template.HTML, error) {
	if f.page == nil || f.Data == nil || f.page.Lookup(name) == nil {
		return "", nil
	}
	var b strings.Builder
	err := f.page.ExecuteTemplate(&b, name, f)
	return template.HTML(b.String()), err // html/template has escaped it
}

// Typed is the input of a field before the form was refused, or else its initial
// value. Fields that take secrets do not call it.
func (f *Frame) Typed(name string, begin ...any) string {
	if f.typed != nil {
		return f.typed.Get(name)
	}
	if len(begin) == 0 {
		return ""
	}
	return text(begin[0])
}

// On reports whether an entry of the navigation leads to where the page is.
func (f *Frame) On(path string) bool {
	if path == "/" {
		return f.Here == "/"
	}
	return f.Here == path || strings.HasPrefix(f.Here, path+"/")
}

// With is the query of the page with one parameter changed, for links of lists; "" as
// value takes it away.
func (f *Frame) With(name string, value any) string {
	query := url.Values{}
	maps.Copy(query, f.Query)
	if v := text(value); v == "" {
		query.Del(name)
	} else {
		query.Set(name, v)
	}
	return "?" + query.Encode()
}
