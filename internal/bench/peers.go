package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// peer is another load generator. None of them looks at the records of a reply.
type peer struct {
	name string
	args func(shot) []string
	// files are written before it is run, by their ending.
	files func(shot) map[string]string
	parse func(text []byte) (tally, error)
}

// shot is what a peer is to send: the same body over and over.
type shot struct {
	url, body, base string // the body is a file; base begins the names of files of the peer
	seconds         int
	connections     int
}

// tally is what a peer says.
type tally struct {
	rate float64 // requests per second
	bad  int64   // answers that were none, or not 200
	cpu  float64 // seconds of the process
}

const contentType = "Content-Type: application/json"

// All of them keep their connections and send as soon as a reply has come. wrk
// and h2load have two threads; the others are in Go and take what there is.
var peers = []peer{
	{name: "wrk", parse: parseWrk, files: func(s shot) map[string]string {
		return map[string]string{".lua": fmt.Sprintf("local f = assert(io.open(%q, 'rb'))\nwrk.method = 'POST'\nwrk.body = f:read('*a')\nf:close()\nwrk.headers['Content-Type'] = 'application/json'\n", s.body)}
	}, args: func(s shot) []string {
		return []string{"-t2", "-c" + strconv.Itoa(s.connections), "-d" + strconv.Itoa(s.seconds) + "s", "-s", s.base + ".lua", s.url}
	}},
	{name: "fortio", parse: parseFortio, args: func(s shot) []string {
		return []string{"load", "-quiet", "-c", strconv.Itoa(s.connections), "-qps", "0", "-t", strconv.Itoa(s.seconds) + "s", "-H", contentType, "-payload-file", s.body, s.url}
	}},
	{name: "h2load", parse: parseH2load, args: func(s shot) []string {
		return []string{"--h1", "-t2", "-c" + strconv.Itoa(s.connections), "-D" + strconv.Itoa(s.seconds), "-H", contentType, "-d", s.body, s.url}
	}},
	{name: "hey", parse: parseHey, args: func(s shot) []string {
		return []string{"-c", strconv.Itoa(s.connections), "-z", strconv.Itoa(s.seconds) + "s", "-m", "POST", "-T", "application/json", "-D", s.body, s.url}
	}},
	{name: "k6", parse: parseK6, files: func(s shot) map[string]string {
		return map[string]string{".js": fmt.Sprintf("import http from 'k6/http';\nconst body = open(%q);\nconst params = {headers: {'Content-Type': 'application/json'}};\nexport default function () { http.post(%q, body, params); }\n", s.body, s.url)}
	}, args: func(s shot) []string {
		return []string{"run", "--quiet", "--no-color", "--no-usage-report", "--address", "", "--vus", strconv.Itoa(s.connections), "--duration", strconv.Itoa(s.seconds) + "s", s.base + ".js"}
	}},
}

// prism is a peer of another kind, see server.BenchmarkAgainstMock.
const prism = "prism"

// findPeers looks for the peers in build/, where make bench-peers puts them, and
// in the path.
func (w *workshop) findPeers() {
	w.tools = map[string]string{}
	for _, name := range append(peerNames(), prism) {
		// The versions that were chosen come first.
		for _, path := range []string{filepath.Join(w.root, "build", "bin", name), filepath.Join(w.root, "build", "node_modules", ".bin", name), name} {
			if found, err := exec.LookPath(path); err == nil {
				w.tools[name] = found
				break
			}
		}
	}
}

func peerCalled(name string) peer {
	return peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == name })]
}

func peerNames() (names []string) {
	for _, p := range peers {
		names = append(names, p.name)
	}
	return names
}

// missing are the peers that are not installed.
func (w *workshop) missing() (names []string) {
	for _, name := range append(peerNames(), prism) {
		if w.tools[name] == "" {
			names = append(names, name)
		}
	}
	return names
}

// asks is how a peer is asked for its version; hey does not know its own.
var asks = map[string]string{"wrk": "-v", "fortio": "version", "h2load": "--version", "k6": "version", prism: "--version"}

var version = regexp.MustCompile(`\d+\.\d+\.\d+`)

// versions of the peers that are there.
func (w *workshop) versions() (list []string) {
	for _, name := range append(peerNames(), prism) {
		if w.tools[name] == "" {
			continue
		}
		text := ""
		if ask := asks[name]; ask != "" {
			out, _ := exec.CommandContext(w.ctx, w.tools[name], ask).CombinedOutput() // wrk ends with 1
			text = string(version.Find(out))
		}
		list = append(list, strings.TrimSpace(name+" "+text))
	}
	return list
}

// fire runs one peer for one measurement.
func (w *workshop) fire(name string, s shot) (tally, error) {
	p := peerCalled(name)
	s.base = filepath.Join(w.folder, name)
	if p.files != nil {
		for ending, text := range p.files(s) {
			if err := os.WriteFile(s.base+ending, []byte(text), 0o600); err != nil {
				return tally{}, fmt.Errorf("write a file for %s: %w", name, err)
			}
		}
	}
	e, err := w.finish(nil, w.tools[name], p.args(s)...)
	if err != nil {
		return tally{}, err
	}
	t, err := p.parse(e.text)
	t.cpu = e.cpu
	// A peer that was answered with errors has measured something else.
	if err == nil && t.bad > 0 {
		err = fmt.Errorf("%d answers were bad", t.bad)
	}
	if err == nil && t.rate <= 0 {
		err = errors.New("it sent nothing")
	}
	if err != nil {
		return t, fmt.Errorf("measure with %s: %w\n%s", name, err, tail(e.text))
	}
	return t, nil
}

// number reads a number with commas.
func number(text string) (float64, error) {
	return strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
}
