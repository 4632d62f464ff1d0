package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// peer is another load generator: it sends the same body over and over on connections
// that it keeps, and looks at no record of a reply.
type peer struct {
	name string
	args func(seconds, url, body, script string) []string
	rate *regexp.Regexp
	// bad are all groups that count requests without a 200; such lines appear only
	// where there were some.
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
func (l *lab) findPeers() {
	l.tools = map[string]string{}
	for _, p := range peers {
		for _, path := range []string{p.name, filepath.Join(l.root, "build", "bin", p.name)} {
			if found, err := exec.LookPath(path); err == nil {
				l.tools[p.name] = found
			}
		}
	}
}

// tally is the output of a peer.
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
func (l *lab) fire(t *testing.T, p peer, url string) tally {
	script, file := filepath.Join(l.folder, "wrk.lua"), filepath.Join(l.folder, "body.json")
	lua := fmt.Sprintf("wrk.method = 'POST'\nwrk.body = %q\nwrk.headers['Content-Type'] = 'application/json'\n", body)
	require.NoError(t, os.WriteFile(script, []byte(lua), 0o600))
	require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	text, cpu := l.run(t, nil, l.tools[p.name], p.args(strconv.Itoa(flags.seconds)+"s", url, file, script)...)
	fired, err := p.parse(text)
	require.NoError(t, err, text)
	// A peer that was answered with errors has measured something else.
	require.True(t, fired.bad == 0 && fired.rate > 0, "%.0f answers of %s were bad, %.0f a second were good:\n%s", fired.bad, p.name, fired.rate, text)
	fired.cpu = cpu
	return fired
}

// parse reads the rate, and how many requests were not answered with 200.
func (p peer) parse(text string) (t tally, err error) {
	if t.rate, err = find(p.rate, text); err != nil {
		return t, err
	}
	for _, m := range p.bad.FindAllStringSubmatch(text, -1) {
		for _, group := range m[1:] {
			if n, err := strconv.ParseFloat(group, 64); err == nil {
				t.bad += n
			}
		}
	}
	return t, nil
}

// find is the first group of a pattern in a text.
func find(pattern *regexp.Regexp, text string) (float64, error) {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("read the output: no %s", pattern)
	}
	return strconv.ParseFloat(m[1], 64)
}

// The samples are what the peers have put out: against a simulator (good), a path
// that answers 404 (bad), a port without a listener (refused) and a server
// that was killed meanwhile.
func TestOutputsOfPeersAreRead(t *testing.T) {
	for _, c := range []struct {
		peer, sample string
		want         tally
	}{
		{"wrk", "good", tally{rate: 21398.67, bad: 0}},
		{"wrk", "bad", tally{rate: 26218.50, bad: 28877}},
		{"wrk", "killed", tally{rate: 26811.76, bad: 21542}},
		{"fortio", "good", tally{rate: 24278.8, bad: 0}},
		{"fortio", "killed", tally{rate: 17662.3, bad: 5633}},
	} {
		t.Run(c.peer+"/"+c.sample, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", c.peer+"."+c.sample+".txt"))
			require.NoError(t, err)
			got, err := called(c.peer).parse(string(text))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// A peer that gave up has no rate: an error, not a rate of zero.
func TestOutputsWithoutARate(t *testing.T) {
	for _, sample := range []string{"wrk.refused.txt", "fortio.refused.txt", "fortio.bad.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", sample))
		require.NoError(t, err)
		name, _, _ := strings.Cut(sample, ".")
		_, err = called(name).parse(string(text))
		require.ErrorContains(t, err, "read the output", sample)
	}
}

func called(name string) peer {
	return peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == name })]
}
