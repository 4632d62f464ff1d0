package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html/template"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
)

// Console is the console's front page, for people it is open to.
type Console interface {
	Guarded() bool
	Admitted(r *http.Request) bool
	Front(w http.ResponseWriter, r *http.Request)
}

// Front serves everything besides the API.
type Front struct {
	Log     *slog.Logger
	BaseURL string // of the API, as clients have it; "": taken from each request
	Version string
	Dialect string
	Ready   func(ctx context.Context) error
	Console Console
	Metrics http.Handler // guarded
}

// Route puts it onto the mux.
func (f *Front) Route(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", f.Show)
	// It does not use the store: whoever starts the service only wants to
	// know that it listens.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{\"status\":\"ok\"}\n"))
	})
	mux.HandleFunc("GET /readyz", f.readyz)
	document := func(kind string, text []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(text)
		}
	}
	mux.HandleFunc("GET /openapi.yaml", document("application/yaml", openapi.REST()))
	mux.HandleFunc("GET /openapi.json", document("application/json", openapi.RESTJSON()))
	mux.Handle("GET /metrics", f.Metrics)
}

// page answers GET at the root with an index: a person gets the console, or a page where that is not
// open to them, a program JSON. It holds no token and does not use the store.
type page struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Dialect string `json:"dialect"`
	API     string `json:"api"`
	OpenAPI string `json:"openapi"`
	Control string `json:"control"`
	Console string `json:"-"` // for people
	Health  string `json:"healthz"`
	Ready   string `json:"readyz"`
	Metrics string `json:"metrics"`
	Tokens  string `json:"tokens"` // how to get some
	Docs    string `json:"docs"`
}

const (
	docsURL   = "https://github.com/destkit/destkit/blob/main/docs/service.md"
	tokensHow = "The first start prints the tokens of the first organization and workspace, once; " +
		"'destkit serve new-token --data DIR' makes others, and POST /_control/organizations an organization with tokens of its own."
)

// frontStyle is the only style of the page; its hash lets it through the policy.
const frontStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}` +
	`table{border-collapse:collapse}th{text-align:left;padding:.2rem 1.5rem .2rem 0;font-weight:600;vertical-align:top}td{padding:.2rem 0}`

var frontPolicy = func() string {
	sum := sha256.Sum256([]byte(frontStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

var frontHTML = template.Must(template.New("front").Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>destkit</title><style>` + frontStyle + `</style></head>
<body>
<h1>destkit</h1>
<p>This is a service that stands in for the real one: its REST API, and what a test needs beside it.</p>
<table>
<tr><th>API</th><td><a href="{{.API}}">{{.API}}</a></td></tr>
<tr><th>OpenAPI document</th><td><a href="{{.OpenAPI}}">{{.OpenAPI}}</a></td></tr>
<tr><th>Control API</th><td><a href="{{.Control}}">{{.Control}}</a></td></tr>
<tr><th>Console</th><td><a href="{{.Console}}">{{.Console}}</a>, on this machine or with the control token</td></tr>
<tr><th>Health</th><td><a href="{{.Health}}">{{.Health}}</a>, <a href="{{.Ready}}">{{.Ready}}</a></td></tr>
<tr><th>Metrics</th><td><a href="{{.Metrics}}">{{.Metrics}}</a></td></tr>
<tr><th>Dialect</th><td>{{.Dialect}}</td></tr>
<tr><th>Version</th><td>{{.Version}}</td></tr>
<tr><th>Tokens</th><td>{{.Tokens}}</td></tr>
<tr><th>Manual</th><td><a href="{{.Docs}}">{{.Docs}}</a></td></tr>
</table>
</body>
</html>
`))

// Show answers GET /, and GET of the base path for browsers.
func (f *Front) Show(w http.ResponseWriter, r *http.Request) {
	root := f.rootURL(r)
	shown := page{
		Name: "destkit", Version: f.Version, Dialect: f.Dialect, API: root + api.BasePath, OpenAPI: root + "/openapi.yaml",
		Control: root + call.ControlPath, Console: root + console.Path + "/", Health: root + "/healthz", Ready: root + "/readyz", Metrics: root + "/metrics", Tokens: tokensHow, Docs: docsURL,
	}
	kind, body, err := "application/json; charset=utf-8", []byte(nil), error(nil)
	if WantsPage(r) {
		if r.URL.Path == "/" && (f.Console.Guarded() || f.Console.Admitted(r)) {
			w.Header().Set("Vary", "Accept")
			w.Header().Set("Cache-Control", "no-store")
			f.Console.Front(w, r)
			return
		}
		var b bytes.Buffer
		kind, err = "text/html; charset=utf-8", frontHTML.Execute(&b, shown)
		body = b.Bytes()
	} else {
		body, err = rawjson.Encode(shown)
	}
	if err != nil {
		f.Log.Error("front page cannot be written", "error", err)
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", frontPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	// It may be cached, but is revalidated: another start has another dialect.
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept")
	h.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

// rootURL is the address before the base path, as the caller knows it.
func (f *Front) rootURL(r *http.Request) string {
	if f.BaseURL != "" {
		return strings.TrimSuffix(strings.TrimRight(f.BaseURL, "/"), api.BasePath)
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s", scheme, r.Host)
}

// WantsPage reports whether a caller names text/html, and does not like JSON better,
// as browsers do. A program that takes anything gets JSON.
func WantsPage(r *http.Request) bool {
	html, text := -1.0, -1.0
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			quality := 1.0
			if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
				quality = q
			}
			switch kind {
			case "text/html":
				html = quality
			case "application/json":
				text = quality
			}
		}
	}
	return html > 0 && html >= text
}

// NothingAt is the message for a path that the API does not have, with the path
// that was probably meant.
func NothingAt(path string) string {
	inside, below := strings.CutPrefix(path, api.BasePath)
	meant := meantPath(inside)
	switch {
	case meant == "":
		return "there is nothing at this path; the API is below " + api.BasePath
	case !below:
		return fmt.Sprintf("there is nothing at this path; the API is below %s, did you mean %s%s?", api.BasePath, api.BasePath, meant)
	}
	return fmt.Sprintf("there is nothing at this path; did you mean %s?", meant)
}

// meantPath is the described path that differs from path by slips in its words,
// with the identifiers that path has; "" when there is none.
func meantPath(path string) string {
	asked := strings.Split(strings.Trim(path, "/"), "/")
	best, least := "", len(path)
	for _, described := range openapi.Operations() {
		words := strings.Split(strings.Trim(described.Path, "/"), "/")
		if len(words) != len(asked) {
			continue
		}
		distance := 0
		for i, word := range words {
			switch {
			case asked[i] == "":
				distance = len(path)
			case strings.HasPrefix(word, "{"):
				words[i] = asked[i]
				if strings.Trim(asked[i], "0123456789") != "" {
					distance += len(word) // a word is no identifier
				}
			case suggest.Word(asked[i], []string{word}) == "":
				distance = len(path)
			default:
				distance += suggest.Distance(asked[i], word)
			}
		}
		if distance < least {
			best, least = "/"+strings.Join(words, "/"), distance
		}
	}
	return best
}
