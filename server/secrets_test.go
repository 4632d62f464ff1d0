package server

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoSecretAnywhere sends secrets of every kind, provokes failures around
// them, and looks for them in everything that is kept or shown: the files of
// the data directory, the logs, a snapshot, the journals and the figures
// (spec 5.2.3).
func TestNoSecretAnywhere(t *testing.T) {
	proves(t, "F-5.2-01", "F-5.2-06")
	dir, logged := t.TempDir(), &sayings{}
	w := newWorld(t, func(c *Config) {
		c.Dir, c.MasterKey = dir, bytes.Repeat([]byte{7}, 32)
		c.Log = slog.New(slog.NewJSONHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	secrets := []string{w.pat, w.key, "destination-token", "unguessable-segment", "header-secret"}
	secrets = append(secrets, sendSecrets(w)...)

	var haystack bytes.Buffer
	w.control("POST", "/settle", nil).want(200) // what runs logs, too
	haystack.WriteString(logged.String())
	for _, path := range []string{"/journal/requests?limit=10000", "/journal/calls?limit=10000", "/journal/webhooks?limit=10000", "/snapshot", "/metrics", "/mailbox", "/faults"} {
		haystack.Write(w.control("GET", path, nil).want(200).text)
	}
	metrics := must(http.NewRequest("GET", "http://127.0.0.1/metrics", nil))(t)
	metrics.RemoteAddr = "127.0.0.1:1"
	haystack.Write(w.send(metrics).want(200).text)
	files := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			haystack.Write(contentOf(t, path))
			files++
		}
		return err
	}))
	require.NotZero(t, files)
	require.Contains(t, haystack.String(), "Endpoint", "the haystack is the right one")
	sealed := regexp.MustCompile(`http://127\.0\.0\.1:\d+/(sealed:[A-Za-z0-9_-]+)`).FindStringSubmatch(logged.String())
	require.NotNil(t, sealed, "the log shows scheme, host and a seal")
	opened := must(w.s.store.UnsealText(sealed[1]))(t)
	require.Equal(t, w.destination(), opened)
	for _, secret := range secrets {
		for _, form := range []string{
			secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
		} {
			at := bytes.Index(haystack.Bytes(), []byte(form))
			if at >= 0 {
				require.Fail(t, "a secret was kept in the clear", "%q in …%q", secret, haystack.Bytes()[max(0, at-200):min(haystack.Len(), at+100)])
			}
		}
	}
}

// sendSecrets makes connections of every kind with secrets, some of which do
// not work, so that the secrets come near error messages too.
func sendSecrets(w *world) []string {
	id := w.newSync()
	w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200)
	w.do("POST", "/destinations", w.key, customDestination("https://127.0.0.1:1/path-secret-one?key=query-secret-one")).want(201)
	w.do("POST", "/destinations", w.key, customDestination("ftp://user:pass-secret-two@example.com/path-secret-two")).want(400)
	w.do("POST", "/destinations", w.key, strings.Replace(`{"service_connection":{"name":"Broken","type":"custom_api","credentials":{"api_version":1,"webhook_url":"https://x/","auth_token":"json-secret"`, "§", "", 1)).want(400)
	w.sourceOf("postgres", map[string]any{"host": "127.0.0.1", "port": 1, "database": "db", "username": "reader", "password": "postgres-secret", "sslmode": "disable"})
	w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "Typo", "type": "postgres", "credentials": map[string]any{
		"host": "127.0.0.1", "passwort": "misspelt-secret",
	}}}).want(400)
	hook := w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": "https://example.com/webhook-secret"}).want(201)
	workspace := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second", "return_workspace_api_key": true}).want(201)
	w.do("GET", "/syncs", "guessed-token-secret", nil).want(401)
	return []string{
		"path-secret-one", "query-secret-one", "pass-secret-two", "path-secret-two", "json-secret", "postgres-secret",
		"misspelt-secret", "webhook-secret", "guessed-token-secret",
		hook.at("data.secret").(string), workspace.at("data.api_key").(string),
	}
}
