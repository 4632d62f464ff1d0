package console

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/controlapi"
)

// clockChange is one of GET /_control/clock/journal.
type clockChange struct {
	At     api.Time `json:"at"`
	Change string   `json:"change"`
	From   api.Time `json:"from"`
	To     api.Time `json:"to"`
	Ran    *struct {
		Count    int      `json:"count"`
		Ran      []string `json:"ran"`
		Panicked []string `json:"panicked"`
	} `json:"ran"`
}

// mostRan is how many names of what an advance ran a page shows.
const mostRan = 50

// Shown are the names of what ran, and Hidden how many more there are.
func (c clockChange) Shown() []string { return c.Ran.Ran[:min(len(c.Ran.Ran), mostRan)] }
func (c clockChange) Hidden() int     { return c.Ran.Count - len(c.Shown()) }

func (s *site) clock(r *console.Request) (any, error) {
	now, err := get[clockShown](r.Context(), s, "/clock", nil)
	if err != nil {
		return nil, err
	}
	past, err := get[struct {
		Changes []clockChange `json:"changes"`
	}](r.Context(), s, "/clock/journal", nil)
	return struct {
		Clock   clockShown
		Changes []clockChange
	}{now, past.Changes}, err
}

func (s *site) world(r *console.Request) (any, error) {
	reply, err := s.Control.Raw(r.Context(), http.MethodGet, "/_control/seed", nil)
	if err != nil {
		return nil, err
	}
	return struct{ Seed string }{string(reply.Body)}, nil
}

// seedFile serves the present state as a seed, for a folder.
func (s *site) seedFile(r *console.Request) {
	reply, err := s.Control.Raw(r.Context(), http.MethodGet, "/_control/seed", nil)
	if err != nil {
		r.Fail(err)
		return
	}
	h := r.W.Header()
	h.Set("Content-Type", "application/yaml; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="seed.yaml"`)
	_, _ = r.W.Write(reply.Body)
}

// loadSeed creates the contents of a seed, and shows its tokens once.
func (s *site) loadSeed(r *console.Request) (string, error) {
	text := []byte(r.HTTP.PostForm.Get("seed"))
	if file, _, err := r.HTTP.FormFile("file"); err == nil {
		defer file.Close()
		if text, err = io.ReadAll(io.LimitReader(file, 64<<20)); err != nil {
			return "", fmt.Errorf("read the file: %w", err)
		}
	}
	if len(text) == 0 {
		return "", console.Refuse(http.StatusBadRequest, "seed: write a seed, or choose a file")
	}
	made, err := post[controlapi.Seeded](r.Context(), s, "/seed", text)
	if err != nil {
		return "", err
	}
	shown := shownOnce{What: "What the seed says", Next: "/"}
	add := func(name, value string) {
		if value != "" {
			shown.Tokens = append(shown.Tokens, console.Fact{Name: name, Value: value})
		}
	}
	for _, o := range made.Organizations {
		add("Personal access token of "+o.Email, o.PersonalAccessToken)
		for email, u := range o.Users {
			add("Personal access token of "+email, u.PersonalAccessToken)
		}
		for _, w := range o.Workspaces {
			add(fmt.Sprintf("API key of the workspace %s (%d)", w.Name, w.ID), w.APIKey)
			for name, hook := range w.Webhooks {
				add("Secret of the webhook "+name, hook.Secret)
			}
		}
	}
	r.Show("once", shown)
	return "", nil
}

// snapshot is a file with the whole service.
func (s *site) snapshot(r *console.Request) {
	s.stream(r, "/_control/snapshot", "snapshot.tar")
}

// stream passes a reply on as it comes: a snapshot can be larger than the memory.
func (s *site) stream(r *console.Request, path, name string) {
	inner, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://console.localhost"+path, nil)
	if err != nil {
		r.Fail(err)
		return
	}
	inner.RequestURI, inner.RemoteAddr, inner.Body = path, "console", http.NoBody
	r.W.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	s.Control.Handler.ServeHTTP(r.W, inner)
}

// restore replaces everything by a snapshot.
func (s *site) restore(r *console.Request) (string, error) {
	file, _, err := r.HTTP.FormFile("file")
	if err != nil {
		return "", console.Refuse(http.StatusBadRequest, "file: choose a snapshot")
	}
	defer file.Close()
	// A browser that leaves meanwhile must not cut it off half way.
	if err := s.Control.Do(context.WithoutCancel(r.Context()), http.MethodPost, "/_control/restore", io.Reader(file), nil); err != nil {
		return "", err
	}
	r.Done("The service is as it was in the snapshot.")
	return "/", nil
}
