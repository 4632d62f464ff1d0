package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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

// findPeers looks for the peers in build/, where make bench-peers puts them, and in the
// path. The versions that were chosen come first.
func (w *workshop) findPeers() {
	w.tools = map[string]string{}
	for _, p := range peers {
		for _, path := range []string{p.name, filepath.Join(w.root, "build", "bin", p.name)} {
			if found, err := exec.LookPath(path); err == nil {
				w.tools[p.name] = found
			}
		}
	}
}

// tally is what a peer says.
type tally struct {
	rate float64 // requests per second
	bad  float64 // answers that were none, or not 200
	cpu  float64 // seconds of the process
}

// body is what the peers send: a batch as destkit load makes it.
const body = `{"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"object":{"object_api_name":"event","label":"Event"},"operation":"upsert",` +
	`"sync_run_id":963760234,"sync_id":1,"schema":{"event_id":{"active_identifier":true,"field":{"field_api_name":"event_id","label":"Event ID",` +
	`"identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}},"occurred_at":{"active_identifier":false,` +
	`"field":{"field_api_name":"occurred_at","label":"Occurred at","identifier":false,"required":false,"createable":true,"updateable":true,` +
	`"type":"date_time","array":false}}}},"records":[{"event_id":"zz-load-03f827-000000000000","occurred_at":"2021-03-29T16:32:00Z"}]},` +
	`"id":"dbeeb9f8a7f969399a00000000000001"}`

// fire runs one peer for one measurement.
func (w *workshop) fire(p peer, url string) (tally, error) {
	script, file := filepath.Join(w.folder, "wrk.lua"), filepath.Join(w.folder, "body.json")
	lua := fmt.Sprintf("wrk.method = 'POST'\nwrk.body = %q\nwrk.headers['Content-Type'] = 'application/json'\n", body)
	for name, text := range map[string]string{script: lua, file: body} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return tally{}, fmt.Errorf("write a file for %s: %w", p.name, err)
		}
	}
	e, err := w.finish(nil, w.tools[p.name], p.args(strconv.Itoa(w.options.seconds)+"s", url, file, script)...)
	if err != nil {
		return tally{}, err
	}
	t, err := p.parse(e.text)
	t.cpu = e.cpu
	// A peer that was answered with errors has measured something else.
	if err == nil && (t.bad > 0 || t.rate <= 0) {
		err = fmt.Errorf("%.0f answers were bad, %.0f a second were good", t.bad, t.rate)
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
