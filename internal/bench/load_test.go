package bench

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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// loaded is the part of the output of `destkit load --json` that is needed here.
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

// load runs `destkit load` against the simulator. It must distinguish refused from
// stored records exactly, as the simulator counts them.
func (l *lab) load(t *testing.T, s *simulator, limits ...string) *loaded {
	t.Helper()
	file, work := filepath.Join(l.folder, "load.json"), filepath.Join(l.folder, "template.json")
	require.NoError(t, os.WriteFile(work, []byte(template), 0o600))
	// The seed chooses the refused records and the keys; it is the same in every run.
	args := append([]string{"load", s.url + "/", "--write", "--object", object, "--template", work, "--batch-size", "1",
		"--seed", "2", "--quiet", "--json", file, "--closed", "--connections", strconv.Itoa(connections), "--duration", strconv.Itoa(flags.seconds) + "s"}, limits...)
	if s.roots != "" {
		args = append(args, "--tls-roots", s.roots)
	}
	before := s.verdicts(t)
	l.run(t, nil, l.program, args...)
	after := s.verdicts(t)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	r := &loaded{}
	require.NoError(t, json.Unmarshal(text, r))
	require.NoError(t, r.agrees(verdicts{after.stored - before.stored, after.refused - before.refused}))
	return r
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
func measureLoad(secure bool) measuring {
	return func(t *testing.T, l *lab, f figures) {
		sim := l.startSimulator(t, secure)
		for range flags.rounds {
			l.loadRound(t, f, sim)
		}
	}
}

// loadRound is one run of each. The second of destkit load has the keys of the first: its
// records are updates, as those of the peers are after their first request.
func (l *lab) loadRound(t *testing.T, f figures, sim *simulator) {
	sim.reset(t)
	first := l.load(t, sim)
	f.add("load", "requests/s", first.RequestsPerSecond)
	f.add("load", "µs", first.Generator.CPUSeconds/float64(first.Requests)*1e6)
	// It ends early where it is the faster one: there are no more keys.
	again := l.load(t, sim, "--max-records", strconv.FormatInt(first.Records, 10))
	f.add("again", "requests/s", again.RequestsPerSecond)
	for _, p := range peers {
		if l.tools[p.name] == "" {
			continue
		}
		sim.reset(t)
		fired := l.fire(t, p, sim.url+"/")
		f.add(p.name, "requests/s", fired.rate)
		f.add(p.name, "µs", fired.cpu/(fired.rate*float64(flags.seconds))*1e6)
	}
}

// simulator is `destkit destsim` in a separate process, as it is shipped.
type simulator struct {
	url   string
	roots string // file; "" without TLS
	http  *http.Client
}

// startSimulator starts one that ends with the section.
func (l *lab) startSimulator(t *testing.T, secure bool) *simulator {
	s := &simulator{http: &http.Client{Timeout: time.Minute}}
	args := []string{"destsim", "--addr", "127.0.0.1:0"}
	if secure {
		s.roots = filepath.Join(l.folder, "ca.pem")
		args = append(args, "--tls", "--ca-out", s.roots)
	}
	cmd := exec.CommandContext(t.Context(), l.program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the context kills it
	reader := bufio.NewReader(out)
	line, err := reader.ReadString('\n')
	require.NoError(t, err)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	require.True(t, ok, "the first line of the simulator is %q", line)
	s.url = url
	// A pipe that is not read would stop it one day.
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	if secure {
		// The control routes are on the same port, behind the same certificate.
		pem, err := os.ReadFile(s.roots)
		require.NoError(t, err)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		s.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	}
	return s
}

// control calls one of its control routes.
func (s *simulator) control(t *testing.T, method, path string, into any) {
	t.Helper()
	request, err := http.NewRequest(method, s.url+"/_control/"+path, nil)
	require.NoError(t, err)
	response, err := s.http.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode, path)
	require.NoError(t, json.NewDecoder(response.Body).Decode(into))
}

// reset forgets all records, so that every run begins alike.
func (s *simulator) reset(t *testing.T) { s.control(t, http.MethodPost, "reset", new(any)) }

// verdicts are the records that the simulator itself has counted since it was reset.
type verdicts struct{ stored, refused int64 }

func (s *simulator) verdicts(t *testing.T) (v verdicts) {
	var figures struct {
		Methods []struct{ Succeeded, Failed int64 }
	}
	s.control(t, http.MethodGet, "figures", &figures)
	for _, m := range figures.Methods {
		v.stored, v.refused = v.stored+m.Succeeded, v.refused+m.Failed
	}
	return v
}

// A run counts only where both sides have counted the same.
func TestLoadAndSimulatorMustAgree(t *testing.T) {
	result := func(records, refused, other int64) *loaded {
		return &loaded{Records: records, Errors: refused + other, ErrorsByKind: map[string]int64{"record_refused": refused, "timeout": other}}
	}
	for _, c := range []struct {
		name  string
		load  *loaded
		sim   verdicts
		words string
	}{
		{"alike", result(1000, 10, 0), verdicts{990, 10}, ""},
		{"one lost", result(1000, 10, 0), verdicts{989, 10}, "the simulator 989 and 10"},
		{"one refusal missed", result(1000, 9, 0), verdicts{990, 10}, "991 stored and 9 refused"},
		{"other errors", result(1000, 10, 3), verdicts{990, 10}, "3 errors that are no refused records"},
		{"none refused", result(1000, 0, 0), verdicts{1000, 0}, "no record of 1000 was refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.load.agrees(c.sim); c.words == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.words)
			}
		})
	}
}
