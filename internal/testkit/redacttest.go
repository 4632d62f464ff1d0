package testkit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode/utf16"
)

// Secrets hold every character that some encoding treats specially.
var Secrets = []string{
	"tok_live-abcdefghijklmnop",
	`s3cr3t+/=?&<>"'\%20`,
	"Zürich-geheim-Straße-🔑-key",
	"two words and more",
	"line\nbreak\ttab",
	"ab4d",
}

// Encodings are the ways in which a secret may come back. Each gives a text in
// which a reader could know the secret.
func Encodings(secret string) map[string]string {
	std, escaped := base64.StdEncoding, escapeAll(secret, `\u%04x`)
	quoted, _ := json.Marshal(secret)
	jsonText := string(quoted[1 : len(quoted)-1])
	twice, _ := json.Marshal(jsonText)
	all := map[string]string{
		"raw":                    secret,
		"other case":             swapCase(secret),
		"query":                  url.QueryEscape(secret),
		"path":                   url.PathEscape(secret),
		"query lower":            lowerEscapes(url.QueryEscape(secret)),
		"every byte %XX":         percentAll(secret, "%%%02X"),
		"every byte %xx":         percentAll(secret, "%%%02x"),
		"twice percent":          url.QueryEscape(url.QueryEscape(secret)),
		"base64":                 std.EncodeToString([]byte(secret)),
		"base64 raw":             base64.RawStdEncoding.EncodeToString([]byte(secret)),
		"base64 url":             base64.URLEncoding.EncodeToString([]byte(secret)),
		"base64 url raw":         base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"base64 in a URL":        url.QueryEscape(std.EncodeToString([]byte("x" + secret + "y"))),
		"json":                   jsonText,
		"json every char":        escaped,
		"json upper hex":         escapeAll(secret, `\u%04X`),
		"json in json":           string(twice[1 : len(twice)-1]),
		"json slash":             strings.ReplaceAll(jsonText, "/", `\/`),
		"percent in json":        strings.ReplaceAll(url.QueryEscape(secret), "%", `\u0025`),
		"html":                   html.EscapeString(secret),
		"html decimal":           htmlAll(secret, "&#%d;"),
		"html hex":               htmlAll(secret, "&#x%x;"),
		"html upper hex":         htmlAll(secret, "&#X%X;"),
		"html in json":           strings.ReplaceAll(htmlAll(secret, "&#%d;"), "&", `\u0026`),
		"inside words":           "xx" + secret + "yy",
		"bearer":                 "Bearer " + secret,
		"twice on a line":        secret + secret,
		"percent u":              escapeAll(secret, "%%u%04x"),
		"html without semicolon": htmlAll(secret, "&#%d"),
		"base64 of base64":       std.EncodeToString([]byte(std.EncodeToString([]byte(secret)))),
		"base64 three times":     std.EncodeToString([]byte(std.EncodeToString([]byte(std.EncodeToString([]byte(secret)))))),
		"base64 of the header":   std.EncodeToString([]byte("Bearer " + secret)),
		"base64 of percent":      std.EncodeToString([]byte(percentAll(secret, "%%%02X"))),
		"header in a dump":       fmt.Sprintf("%q", "Authorization: Bearer "+secret),
	}
	for _, user := range []string{"", "u", "us", "use", "user"} {
		all["basic "+user] = "Basic " + std.EncodeToString([]byte(user+":"+secret))
		all["basic as user "+user] = "Basic " + std.EncodeToString([]byte(user+secret+":"))
	}
	return all
}

func escapeAll(s, format string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, format, unit)
	}
	return b.String()
}

// swapCase changes ASCII letters only.
func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r ^ 0x20
		}
		return r
	}, s)
}

func percentAll(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func htmlAll(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

func lowerEscapes(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' {
			copy(b[i:], strings.ToLower(string(b[i:i+3])))
		}
	}
	return string(b)
}
