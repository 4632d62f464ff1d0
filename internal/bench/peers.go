package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// peer is another load generator: it sends the same body over and over on connections
// that it keeps, and looks at no record of a reply.
type peer struct {
	name string
	args func(seconds, url, body, script string) []string
	rate *regexp.Regexp
	// bad are all groups that count what was not answered with 200; such lines stand
	// there only where there were some.
	bad *regexp.Regexp
}

// wrk has two threads; fortio is in Go and takes what there is. -1 among its codes is a
// connection that broke.
var peers = []peer{
	{"wrk", func(seconds, url, _, script string) []string {
		return []string{"-t2", "-c" + strconv.Itoa(connections), "-d" + seconds, "-s", script, url}
	}, regexp.MustCompile(`(?m)^Requests/sec:\s+([\d.]+)`),
		regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)|Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)},
	{"fortio", func(seconds, url, body, _ string) []string {
		return []string{"load", "-quiet", "-c", strconv.Itoa(connections), "-qps", "0", "-t", seconds, "-H", "Content-Type: application/json", "-payload-file", body, url}
	}, regexp.MustCompile(`All done \d+ calls .*, ([\d.]+) qps`),
		regexp.MustCompile(`(?m)^Code\s+(?:[013-9-]\d*|2(?:0[1-9]|[1-9]\d))\s*: (\d+)`)},
}

// prism is a peer of another kind, see server.BenchmarkAgainstMock.
const prism = "prism"

// asks is how each peer is asked for its version.
var asks = map[string]string{"wrk": "-v", "fortio": "version", prism: "--version"}

var peerNames = []string{"wrk", "fortio", prism}

// findPeers looks for the peers in build/, where make bench-peers puts them, and in the
// path. The versions that were chosen come first.
func (w *workshop) findPeers() {
	w.tools = map[string]string{}
	for _, name := range peerNames {
		for _, path := range []string{filepath.Join(w.root, "build", "bin", name), filepath.Join(w.root, "build", "node_modules", ".bin", name), name} {
			if found, err := exec.LookPath(path); err == nil {
				w.tools[name] = found
				break
			}
		}
	}
}

var version = regexp.MustCompile(`\d+\.\d+\.\d+`)

// versions of the peers that are there, and the names of those that are not.
func (w *workshop) versions() (there, missing []string) {
	for _, name := range peerNames {
		if w.tools[name] == "" {
			missing = append(missing, name)
			continue
		}
		out, _ := exec.CommandContext(w.ctx, w.tools[name], asks[name]).CombinedOutput() // wrk ends with 1
		there = append(there, strings.TrimSpace(name+" "+string(version.Find(out))))
	}
	return there, missing
}

// tally is what a peer says.
type tally struct {
	rate float64 // requests per second
	bad  float64 // answers that were none, or not 200
	cpu  float64 // seconds of the process
}

// fire runs one peer for one measurement.
func (w *workshop) fire(p peer, url, body string) (tally, error) {
	script := filepath.Join(w.folder, "wrk.lua")
	lua := fmt.Sprintf("local f = assert(io.open(%q, 'rb'))\nwrk.method = 'POST'\nwrk.body = f:read('*a')\nf:close()\nwrk.headers['Content-Type'] = 'application/json'\n", body)
	if err := os.WriteFile(script, []byte(lua), 0o600); err != nil {
		return tally{}, fmt.Errorf("write a file for %s: %w", p.name, err)
	}
	e, err := w.finish(nil, w.tools[p.name], p.args(strconv.Itoa(w.options.seconds)+"s", url, body, script)...)
	if err != nil {
		return tally{}, err
	}
	t, err := p.parse(e.text)
	t.cpu = e.cpu
	// A peer that was answered with errors has measured something else.
	if err == nil && t.bad > 0 {
		err = fmt.Errorf("%.0f answers were bad", t.bad)
	}
	if err == nil && t.rate <= 0 {
		err = errors.New("it sent nothing")
	}
	if err != nil {
		return t, fmt.Errorf("measure with %s: %w\n%s", p.name, err, tail(e.text))
	}
	return t, nil
}

// parse reads the rate, and how many requests were not answered with 200.
func (p peer) parse(text []byte) (t tally, err error) {
	if t.rate, err = find(p.rate, text); err != nil {
		return t, err
	}
	for _, m := range p.bad.FindAllSubmatch(text, -1) {
		for _, group := range m[1:] {
			if n, err := strconv.ParseFloat(string(group), 64); err == nil {
				t.bad += n
			}
		}
	}
	return t, nil
}

// find is the first group of a pattern in a text.
func find(pattern *regexp.Regexp, text []byte) (float64, error) {
	m := pattern.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("read the output: no %s", pattern)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}
