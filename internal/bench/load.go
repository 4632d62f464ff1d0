package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// The work of all generators: a record of two fields, one for each request, over as many
// connections. Every hundredth has a moment that the simulator must look at to refuse.
const (
	object      = "event"
	connections = 32
)

var template = func() string {
	var moments strings.Builder
	for i := range 99 {
		fmt.Fprintf(&moments, "2021-03-29T16:32:%02dZ ", i%60)
	}
	return `{"occurred_at":"{{pick ` + moments.String() + `never}}"}`
}()

// loaded is what `destkit load --json` says, as far as it is needed here.
type loaded struct {
	RequestsPerSecond float64          `json:"requests_per_second"`
	Requests          int64            `json:"requests"`
	Records           int64            `json:"records"`
	Errors            int64            `json:"errors"`
	ErrorsByKind      map[string]int64 `json:"errors_by_kind"`
	Generator         struct {
		CPUSeconds float64 `json:"cpu_seconds"`
	} `json:"generator"`
}

// load runs `destkit load` against a URL.
func (w *workshop) load(url, roots string, flags ...string) (*loaded, error) {
	file, work := filepath.Join(w.folder, "load.json"), filepath.Join(w.folder, "template.json")
	if err := os.WriteFile(work, []byte(template), 0o600); err != nil {
		return nil, fmt.Errorf("write a template: %w", err)
	}
	// The seed chooses the refused records and the keys; it is the same in every run.
	args := append([]string{"load", url + "/", "--write", "--object", object, "--template", work, "--batch-size", "1",
		"--seed", "2", "--quiet", "--json", file, "--closed"}, flags...)
	if roots != "" {
		args = append(args, "--tls-roots", roots)
	}
	if _, err := w.finish(nil, w.program, args...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the result of a load: %w", err)
	}
	l := &loaded{}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("read the result of a load: %w", err)
	}
	return l, nil
}

// checked is a load that must have told every record that was refused from every one
// that was stored, as the simulator counts them.
func (w *workshop) checked(s *simulator, flags ...string) (*loaded, error) {
	before, err := s.verdicts()
	if err != nil {
		return nil, err
	}
	l, err := w.load(s.url, s.roots, append(flags, "--connections", strconv.Itoa(connections), "--duration", strconv.Itoa(w.options.seconds)+"s")...)
	if err != nil {
		return nil, err
	}
	after, err := s.verdicts()
	if err != nil {
		return nil, err
	}
	return l, l.agrees(verdicts{after.stored - before.stored, after.refused - before.refused})
}

// agrees holds what the load has counted against what the simulator has.
func (l *loaded) agrees(v verdicts) error {
	refused := l.ErrorsByKind["record_refused"]
	switch {
	case l.Errors != refused:
		return fmt.Errorf("check the load: %d errors that are no refused records: %v", l.Errors-refused, l.ErrorsByKind)
	case refused == 0:
		return fmt.Errorf("check the load: no record of %d was refused", l.Records)
	case refused != v.refused || l.Records-refused != v.stored:
		return fmt.Errorf("check the load: it counts %d stored and %d refused, the simulator %d and %d", l.Records-refused, refused, v.stored, v.refused)
	}
	return nil
}

// measureLoad measures destkit load and its peers in turns against one simulator, which
// is emptied before each, so that what else the machine does meets all of them alike.
func measureLoad(secure bool) func(*workshop) (figures, error) {
	return func(w *workshop) (figures, error) {
		sim, err := w.startSimulator(secure)
		if err != nil {
			return nil, err
		}
		defer sim.stop()
		body, err := w.record(sim)
		if err != nil {
			return nil, err
		}
		f := figures{}
		for range w.options.rounds {
			if err := w.loadRound(f, sim, body); err != nil {
				return nil, err
			}
		}
		return f, nil
	}
}

// loadRound is one run of each. The second of destkit load has the keys of the first: its
// records are updates, as those of the peers are after their first request.
func (w *workshop) loadRound(f figures, sim *simulator, body string) error {
	if err := sim.reset(); err != nil {
		return err
	}
	l, err := w.checked(sim)
	if err != nil {
		return err
	}
	f.add("load", "requests/s", l.RequestsPerSecond)
	f.add("load", "µs", l.Generator.CPUSeconds/float64(l.Requests)*1e6)
	// It ends early where it is the faster one: there are no more keys.
	again, err := w.checked(sim, "--max-records", strconv.FormatInt(l.Records, 10))
	if err != nil {
		return err
	}
	f.add("again", "requests/s", again.RequestsPerSecond)
	for _, p := range peers {
		if w.tools[p.name] == "" {
			continue
		}
		if err := sim.reset(); err != nil {
			return err
		}
		t, err := w.fire(p, sim.url+"/", body)
		if err != nil {
			return err
		}
		f.add(p.name, "requests/s", t.rate)
		f.add(p.name, "µs", t.cpu/(t.rate*float64(w.options.seconds))*1e6)
	}
	return w.ctx.Err()
}

// record writes the body that the load generator sends into a file, for the peers: it
// looks over the shoulder of one request.
func (w *workshop) record(s *simulator) (file string, err error) {
	target, err := url.Parse(s.url)
	if err != nil {
		return "", fmt.Errorf("record a request: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("record a request: %w", err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport = s.http.Transport
	var mu sync.Mutex
	var seen []byte
	// The planning calls go through as well; kept is the last batch.
	front := &http.Server{Handler: http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			http.Error(reply, err.Error(), http.StatusBadGateway)
			return
		}
		if bytes.Contains(body, []byte(`"method":"sync_batch"`)) {
			mu.Lock()
			seen = body
			mu.Unlock()
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(reply, request)
	})}
	go func() { _ = front.Serve(listener) }()
	defer front.Close()
	// Plain http also where the simulator speaks TLS: the body is the same.
	if _, err := w.load("http://"+listener.Addr().String(), "", "--connections", "1", "--count", "1"); err != nil {
		return "", fmt.Errorf("record a request: %w", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 {
		return "", fmt.Errorf("record a request: no batch was seen")
	}
	file = filepath.Join(w.folder, "body.json")
	if err := os.WriteFile(file, seen, 0o600); err != nil {
		return "", fmt.Errorf("record a request: %w", err)
	}
	return file, nil
}
