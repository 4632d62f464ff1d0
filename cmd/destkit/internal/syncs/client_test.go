package syncs

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
)

func TestServiceRoot(t *testing.T) {
	for raw, want := range map[string]string{
		"http://127.0.0.1:8080":                       "http://127.0.0.1:8080",
		"http://127.0.0.1:8080/":                      "http://127.0.0.1:8080",
		"https://sync.example.com/api/v1":             "https://sync.example.com",
		"https://sync.example.com/api/v1/":            "https://sync.example.com",
		"https://example.com/behind/a/proxy/api/v1//": "https://example.com/behind/a/proxy",
	} {
		got, err := serviceRoot(raw)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// TestEveryPage: a list is read to its end, and one that never ends is not.
func TestEveryPage(t *testing.T) {
	for name, tc := range map[string]struct {
		next  map[string]string // by page
		pages int
	}{
		"three pages":     {map[string]string{"1": "2", "2": "3", "3": "null"}, 3},
		"the same again":  {map[string]string{"1": "1"}, 1},
		"no pages at all": {map[string]string{"1": "null"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				page := r.URL.Query().Get("page")
				fmt.Fprintf(w, `{"status":"success","pagination":{"page":%s,"next_page":%s},"data":[{"id":%s}]}`, page, tc.next[page], page)
			}))
			defer served.Close()
			all, err := AllOf[Sync](t.Context(), &Client{Root: served.URL, HTTP: http.DefaultClient}, "/syncs")
			require.NoError(t, err)
			require.Len(t, all, tc.pages)
			require.Equal(t, tc.pages, calls)
			require.Equal(t, int64(tc.pages), all[len(all)-1].ID)
		})
	}
}

// TestServiceTLS: certificates are checked, against own roots where they are named,
// and a token is not carried to another place.
func TestServiceTLS(t *testing.T) {
	t.Setenv(command.WorkspaceKeyVariable, "the-key-of-the-test")
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	served := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/syncs/2" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		fmt.Fprint(w, `{"status":"success","data":{"id":1}}`)
	}))
	defer served.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: served.Certificate().Raw}), 0o600))
	open := func(roots string) *Client {
		client, err := (&Flags{url: served.URL, roots: roots, Timeout: time.Minute}).OpenAPI()
		require.NoError(t, err)
		return client
	}
	_, err := open("").Sync(t.Context(), 1)
	require.ErrorContains(t, err, "certificate")
	client := open(file)
	_, err = client.Sync(t.Context(), 1)
	require.NoError(t, err)
	_, err = client.Sync(t.Context(), 2)
	require.ErrorContains(t, err, "the service answered 302")
	require.Zero(t, elsewhere)
	_, err = (&Flags{url: served.URL, roots: "no such file", Timeout: time.Minute}).OpenAPI()
	require.ErrorContains(t, err, "read --tls-roots")
	_, err = (&Flags{url: served.URL}).OpenAPI()
	require.ErrorContains(t, err, "--request-timeout must be longer than nothing")
}
