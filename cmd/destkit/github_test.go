package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// github replaces GitHub: the releases of destkit, and comments of one pull
// request.
type github struct {
	*httptest.Server
	roots string            // PEM file with its certificate
	files map[string][]byte // of the release v1.2.3, set before the first job

	mu       sync.Mutex
	comments []map[string]any
	calls    []string
	refuse   int // status of every call to the API, 0 for the right one
}

func newGitHub(t *testing.T) *github {
	t.Helper()
	files, err := released()
	require.NoError(t, err)
	g := &github{files: maps.Clone(files)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /releases/latest", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/releases/tag/v1.2.3", http.StatusFound)
	})
	mux.HandleFunc("GET /releases/download/v1.2.3/{file}", g.file)
	mux.HandleFunc("GET /releases/latest/download/{file}", g.file)
	mux.HandleFunc("GET /api/repos/acme/crm/issues/17/comments", g.list)
	mux.HandleFunc("POST /api/repos/acme/crm/issues/17/comments", g.write)
	mux.HandleFunc("PATCH /api/repos/acme/crm/issues/comments/{id}", g.write)
	g.Server = httptest.NewTLSServer(mux)
	t.Cleanup(g.Close)
	g.roots = filepath.Join(t.TempDir(), "roots.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})
	require.NoError(t, os.WriteFile(g.roots, block, 0o600))
	return g
}

// file serves a file of the release.
func (g *github) file(w http.ResponseWriter, r *http.Request) {
	b, ok := g.files[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(b)
}

// allowed notes a call and reports whether it goes on.
func (g *github) allowed(w http.ResponseWriter, r *http.Request) bool {
	g.calls = append(g.calls, r.Method)
	status := g.refuse
	if status == 0 && r.Header.Get("Authorization") != "Bearer ghs_of_the_job" {
		status = http.StatusUnauthorized
	}
	if status != 0 {
		http.Error(w, `{"message":"no"}`, status)
	}
	return status == 0
}

func (g *github) list(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.allowed(w, r) {
		return
	}
	var page int
	_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)
	from := min(100*(page-1), len(g.comments))
	list := g.comments[from:min(from+100, len(g.comments))]
	if list == nil {
		list = []map[string]any{}
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (g *github) write(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.allowed(w, r) {
		return
	}
	var in struct {
		Body string `json:"body"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Body == "" {
		http.Error(w, `{"message":"bad"}`, http.StatusUnprocessableEntity)
		return
	}
	for _, x := range g.comments {
		if fmt.Sprint(x["id"]) == r.PathValue("id") {
			x["body"] = in.Body
			_ = json.NewEncoder(w).Encode(x)
			return
		}
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(g.comment("github-actions[bot]", in.Body))
}

// answer sets the status that every call to the API gets, 0 for the right one, and
// returns the calls since the last time.
func (g *github) answer(status int) (calls []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls, g.calls, g.refuse = g.calls, nil, status
	return calls
}

// texts are the present comments.
func (g *github) texts() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, x := range g.comments {
		out = append(out, fmt.Sprint(x["body"]))
	}
	return out
}

// comment adds one; the caller holds the lock or is alone.
func (g *github) comment(author, body string) map[string]any {
	x := map[string]any{"id": 4000 + len(g.comments), "user": map[string]any{"login": author}, "body": body}
	g.comments = append(g.comments, x)
	return x
}
