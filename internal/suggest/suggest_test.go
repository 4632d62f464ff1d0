package suggest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWord(t *testing.T) {
	for _, tc := range []struct {
		word string
		from []string
		want string
	}{
		{"waiverz", []string{"waivers", "write"}, "waivers"},
		{"tiemout", []string{"timeout", "token-env"}, "timeout"}, // two neighbours swapped
		{"RES-02", []string{"RES-001", "RES-002", "SEM-002"}, "RES-002"},
		{"email", []string{"EMAIL", "mail"}, "mail"},
		{"name", []string{"ID", "NAME"}, "NAME"},
		{"x", []string{strings.Repeat("x", 10_000_000)}, ""},
		{"colour", []string{"write", "serial"}, ""},
		{"", []string{"write"}, ""},
		{"x", nil, ""},
	} {
		require.Equal(t, tc.want, Word(tc.word, tc.from), tc.word)
	}
}

func TestURL(t *testing.T) {
	for raw, want := range map[string]string{
		"127.0.0.1:8080":              "http://127.0.0.1:8080",
		"127.0.0.1:8080/":             "http://127.0.0.1:8080",
		"//localhost:8080":            "http://localhost:8080",
		"localhost":                   "http://localhost",
		"192.168.1.7:80/d":            "http://192.168.1.7:80/…",
		"[::1]:8080":                  "http://[::1]:8080",
		"example.com/hook?key=s3cr3t": "https://example.com/…",
		"crm:8443":                    "https://crm:8443",
		"htps://example.com":          "https://example.com",
		"HTTP//example.com":           "http://example.com",
		"http:/127.0.0.1:8080":        "http://127.0.0.1:8080",
		"http//127.0.0.1:8080/d":      "http://127.0.0.1:8080/…",
		"htp:/127.0.0.1:8080":         "http://127.0.0.1:8080",
		"https:///example.com":        "https://example.com",
		"http:/me:pw@example.com":     "",
		"ftp://example.com":           "",
		"me:pw@example.com":           "",
		"word":                        "",
		"":                            "",
	} {
		require.Equal(t, want, URL(raw), raw)
	}
}
