package service

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// reach looks whether the service gets to the endpoints at all: without that nothing
// is known about how it calls destinations, and every check would fail alike.
func (r *run) reach(ctx context.Context) (problem, fix string) {
	sim, err := r.opts.NewSimulator(SimulatorConfig{}.ordinary())
	if err != nil {
		return "no simulator could be made: " + err.Error(), ""
	}
	defer sim.Close()
	name := r.called("reach")
	d := &destination{Endpoint: r.endpoints.Add(name, sim), name: name, url: r.address + "/" + name}
	defer r.endpoints.Drop(d.Endpoint)
	a, err := r.send(ctx, "", request{method: "POST", path: "/destinations", body: d.connection(nil)})
	switch {
	case err != nil:
		return err.Error(), ""
	case a.id("data", "id") == 0:
		return "no destination could be made: " + a.short(), "see what the service says about the body; it needs connections of type custom_api"
	}
	d.id = a.id("data", "id")
	made := thing{kind: "destinations", id: d.id, name: name}
	r.keep(made)
	path := "/destinations/" + strconv.FormatInt(d.id, 10)
	// The connection is tested when it is made; looking at its objects
	// makes a service call that has not done so yet.
	for range reachTries {
		if len(d.Seen("")) > 0 {
			break
		}
		if _, err = r.send(ctx, "", request{method: "GET", path: path + "/objects"}); err != nil {
			return err.Error(), ""
		}
		select {
		case <-time.After(reachPause):
		case <-ctx.Done():
		}
	}
	if len(d.Seen("")) == 0 {
		stated := ""
		if a, err := r.send(ctx, "", request{method: "GET", path: path}); err == nil {
			stated = fmt.Sprintf("; the service says: %s", jsonvalue.Raw(a.at("data", "last_test_results")))
		}
		r.remove(ctx, made)
		return "the service cannot reach the simulator at " + r.address + stated,
			"give an address that it reaches with --simulator-url, or run the judge where the service runs"
	}
	if why := r.remove(ctx, made); why != "" {
		return "a destination could not be deleted again: " + why, ""
	}
	return "", ""
}

const (
	reachTries = 40
	reachPause = 250 * time.Millisecond
)

// lost reports whether the service no longer answers.
func (r *run) lost(ctx context.Context) bool {
	a, err := r.send(ctx, "", request{method: "GET", path: "/syncs?per_page=1"})
	return err != nil || a.Status == 0
}
