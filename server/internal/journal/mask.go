package journal

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/internal/store"
)

// hidden replaces every secret.
const hidden = "[hidden]"

// shortestSecret is the length in bytes below which a value is not looked for
// in other places: three letters are found in any text.
const shortestSecret = 4

// secretKeys are the keys whose strings and numbers, at any depth below, are
// secret in requests and replies. Keys are compared without regard to case, as
// the decoder does.
var secretKeys = []string{
	"credentials", "webhook_url", "endpoint", "auth_token", "token", "access_token", "refresh_token",
	"personal_access_token", "workspace_api_key", "api_key", "password", "passphrase", "secret",
	"client_secret", "private_key", "service_account_key", "custom_headers", "authorization", "uri", "authorize_url",
}

// harmlessKeys are the credentials that are no secret; a key further down can
// be secret again.
var harmlessKeys = []string{
	"api_version", "host", "port", "database", "schema", "sslmode", "path", "format",
	"rows", "seed", "columns", "account", "warehouse", "project_id", "is_secret",
}

// SecretKey reports whether the value of a key is secret in requests and replies.
func SecretKey(key string) bool { return slices.Contains(secretKeys, strings.ToLower(key)) }

// secretHints are parts of the secret keys. A text without any of them, without
// a known secret and without an escape needs no walk.
var secretHints = [][]byte{
	[]byte("credential"), []byte("webhook_url"), []byte("endpoint"), []byte("token"), []byte("pass"),
	[]byte("secret"), []byte("_key"), []byte("custom_headers"), []byte("uthorization"), []byte(`"uri"`), []byte("authorize_url"),
}

// Masks removes secrets from the journal and the log.
type Masks struct {
	known    []string
	learning bool
}

// Know adds a secret, and its escaped form, to those that are looked for.
func (m *Masks) Know(secret string) {
	if len(secret) < shortestSecret || slices.Contains(m.known, secret) {
		return
	}
	m.known = append(m.known, secret)
	for _, escaped := range []string{url.QueryEscape(secret), url.PathEscape(secret)} {
		if !slices.Contains(m.known, escaped) {
			m.known = append(m.known, escaped)
		}
	}
	// A long secret may hold a shorter one; it goes first.
	slices.SortStableFunc(m.known, func(a, b string) int { return len(b) - len(a) })
}

// learn makes every secret of a body known.
func (m *Masks) learn(body []byte) {
	if !suspicious(body, true) || !json.Valid(body) {
		return
	}
	m.learning = true
	m.walk(body)
	m.learning = false
}

// body is a JSON text without secrets; nil when it is none or too large.
// foreign text comes from a client.
func (m *Masks) body(text []byte, foreign bool) json.RawMessage {
	// Only what JSON calls space: a form feed would make a body that learn refuses
	// one that is kept.
	text = bytes.Trim(text, " \t\r\n")
	if len(text) == 0 || len(text) > maxKeptBody || foreign && !json.Valid(text) {
		return nil
	}
	if !suspicious(text, foreign) && !m.holds(text) {
		return bytes.Clone(text)
	}
	return m.walk(text)
}

// suspicious reports whether a JSON text can hold a secret key.
func suspicious(text []byte, foreign bool) bool {
	if bytes.IndexByte(text, '\\') >= 0 || bytes.Contains(text, []byte(store.WorkspaceKeyPrefix)) {
		return true
	}
	for _, hint := range secretHints {
		if bytes.Contains(text, hint) {
			return true
		}
	}
	// The decoder takes keys in any case, so a body in capitals is walked too.
	if !foreign {
		return false
	}
	low := bytes.ToLower(text)
	return slices.ContainsFunc(secretHints, func(hint []byte) bool { return bytes.Contains(low, hint) })
}

// holds reports whether a text has a known secret in plain bytes; escaped ones
// were found by suspicious.
func (m *Masks) holds(text []byte) bool {
	return slices.ContainsFunc(m.known, func(secret string) bool { return bytes.Contains(text, []byte(secret)) })
}

