package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/secret"
)

// fakeService plays back what a service answers, call by call.
type fakeService struct {
	t       *testing.T
	mu      sync.Mutex
	calls   []string
	answers map[string][]string // by "METHOD /path": "STATUS BODY"; the last one stays
	each    func(call string)
	key     string // "" is that of the test
}

func (s *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	call := r.Method + " " + r.URL.Path
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, strings.TrimSpace(call+" "+string(body)))
	if s.each != nil {
		s.each(call)
	}
	if r.Header.Get("Authorization") != "Bearer "+cmp.Or(s.key, "the-key-of-the-test") {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"status":401}`)
		return
	}
	list := s.answers[call]
	if len(list) == 0 {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"status":404}`)
		return
	}
	if len(list) > 1 {
		s.answers[call] = list[1:]
	}
	var code int
	_, err := fmt.Sscanf(list[0], "%d", &code)
	require.NoError(s.t, err)
	if code == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, strings.TrimSpace(list[0][3:]))
}

// said are the calls so far.
func (s *fakeService) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// answering starts a fake service with one sync.
func answering(t *testing.T, answers map[string][]string) (*fakeService, string) {
	t.Setenv(secret.WorkspaceKeyVariable, "the-key-of-the-test")
	s := &fakeService{t: t, answers: map[string][]string{
		"GET /api/v1/syncs/1":             {`200 {"status":"success","data":{"id":1,"label":"Contacts","status":"Up to Date"}}`},
		"GET /api/v1/syncs/1/sync_runs":   {`200 {"status":"success","data":[]}`},
		"POST /api/v1/syncs/1/trigger":    {`200 {"status":"success","data":{"sync_run_id":4}}`},
		"POST /api/v1/sync_runs/4/cancel": {`200 {"status":"cancelled","data":{}}`},
	}}
	for call, list := range answers {
		s.answers[call] = list
	}
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	return s, served.URL
}

// runHere runs the program in this process.
func runHere(ctx context.Context, args ...string) (status int, out, screen string) {
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	status = command.Execute(ctx, root, args)
	return status, stdout.String(), stderr.String()
}

// unset takes a variable away for one test.
func unset(t *testing.T, name string) {
	t.Setenv(name, "") // puts the old value back at the end
	require.NoError(t, os.Unsetenv(name))
}
