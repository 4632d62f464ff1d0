package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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

// load runs `destkit load` against the simulator.
func (w *workshop) load(s *simulator, flags ...string) (*loaded, error) {
	file, work := filepath.Join(w.folder, "load.json"), filepath.Join(w.folder, "template.json")
	if err := os.WriteFile(work, []byte(template), 0o600); err != nil {
		return nil, fmt.Errorf("write a template: %w", err)
	}
	// The seed chooses the refused records and the keys; it is the same in every run.
	args := append([]string{"load", s.url + "/", "--write", "--object", object, "--template", work, "--batch-size", "1",
		"--seed", "2", "--quiet", "--json", file, "--closed"}, flags...)
	if s.roots != "" {
		args = append(args, "--tls-roots", s.roots)
	}
	if _, err := w.finish(nil, w.program, args...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the result of a load: %w", err)
	}
	l := &loaded{}
	return l, json.Unmarshal(text, l)
}

// checked is a load that must have told every record that was refused from every one
// that was stored, as the simulator counts them.
func (w *workshop) checked(s *simulator, flags ...string) (*loaded, error) {
	before, err := s.verdicts()
	if err != nil {
		return nil, err
	}
	l, err := w.load(s, append(flags, "--connections", strconv.Itoa(connections), "--duration", strconv.Itoa(w.options.seconds)+"s")...)
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
		f := figures{}
		for range w.options.rounds {
			if err := w.loadRound(f, sim); err != nil {
				return nil, err
			}
		}
		return f, nil
	}
}

// loadRound is one run of each. The second of destkit load has the keys of the first: its
// records are updates, as those of the peers are after their first request.
func (w *workshop) loadRound(f figures, sim *simulator) error {
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
		t, err := w.fire(p, sim.url+"/")
		if err != nil {
			return err
		}
		f.add(p.name, "requests/s", t.rate)
		f.add(p.name, "µs", t.cpu/(t.rate*float64(w.options.seconds))*1e6)
	}
	return w.ctx.Err()
}

// simulator is `destkit destsim` in a process of its own, as it is shipped.
type simulator struct {
	cmd   *exec.Cmd
	url   string
	roots string // file; "" without TLS
	http  *http.Client
}

func (w *workshop) startSimulator(secure bool) (*simulator, error) {
	s := &simulator{http: &http.Client{Timeout: time.Minute}}
	args := []string{"destsim", "--addr", "127.0.0.1:0"}
	if secure {
		s.roots = filepath.Join(w.folder, "ca.pem")
		args = append(args, "--tls", "--ca-out", s.roots)
	}
	s.cmd = exec.CommandContext(w.ctx, w.program, args...)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the simulator: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the simulator: %w", err)
	}
	reader := bufio.NewReader(out)
	line, err := reader.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	if err != nil || !ok {
		s.stop()
		return nil, fmt.Errorf("start the simulator: its first line is %q", line)
	}
	s.url = url
	// A pipe that is not read would stop it one day.
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	if !secure {
		return s, nil
	}
	pem, err := os.ReadFile(s.roots)
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("read the authority of the simulator: %w", err)
	}
	// The control routes stand on the same port, behind the same certificate.
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	s.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	return s, nil
}

// stop ends the process and waits for it: nothing of it is kept.
func (s *simulator) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// control calls one of its control routes.
func (s *simulator) control(method, path string, into any) error {
	request, err := http.NewRequest(method, s.url+"/_control/"+path, nil)
	if err != nil {
		return fmt.Errorf("call /_control/%s: %w", path, err)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return fmt.Errorf("call /_control/%s: %w", path, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("call /_control/%s: status %d", path, response.StatusCode)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("call /_control/%s: %w", path, err)
	}
	return nil
}

// reset forgets all records, so that every run begins alike.
func (s *simulator) reset() error {
	return s.control(http.MethodPost, "reset", new(any))
}

// verdicts are the records that the simulator itself has counted since it was reset.
type verdicts struct{ stored, refused int64 }

func (s *simulator) verdicts() (v verdicts, err error) {
	var figures struct {
		Methods []struct{ Succeeded, Failed int64 }
	}
	err = s.control(http.MethodGet, "figures", &figures)
	for _, m := range figures.Methods {
		v.stored, v.refused = v.stored+m.Succeeded, v.refused+m.Failed
	}
	return v, err
}
