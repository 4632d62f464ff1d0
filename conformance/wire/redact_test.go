package wire

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// secretsOfAllKinds hold every character that some encoding treats specially.
var secretsOfAllKinds = []string{
	"tok_live-abcdefghijklmnop",
	`s3cr3t+/=?&<>"'\%20`,
	"Zürich-geheim-Straße-🔑-key",
	"two words and more",
	"line\nbreak\ttab",
	"abcd",
}

// encodings are the ways in which a secret may come back. Each gives a text in
// which somebody could read the secret.
func encodings(secret string) map[string]string {
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

// utf16Bytes is little-endian UTF-16 for the characters below U+0100, as the
// bytes of UTF-8 would stand with zeros between them.
func utf16Bytes(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		b.WriteByte(0)
	}
	return b.String()
}

func TestNoSecretLeaksInAnyEncoding(t *testing.T) {
	for _, secret := range secretsOfAllKinds {
		r := NewRedactor()
		r.Add("another-secret-entirely", "$OTHER")
		r.Add(secret, "$DESTKIT_TOKEN")
		for name, coded := range encodings(secret) {
			text := `{"a":"` + coded + `","b":1}`
			got := r.String(text)
			require.Contains(t, got, "DESTKIT_TOKEN", "%s of %q", name, secret)
			require.NotContains(t, strings.ToLower(got), strings.ToLower(coded), "%s of %q", name, secret)
			require.True(t, strings.HasPrefix(got, `{"a":"`) && strings.HasSuffix(got, `","b":1}`), "%s of %q: %s", name, secret, got)
			require.Equal(t, got, string(r.Bytes([]byte(text))))
			require.Equal(t, got, r.String(got), "%s of %q", name, secret)
			if len(secret) > 8 {
				require.Equal(t, []string{"$DESTKIT_TOKEN"}, r.Leaks([]byte(text)), "%s of %q", name, secret)
			}
		}
		require.Empty(t, r.Leaks([]byte(`{"jsonrpc":"2.0","id":"00","result":{}}`)))
	}
}

// A token that was shortened, extended or changed in case for a check is still
// nearly the token.
func TestMostOfASecretIsSecret(t *testing.T) {
	secret := "tok_live-abcdefghijklmnop"
	r := NewRedactor()
	r.Add(secret, "$DESTKIT_TOKEN")
	require.Equal(t, "[part of $DESTKIT_TOKEN]", r.String(secret[:len(secret)-1]))
	require.Equal(t, "a [part of $DESTKIT_TOKEN] b", r.String("a "+secret[3:]+" b"))
	require.Equal(t, "${DESTKIT_TOKEN}x", r.String(secret+"x"))
	require.Equal(t, "x$DESTKIT_TOKEN", r.String("x"+secret))
	require.Equal(t, "$DESTKIT_TOKEN", r.String(strings.ToUpper(secret)))
	require.Equal(t, "tok_live", r.String("tok_live"))
	require.Contains(t, r.String(base64.StdEncoding.EncodeToString([]byte("x:"+secret[:len(secret)-1]))), "part of")
	require.Empty(t, r.Leaks([]byte(secret[:len(secret)-1])))
}

func TestShortSecretsAreWholeHeaderValues(t *testing.T) {
	r := NewRedactor()
	r.Add("", "$EMPTY")
	r.Add("k1", "$SHORT")
	require.Equal(t, "$SHORT", r.Header("k1"))
	require.Equal(t, "Bearer $SHORT", r.Header("Bearer k1"))
	require.Equal(t, "Basic $SHORT", r.Header("Basic "+base64.StdEncoding.EncodeToString([]byte("me:k1"))))
	require.Equal(t, "Basic $SHORT", r.Header("Basic "+base64.StdEncoding.EncodeToString([]byte("k1:"))))
	require.Equal(t, "k11", r.Header("k11"))
	require.Equal(t, "a k1 b", r.String("a k1 b"))
}

func TestOverlappingSecrets(t *testing.T) {
	r := NewRedactor()
	r.Add("abcdefgh", "$A")
	r.Add("efghijklmnop", "$B")
	r.Add("DESTKIT", "$C") // does not find the placeholders
	require.Equal(t, "1 $B 2", r.String("1 abcdefghijklmnop 2"))
	require.Equal(t, "${A}$B", r.String("abcdefghefghijklmnop"))
	require.Equal(t, "$A", r.String("abcdefgh"))
}

func TestRevealPutsSecretsBack(t *testing.T) {
	r := NewRedactor()
	r.Add("the-token-1", "$DESTKIT_TOKEN")
	r.Add("the-other-2", "$DESTKIT_TOKEN_OLD")
	for _, text := range []string{"Bearer the-token-1", "the-token-1x the-other-2 the-other-2y", "nothing"} {
		require.Equal(t, text, r.Reveal(r.String(text)))
	}
}

func TestSecretAcrossTheCut(t *testing.T) {
	r := NewRedactor()
	r.Add("secret-secret", "$S")
	text := strings.Repeat("x", 95) + "-secret-secret-" + strings.Repeat("y", 50)
	for limit := range len(text) {
		got := string(r.cut([]byte(text), limit))
		if limit < len(text) && limit > 96 && limit < 109 {
			require.Equal(t, strings.Repeat("x", 95)+"-$S", got)
		}
		require.NotContains(t, got, "secret")
	}
}

func FuzzRedact(f *testing.F) {
	for _, coded := range encodings(secretsOfAllKinds[1]) {
		f.Add("a", coded, "b")
	}
	f.Add(`\u00`, `%`, `&#`)
	r := NewRedactor()
	for i, secret := range secretsOfAllKinds {
		r.Add(secret, fmt.Sprintf("$SECRET_%d", i))
	}
	f.Fuzz(func(t *testing.T, before, middle, after string) {
		got := r.String(before + secretsOfAllKinds[0] + middle + secretsOfAllKinds[3] + after)
		require.NotContains(t, got, secretsOfAllKinds[0])
		require.NotContains(t, got, secretsOfAllKinds[3])
	})
}
