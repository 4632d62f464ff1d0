package forks

import (
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/snapshot"
	"github.com/destkit/destkit/server/internal/strictjson"
)

// Routes take the whole state for themselves, and so must not hold it already.
func (f *Forks[F]) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/fork", "makes an independent copy of the world below /_forks/{name}: name; with ?name= the body is a snapshot to start from", f.post),
		call.Route("GET", "/forks", "lists the forks", f.list),
		call.Route("DELETE", "/forks/{name}", "ends a fork", f.delete),
	}
}

// shown is a fork as the control API shows it.
type shown struct {
	Name    string `json:"name"`
	URL     string `json:"url"` // of its API
	Control string `json:"control"`
}

// show builds its addresses from the one that the caller has used, which
// may be a proxy's.
func show(r *http.Request, name string) shown {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	root := scheme + "://" + r.Host + Path + name
	return shown{name, root + api.BasePath, root + call.ControlPath}
}

// post takes the name in the body, or in the query when the body is a
// snapshot.
func (f *Forks[F]) post(c *call.Control) (any, error) {
	query, err := c.Query("name")
	if err != nil {
		return nil, err
	}
	body := struct {
		Name string `json:"name"`
	}{query.Get("name")}
	var from io.Reader
	if body.Name != "" {
		from = http.MaxBytesReader(c.W, c.R.Body, snapshot.MaxSize)
	} else if err := c.Body(&body); err != nil {
		return nil, err
	}
	made := show(c.R, body.Name)
	if _, err := f.Fork(c.R.Context(), body.Name, made.URL, from); err != nil {
		return nil, snapshot.Refused(err)
	}
	return call.Status(http.StatusCreated, made), nil
}

// list shows the forks by name.
func (f *Forks[F]) list(c *call.Control) (any, error) {
	f.mu.Lock()
	open := maps.Clone(f.open)
	f.mu.Unlock()
	maps.DeleteFunc(open, func(_ string, fork F) bool { return !there(fork) })
	all := []shown{}
	for _, name := range strictjson.SortedKeys(open) {
		all = append(all, show(c.R, name))
	}
	return map[string]any{"forks": all}, nil
}

// delete takes the name off first, so that no new call gets into a fork
// that ends.
func (f *Forks[F]) delete(c *call.Control) (any, error) {
	name := c.R.PathValue("name")
	f.mu.Lock()
	fork := f.open[name]
	if there(fork) {
		delete(f.open, name)
	}
	f.mu.Unlock()
	if !there(fork) {
		return nil, call.Gone("fork", foreign.Clip(name, 63))
	}
	if err := f.end(fork); err != nil {
		return nil, fmt.Errorf("end fork %s: %w", name, err)
	}
	return call.Done, nil
}
