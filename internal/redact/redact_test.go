package redact

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"mime/quotedprintable"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

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
	for name, coded := range moreEncodings(secret) {
		all[name] = coded
	}
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
	var bytewise []string
	for _, c := range raw {
		bytewise = append(bytewise, fmt.Sprintf("%02x", c))
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
		"list of bytes":          fmt.Sprint(raw),
		"list with commas":       strings.Join(strings.Fields(strings.Trim(fmt.Sprint(raw), "[]")), ","),
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
		all["rot13"] = string(rot13([]byte(strings.ToLower(secret))))
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
		r := New()
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
	r := New()
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

// A text that was shortened holds the beginning of a secret, in whatever encoding:
// nothing of it stays that is long enough to be of use.
func TestWhatACutHasLeftOfASecret(t *testing.T) {
	secret := "tok_live-abcdefghijklmnop"
	r := New()
	r.Add(secret, "$DESTKIT_TOKEN")
	for name, coded := range encodings(secret) {
		if name == "backwards" || name == "rot13" || strings.HasPrefix(name, "base32") || strings.HasPrefix(name, "base64 three") {
			continue // puzzles are looked for whole
		}
		for n := range len(coded) {
			if !utf8.ValidString(coded[:n]) || n <= len(coded)*2/3 {
				continue
			}
			for _, mark := range []string{"…", " …", `"…`} {
				got := r.String("it said: " + coded[:n] + mark + " and more")
				require.NotContains(t, got, coded[:n], "%s, %d of %d", name, n, len(coded))
			}
		}
	}
	require.Equal(t, "Bearer [part of $DESTKIT_TOKEN]… (8 more)", r.String("Bearer tok_… (8 more)"))
	require.Equal(t, "Bearer tok… (9 more)", r.String("Bearer tok… (9 more)"), "three letters tell nothing")
}

// A secret that is too short, or a word of the protocol, is hidden where it can be
// nothing else.
func TestShortSecretAfterItsScheme(t *testing.T) {
	for _, secret := range []string{"k1", "test"} {
		r := New()
		r.Add(secret, "$SHORT")
		require.Equal(t, "got Bearer $SHORT, no", r.String("got Bearer "+secret+", no"))
		require.Equal(t, "got bearer%20$SHORT", r.String("got bearer%20"+secret))
		require.Equal(t, "$SHORT", r.String(secret))
		require.NotContains(t, r.String("x "+base64.StdEncoding.EncodeToString([]byte("Bearer "+secret))), "=")
		require.Equal(t, "a "+secret+"_connection", r.String("a "+secret+"_connection"))
		require.Equal(t, "the bearer "+secret+"s", r.String("the bearer "+secret+"s"))
	}
}

func TestShortSecretsAreWholeHeaderValues(t *testing.T) {
	r := New()
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
	r := New()
	r.Add("abcdefgh", "$A")
	r.Add("efghijklmnop", "$B")
	r.Add("DESTKIT", "$C") // does not find the placeholders
	require.Equal(t, "1 $B 2", r.String("1 abcdefghijklmnop 2"))
	require.Equal(t, "${A}$B", r.String("abcdefghefghijklmnop"))
	require.Equal(t, "$A", r.String("abcdefgh"))
}

func TestRevealPutsSecretsBack(t *testing.T) {
	r := New()
	r.Add("the-token-1", "$DESTKIT_TOKEN")
	r.Add("the-other-2", "$DESTKIT_TOKEN_OLD")
	for _, text := range []string{"Bearer the-token-1", "the-token-1x the-other-2 the-other-2y", "nothing"} {
		require.Equal(t, text, r.Reveal(r.String(text)))
	}
}

func TestSecretAcrossTheCut(t *testing.T) {
	r := New()
	r.Add("secret-secret", "$S")
	text := strings.Repeat("x", 95) + "-secret-secret-" + strings.Repeat("y", 50)
	for limit := range len(text) {
		got := string(r.Cut([]byte(text), limit))
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
	r := New()
	for i, secret := range secretsOfAllKinds {
		r.Add(secret, fmt.Sprintf("$SECRET_%d", i))
	}
	f.Fuzz(func(t *testing.T, before, middle, after string) {
		got := r.String(before + secretsOfAllKinds[0] + middle + secretsOfAllKinds[3] + after)
		require.NotContains(t, got, secretsOfAllKinds[0])
		require.NotContains(t, got, secretsOfAllKinds[3])
	})
}