// Text replaces the known secrets of a text that is no JSON.
func (m *Masks) Text(text string) string {
	for _, secret := range m.known {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	for {
		// Also keys that this call has not sent: a reply can name one.
		at := strings.Index(text, store.WorkspaceKeyPrefix)
		if at < 0 {
			return text
		}
		end := at + len(store.WorkspaceKeyPrefix)
		for end < len(text) && !strings.ContainsRune(" \t\r\n\"'/&?;,<>)", rune(text[end])) {
			end++
		}
		text = text[:at] + hidden + text[end:]
	}
}

// walk copies valid JSON text and replaces the secrets in it.
func (m *Masks) walk(text []byte) []byte {
	w := &maskWalk{m: m, in: text, out: make([]byte, 0, len(text))}
	w.value(open)
	return w.out
}

// scope says which strings are secret at the current place.
type scope int

const (
	open     scope = iota // nothing special
	closed                // below a secret key
	harmless              // below a harmless key of credentials
)

// below is the scope of a key's value.
func (s scope) below(key string) scope {
	key = strings.ToLower(key)
	switch {
	case s == closed && slices.Contains(harmlessKeys, key):
		return harmless
	case s != closed && slices.Contains(secretKeys, key):
		return closed
	}
	return s
}

// maskWalk is one walk over a text. The text is valid JSON, so that the walk
// looks for the ends of things only.
type maskWalk struct {
	m   *Masks
	in  []byte
	at  int
	out []byte
}

// space copies the bytes between tokens.
func (w *maskWalk) space() {
	for w.at < len(w.in) && strings.IndexByte(" \t\r\n,:", w.in[w.at]) >= 0 {
		w.out = append(w.out, w.in[w.at])
		w.at++
	}
}

// value walks through one value in the scope of its key.
func (w *maskWalk) value(s scope) {
	w.space()
	switch w.in[w.at] {
	case '{':
		w.members('}', func() {
			key := w.token()
			w.emit(key, open)
			w.space()
			var name string
			_ = json.Unmarshal(key, &name)
			w.value(s.below(name))
		})
	case '[':
		w.members(']', func() { w.value(s) })
	default:
		w.emit(w.token(), s)
	}
}

// members walks through an object or a list.
func (w *maskWalk) members(end byte, member func()) {
	w.out = append(w.out, w.in[w.at])
	w.at++
	for {
		w.space()
		if w.in[w.at] == end {
			w.out = append(w.out, end)
			w.at++
			return
		}
		member()
	}
}

// token takes a string, number or word.
func (w *maskWalk) token() []byte {
	from := w.at
	if w.in[w.at] != '"' {
		for w.at < len(w.in) && strings.IndexByte(" \t\r\n,:]}", w.in[w.at]) < 0 {
			w.at++
		}
		return w.in[from:w.at]
	}
	for w.at++; w.in[w.at] != '"'; w.at++ {
		if w.in[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.in[from:w.at]
}

// emit writes a token or its replacement.
func (w *maskWalk) emit(token []byte, s scope) {
	// true, false and null hide nothing, and readers want to see them.
	word := token[0] == 't' || token[0] == 'f' || token[0] == 'n'
	if word {
		w.out = append(w.out, token...)
		return
	}
	plain := string(token)
	if token[0] == '"' {
		_ = json.Unmarshal(token, &plain)
	}
	if s == closed {
		if w.m.learning {
			w.m.Know(plain)
		}
		if plain == "" { // that something is empty is no secret
			w.out = append(w.out, token...)
			return
		}
		w.out = append(w.out, `"`+hidden+`"`...)
		return
	}
	if cleaned := w.m.Text(plain); cleaned != plain {
		w.out = append(w.out, quoted(cleaned)...)
		return
	}
	w.out = append(w.out, token...)
}

// quoted is a string as JSON.
func quoted(text string) []byte {
	out, err := rawjson.Encode(text)
	if err != nil {
		return []byte(`"` + hidden + `"`)
	}
	return bytes.TrimSpace(out)
}
