package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReplies holds whole answers, member by member and value by value, against
// testdata/replies (spec 2.1 to 2.14). go test ./server -run '^TestReplies$' -update
// writes them.
func TestReplies(t *testing.T) {
	proves(t, "F-2-01", "F-2-02", "F-2.1-01", "F-2.1-02", "F-2.1-03", "F-2.1-04", "F-2.1-05", "F-2.1-06", "F-2.1-07", "F-2.1-08", "F-2.1-09", "F-2.1-11",
		"F-2.2-01", "F-2.2-02", "F-2.2-04", "F-2.2-05", "F-2.2-10", "F-4-07", "F-4-11", "F-4-15")
	proves(t, "F-2.3-03", "F-2.3-08", "F-2.3-12", "F-2.4-01", "F-2.4-02", "F-2.4-03", "F-2.4-04", "F-2.4-08", "F-2.5-02", "F-2.5-07", "F-2.5-12", "F-2.5-14",
		"F-2.6-04", "F-2.6-06", "F-2.6-07", "F-2.6-10", "F-2.7-03", "F-2.7-05", "F-2.9-04", "F-2.9-06", "F-2.9-07", "F-2.9-13")
	proves(t, "F-2.10-01", "F-2.10-02", "F-2.10-03", "F-2.10-05", "F-2.10-06", "F-2.10-09", "F-2.10-11", "F-2.10-16", "F-2.10-17",
		"F-2.11-01", "F-2.11-03", "F-2.11-04", "F-2.11-06", "F-2.13-01", "F-2.13-02", "F-2.13-03", "F-2.13-06", "F-2.13-07", "F-2.14-01", "F-2.14-03", "F-2.14-07")
	w := newWorld(t)
	source, destination, sheets := w.newSource(), w.newDestination(), w.emulated("google_sheets").id("data.id")
	kept := func(name string, a *answer) { w.keptReply(name, a.want(200)) }

	kept("syncs_none", w.do("GET", "/syncs", w.key, nil))
	kept("destination", w.do("GET", fmt.Sprintf("/destinations/%d", destination), w.key, nil))
	kept("destination_object", w.do("GET", fmt.Sprintf("/destinations/%d/objects/person", destination), w.key, nil))
	kept("destination_objects_sheets", w.do("GET", fmt.Sprintf("/destinations/%d/objects", sheets), w.key, nil))
	kept("source", w.do("GET", fmt.Sprintf("/sources/%d", source), w.key, nil))
	kept("source_types", w.do("GET", "/source_types?per_page=6&order=asc", w.key, nil))

	model := w.do("POST", fmt.Sprintf("/sources/%d/models", source), w.key,
		map[string]any{"name": "Grown up", "query": "SELECT id, email FROM customers WHERE age > 17", "description": "of age"}).want(201).id("data.id")
	kept("model", w.do("GET", fmt.Sprintf("/sources/%d/models/%d", source, model), w.key, nil))

	body := syncBody(source, destination)
	body["alert_attributes"] = []any{map[string]any{"type": "FailureAlertConfiguration", "send_for": "every_time", "should_send_recovery": true, "options": nil}}
	sync := w.do("POST", "/syncs", w.key, body).want(200).id("data.sync_id")
	kept("sync", w.do("GET", fmt.Sprintf("/syncs/%d", sync), w.key, nil))
	run := w.trigger(sync)
	w.control("POST", "/settle", nil).want(200)
	w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", run), w.key, nil) // too late
	kept("sync_run", w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil))
	for i := range 6 {
		body["label"] = fmt.Sprintf("Customers %d", i)
		w.do("POST", "/syncs", w.key, body).want(200)
	}
	for page := 1; page <= 4; page++ {
		kept(fmt.Sprintf("syncs_page_%d", page), w.do("GET", fmt.Sprintf("/syncs?per_page=3&page=%d&order=asc", page), w.key, nil))
	}

	kept("syncs_far_beyond", w.do("GET", "/syncs?per_page=3&page=1000", w.key, nil))

	invited := w.do("POST", "/invitations", w.pat, map[string]any{"email": "member@example.com", "role": "member"}).want(200).id("data.id")
	kept("invitation", w.do("GET", fmt.Sprintf("/invitations/%d", invited), w.pat, nil))
	w.control("POST", fmt.Sprintf("/invitations/%d/claim", invited), map[string]any{}).want(200)
	kept("invitation_claimed", w.do("GET", fmt.Sprintf("/invitations/%d", invited), w.pat, nil))
	kept("users", w.do("GET", "/users?order=asc", w.pat, nil))
	kept("workspaces", w.do("GET", "/workspaces", w.pat, nil))
}

// keptReply compares an answer with the one that was kept; what another run has
// otherwise (times of now, ports, folders) is replaced by words.
func (w *world) keptReply(name string, a *answer) {
	w.t.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(a.text))
	decoder.UseNumber()
	require.NoError(w.t, decoder.Decode(&value))
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	require.NoError(w.t, encoder.Encode(w.withoutRun(value)))
	file := filepath.Join("testdata", "replies", name+".json")
	if *updateLedger {
		require.NoError(w.t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(w.t, os.WriteFile(file, text.Bytes(), 0o644))
	}
	want := contentOf(w.t, file)
	require.Equal(w.t, string(want), text.String(), "%s; if that is meant, run it again with -update", file)
}

var (
	portHere  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	tokenHere = regexp.MustCompile(`secret-token:[A-Za-z0-9_-]+`)
)

// withoutRun has words in the place of what belongs to this run of the test.
func (w *world) withoutRun(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = w.withoutRun(v[name])
		}
	case []any:
		for i := range v {
			v[i] = w.withoutRun(v[i])
		}
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil && time.Since(at).Abs() < time.Hour {
			return "NOW"
		}
		v = strings.ReplaceAll(v, filepath.Dir(w.sourceFile()), "FOLDER")
		return tokenHere.ReplaceAllString(portHere.ReplaceAllString(v, "127.0.0.1:PORT"), "TOKEN")
	}
	return value
}
