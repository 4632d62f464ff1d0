package foreign

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
)

func TestNoSecretLeaksInAnyEncoding(t *testing.T) {
	for _, secret := range testkit.Secrets {
		r := New()
		r.Add("another-secret-entirely", "$OTHER")
		r.Add(secret, "$DESTKIT_TOKEN")
		for name, coded := range testkit.Encodings(secret) {
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
	for name, coded := range testkit.Encodings(secret) {
		if strings.HasPrefix(name, "base64 three") {
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
		coded := base64.StdEncoding.EncodeToString([]byte("Bearer " + secret))
		require.NotContains(t, r.String("x "+coded), coded)
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
	r.Add("abcd3fgh", "$A")
	r.Add("3fghijklmnop", "$B")
	r.Add("DESTKIT", "$C") // does not find the placeholders
	require.Equal(t, "1 $B 2", r.String("1 abcd3fghijklmnop 2"))
	require.Equal(t, "${A}$B", r.String("abcd3fgh3fghijklmnop"))
	require.Equal(t, "$A", r.String("abcd3fgh"))
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
	for _, coded := range testkit.Encodings(testkit.Secrets[1]) {
		f.Add("a", coded, "b")
	}
	f.Add(`\u00`, `%`, `&#`)
	r := New()
	for i, secret := range testkit.Secrets {
		r.Add(secret, fmt.Sprintf("$SECRET_%d", i))
	}
	f.Fuzz(func(t *testing.T, before, middle, after string) {
		got := r.String(before + testkit.Secrets[0] + middle + testkit.Secrets[3] + after)
		require.NotContains(t, got, testkit.Secrets[0])
		require.NotContains(t, got, testkit.Secrets[3])
	})
}

// TestHidingChangesNoProtocol: ordinary values of a URL, and secrets that are words, change no
// word and no name of what an exchange says.
func TestHidingChangesNoProtocol(t *testing.T) {
	body := `{"method":"sync_batch","operation":"upsert","object_api_name":"person","fields":["is_secret","secret_1"],"secret":"secret"}`
	u, err := url.Parse("https://h.example/hooks/Zq7RtY0pLm4Xw9Vb?mode=upsert&table=person&v=2026-11-30&x=sync_batch&key=is_secret&token=4711-4711")
	require.NoError(t, err)
	r := New()
	r.AddURL(u, "$DESTKIT_")
	require.Equal(t, body, r.String(body))
	require.Equal(t, "$DESTKIT_URL_PATH, $DESTKIT_QUERY_TOKEN", r.String("Zq7RtY0pLm4Xw9Vb, 4711-4711"))
	require.Equal(t, "mode=upsert", r.Reveal("mode=$DESTKIT_QUERY_MODE"))
	r.Add("secret", "$S")
	require.Equal(t, strings.Replace(body, `"secret"}`, `"$S"}`, 1), r.String(body))
	for _, text := range []string{"3f8a9c1e7b", "Zq7RtY0pLm4Xw9Vb", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", "eyJhbGciOiJIUzI1NiJ9"} {
		require.True(t, Random(text), text)
	}
	for _, text := range []string{"", "upsert", "eu-central-1", "2024-01-01T00:00:00Z", "20240101120000", "CustomerAccountName1", "customers_production_2024", "10.0.0.12"} {
		require.False(t, Random(text), text)
	}
}
