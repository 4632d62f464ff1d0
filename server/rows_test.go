package server

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rows of the ledger that no other test is about.

func TestDatasetRow(t *testing.T) {
	proves(t, "F-2.6-36")
	w := newWorld(t)
	source := w.newSource()
	id := w.do("POST", "/datasets", w.key, map[string]any{
		"name": "Grown ups", "type": "sql", "source_id": source, "query": "SELECT id, email FROM customers WHERE age > 17",
	}).want(201).id("data.id")
	a := w.do("GET", fmt.Sprintf("/datasets/%d", id), w.key, nil).want(200)
	require.Equal(t, "Grown ups", a.at("data.name"))
	require.Equal(t, source, a.id("data.source_id"))
	require.Contains(t, a.at("data.query"), "age > 17")
	require.Equal(t, "email", a.at("data.columns.1.name"))
	require.Regexp(t, `^dataset:[a-z0-9_-]+$`, a.at("data.resource_identifier"))
}

func TestReadMoreRow(t *testing.T) {
	proves(t, "F-2.10-16")
	w := newWorld(t)
	types := w.do("GET", "/source_types?per_page=100", w.key, nil).want(200).at("data").([]any)
	links := 0
	for _, kind := range types {
		for _, field := range kind.(map[string]any)["configuration_fields"].(map[string]any)["fields"].([]any) {
			text := field.(map[string]any)["read_more"].(string)
			if text == "" {
				continue
			}
			links++
			at, err := url.Parse(text)
			require.NoError(t, err)
			require.Equal(t, "https", at.Scheme, text)
		}
	}
	require.NotZero(t, links, "some field has more to read")
}

func TestTokensLast(t *testing.T) {
	proves(t, "F-5.1-07")
	w := newWorld(t)
	w.control("POST", "/clock", `{"advance":"175200h"}`).want(200) // 20 years
	w.do("GET", "/users", w.pat, nil).want(200)
	w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": "https://example.com/"}).want(201)
	w.do("GET", "/syncs", w.key, nil).want(200)
}

// TestConnectionURLsAreSealed: neither the files nor the logs hold the part of
// a connection URL that may be secret (spec 5.2.3), and the service knows it all
// the same.
func TestConnectionURLsAreSealed(t *testing.T) {
	proves(t, "F-5.2-06")
	dir, logged := t.TempDir(), &bytes.Buffer{}
	w := newWorld(t, func(c *Config) {
		c.Dir, c.MasterKey = dir, bytes.Repeat([]byte{7}, 32)
		c.Log = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	body := customDestination("https://127.0.0.1:1/sealed-path-segment?key=sealed-query-value")
	id := w.do("POST", "/destinations", w.key, body).want(201).id("data.id")
	w.do("GET", fmt.Sprintf("/destinations/%d/objects", id), w.key, nil)
	shown := w.do("GET", fmt.Sprintf("/destinations/%d", id), w.key, nil).want(200)
	require.Contains(t, shown.at("data.connection_details.webhook_url"), "sealed-path-segment")
	require.NotContains(t, logged.String(), "sealed-")
	read := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, string(text), "sealed-", path)
		read++
		return nil
	}))
	require.NotZero(t, read)
}
