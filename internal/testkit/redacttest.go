package testkit

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"mime/quotedprintable"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Secrets hold every character that some encoding treats specially.
var Secrets = []string{
	"tok_live-abcdefghijklmnop",
	`s3cr3t+/=?&<>"'\%20`,
	"Zürich-geheim-Straße-🔑-key",
	"two words and more",
	"line\nbreak\ttab",
	"abcd",
}

// Encodings are the ways in which a secret may come back. Each gives a text in
// which a reader could know the secret.
func Encodings(secret string) map[string]string {
	std, escaped := base64.StdEncoding, escapeAll(secret, `\u%04x`)
	quoted, _ := json.Marshal(secret)
	jsonText := string(quoted[1 : len(quoted)-1])
	twice, _ := json.Marshal(jsonText)
	all := map[string]string{
		"raw":              secret,
		"other case":       swapCase(secret),
		"query":            url.QueryEscape(secret),
		"path":             url.PathEscape(secret),
		"query lower":      lowerEscapes(url.QueryEscape(secret)),
		"every byte %XX":   percentAll(secret, "%%%02X"),
		"every byte %xx":   percentAll(secret, "%%%02x"),
		"twice percent":    url.QueryEscape(url.QueryEscape(secret)),
		"base64":           std.EncodeToString([]byte(secret)),
		"base64 raw":       base64.RawStdEncoding.EncodeToString([]byte(secret)),
		"base64 url":       base64.URLEncoding.EncodeToString([]byte(secret)),
		"base64 url raw":   base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"base64 in a URL":  url.QueryEscape(std.EncodeToString([]byte("x" + secret + "y"))),
		"json":             jsonText,
		"json every char":  escaped,
		"json upper hex":   escapeAll(secret, `\u%04X`),
		"json in json":     string(twice[1 : len(twice)-1]),
		"json slash":       strings.ReplaceAll(jsonText, "/", `\/`),
		"percent in json":  strings.ReplaceAll(url.QueryEscape(secret), "%", `\u0025`),
		"hex":              hex.EncodeToString([]byte(secret)),
		"HEX":              strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"html":             html.EscapeString(secret),
		"html decimal":     htmlAll(secret, "&#%d;"),
		"html hex":         htmlAll(secret, "&#x%x;"),
		"html upper hex":   htmlAll(secret, "&#X%X;"),
		"html in json":     strings.ReplaceAll(htmlAll(secret, "&#%d;"), "&", `\u0026`),
		"utf-16":           utf16Bytes(secret),
		"inside words":     "xx" + secret + "yy",
		"bearer":           "Bearer " + secret,
		"python repr hex":  percentAll(secret, `\x%02x`),
		"twice on a line":  secret + secret,
		"header in a dump": fmt.Sprintf("%q", "Authorization: Bearer "+secret),
	}
	maps.Copy(all, moreEncodings(secret))
	for _, user := range []string{"", "u", "us", "use", "user"} {
		all["basic "+user] = "Basic " + std.EncodeToString([]byte(user+":"+secret))
		all["basic as user "+user] = "Basic " + std.EncodeToString([]byte(user+secret+":"))
	}
	return all
}

// moreEncodings are the rarer ones, and pairs of them.
func moreEncodings(secret string) map[string]string {
	raw := []byte(secret)
	std := base64.StdEncoding.EncodeToString
	var bytewise, decimal []string
	for _, c := range raw {
		bytewise = append(bytewise, fmt.Sprintf("%02x", c))
		decimal = append(decimal, strconv.Itoa(int(c)))
	}
	wide := make([]byte, 0, 2*len(raw))
	for _, unit := range utf16.Encode([]rune(secret)) {
		wide = append(wide, byte(unit>>8), byte(unit))
	}
	var quoted strings.Builder
	w := quotedprintable.NewWriter(&quoted)
	_, _ = w.Write(raw)
	_ = w.Close()
	backwards := []rune(secret)
	slices.Reverse(backwards)
	all := map[string]string{
		"quoted-printable":       quoted.String(),
		"every byte =XX":         percentAll(secret, "=%02X"),
		"octal":                  percentAll(secret, `\%03o`),
		"braces":                 runesAll(secret, `\x{%x}`),
		"upper U":                runesAll(secret, `\U%08x`),
		"percent u":              escapeAll(secret, "%%u%04x"),
		"html without semicolon": htmlAll(secret, "&#%d"),
		"base64 of base64":       std([]byte(std(raw))),
		"base64 three times":     std([]byte(std([]byte(std(raw))))),
		"base64 of the header":   std([]byte("Bearer " + secret)),
		"base64 of hex":          std([]byte(hex.EncodeToString(raw))),
		"base64 of percent":      std([]byte(percentAll(secret, "%%%02X"))),
		"base64 of utf-16":       std([]byte(utf16Bytes(secret))),
		"hex of base64":          hex.EncodeToString([]byte(std(raw))),
		"hex with colons":        strings.Join(bytewise, ":"),
		"hex with spaces":        strings.Join(bytewise, " "),
		"hex with 0x":            "0x" + strings.Join(bytewise, ", 0x"),
		"list of bytes":          "[" + strings.Join(decimal, " ") + "]",
		"list with commas":       strings.Join(decimal, ","),
		"base64 on lines":        spread(std(raw), 5, "\r\n"),
		"base64 on lines, json":  spread(std(raw), 5, `\n`),
		"lines":                  spread(secret, 3, "\n"),
		"letters apart":          spread(secret, 1, " "),
		"zero width":             spread(secret, 2, "\u200b"),
		"soft hyphens":           spread(secret, 2, "\u00ad"),
	}
	if strings.IndexFunc(secret, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		all["backwards"] = string(backwards)
		if len(secret) > 4 {
			all["base32"] = base32.StdEncoding.EncodeToString(raw)
			all["base32 lower"] = strings.ToLower(all["base32"])
		}
		all["utf-16, the other way"] = string(wide)
		all["rot13"] = rot13(secret)
	}
	return all
}

// spread puts between after every n characters.
func spread(s string, n int, between string) string {
	var b strings.Builder
	for i, r := range []rune(s) {
		if i > 0 && i%n == 0 {
			b.WriteString(between)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func runesAll(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
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

// utf16Bytes is little-endian UTF-16 for the characters below U+0100, as
// UTF-8 bytes with zeros between them.
func utf16Bytes(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		b.WriteByte(0)
	}
	return b.String()
}

func rot13(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return 'a' + (r-'a'+13)%26
		}
		return r
	}, strings.ToLower(s))
}
