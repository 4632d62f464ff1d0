package foreign

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ShortSecret is the length in bytes below which a secret is replaced only
// where it is a whole value, or follows its scheme: three letters are found in
// any text.
const ShortSecret = 4

// PlainWord reports whether a value is a word that every exchange may hold:
// hiding "true" would hide every reply.
func PlainWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "null", "none", "json", "application/json", "jsonrpc", "method", "params",
		"result", "error", "code", "data", "string", "integer", "decimal", "float", "number", "boolean",
		"date", "date_time", "object", "objects", "object_api_name", "field", "fields", "field_api_name",
		"label", "identifier", "required", "createable", "updateable", "updatable", "array",
		"record", "records", "record_results", "sync_plan", "schema", "operation", "operations", "success",
		"message", "error_message", "contact", "http", "https", "post", "close", "keep-alive", "v1", "v2",
		"test", "identity", "gzip", "insert", "update", "upsert", "delete", "append", "mirror", "test_connection",
		"list_objects", "list_fields", "supported_operations", "get_sync_speed", "sync_batch":
		return true
	}
	return false
}

// longestWord is the length in bytes of what may be a word of a text.
const longestWord = 15

// wordLike reports whether a secret may be a word that texts hold for other reasons.
func wordLike(s string) bool {
	return len(s) <= longestWord && strings.IndexFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_'
	}) < 0
}

// SecretName reports whether headers and parameters of a name usually carry a secret.
func SecretName(name string) bool { return secretName.MatchString(name) }

var secretName = regexp.MustCompile(`(?i)^(?:proxy-)?authorization$|^(?:set-)?cookie$|token|secret|api-?_?key|password|signature|credential`)

// The least length of a random text in bytes, and of one that is random whatever it is made of.
const (
	leastRandom = 10
	longRandom  = 32
)

// Random reports whether a value is so long and so mixed that it is no word, name, date or
// number, but made by a machine: only such a value of a URL is looked for in texts, for
// hiding "mode=upsert" everywhere would change what a text says (spec 5.2.3).
func Random(s string) bool {
	var signs []byte // without what joins words
	run, longest := 0, 0
	for i := range len(s) {
		if classOf(s[i]) == 0 {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
		signs = append(signs, s[i])
	}
	changes := 0
	for i := 1; i < len(signs); i++ {
		was, is := classOf(signs[i-1]), classOf(signs[i])
		if was != is && (was != 'A' || is != 'a') { // a capital begins a word
			changes++
		}
	}
	return longest >= longRandom || len(signs) >= leastRandom && 4*changes >= len(signs)
}

// classOf is the kind of a letter or digit: 'a', 'A' or '0'; 0: neither.
func classOf(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return '0'
	case c >= 'A' && c <= 'Z':
		return 'A'
	case c >= 'a' && c <= 'z':
		return 'a'
	}
	return 0
}

// urlPart is a text of a URL, as it is written or decoded.
type urlPart struct {
	text  string
	place string // URL_USER, URL_PASSWORD, URL_PATH, or QUERY_ and the name or the number of a parameter
	// secret is false for what may be in every text: neither random nor named as a secret.
	secret bool
}

func urlParts(u *url.URL) []urlPart {
	var parts []urlPart
	add := func(text, place string, secret bool) {
		if text != "" && !slices.ContainsFunc(parts, func(p urlPart) bool { return p.text == text && p.place == place }) {
			parts = append(parts, urlPart{text, place, secret})
		}
	}
	both := func(text, place string, secret bool) {
		add(text, place, secret)
		if plain, err := url.QueryUnescape(text); err == nil {
			add(plain, place, secret)
		}
	}
	password, _ := u.User.Password()
	add(password, "URL_PASSWORD", true)
	add(u.User.Username(), "URL_USER", true)
	for part := range strings.SplitSeq(u.EscapedPath(), "/") {
		if Random(part) {
			both(part, "URL_PATH", true)
		}
	}
	if u.RawQuery == "" {
		return parts
	}
	for i, part := range strings.Split(u.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if strings.Trim(value, "=") == "" { // a value without a name, which base64 may end
			name, value = strconv.Itoa(i), part
		}
		if !isPlaceholder(value) {
			both(value, "QUERY_"+VariableName(name), Random(value) || SecretName(name) && len(value) >= ShortSecret && !PlainWord(value))
		}
	}
	return parts
}

// isPlaceholder knows what a recording has in the place of a secret.
func isPlaceholder(s string) bool {
	return strings.HasPrefix(s, "$DESTKIT_") || strings.HasPrefix(s, "${DESTKIT_")
}

// URLSecrets are the texts that are secret in a URL, as they are written and decoded.
func URLSecrets(u *url.URL) []string {
	var list []string
	for _, p := range urlParts(u) {
		if p.secret {
			list = append(list, p.text)
		}
	}
	return list
}

// leastPath is the length in bytes from which path and query as a whole are in no text by chance.
const leastPath = 8

// AddURL makes the secrets of a URL known, and all beyond its host as a whole; prefix is before the
// names of their places in the placeholders, such as "$DESTKIT_".
func (r *Redactor) AddURL(u *url.URL, prefix string) {
	r.AddURLParts(u, prefix)
	if rest := u.RequestURI(); len(rest) >= leastPath {
		r.Add(rest, prefix+"URL_PATH")
	}
}

// AddURLParts is AddURL without the whole, for a URL that is shown: other values of its query are
// only known by name, so that Reveal can put them back. added is how many secrets are new.
func (r *Redactor) AddURLParts(u *url.URL, prefix string) (added int) {
	for _, p := range urlParts(u) {
		if !p.secret {
			r.add(secret{text: p.text, placeholder: prefix + p.place, named: true})
		} else if r.Add(p.text, prefix+p.place) {
			added++
		}
	}
	return added
}

// AddQuery makes the secrets in a query known, but those of one request alone; added is how many
// are new.
func (r *Redactor) AddQuery(query, prefix string) (added int) {
	for _, p := range urlParts(&url.URL{RawQuery: query}) {
		if p.secret && !OfOneRequest(strings.TrimPrefix(p.place, "QUERY_")) && r.Add(p.text, prefix+p.place) {
			added++
		}
	}
	return added
}

// OfOneRequest reports whether the values of headers and parameters of a name differ in each
// request, as a signature does: knowing one is of no use.
func OfOneRequest(name string) bool { return ofOneRequest.MatchString(name) }

var ofOneRequest = regexp.MustCompile(`(?i)(?:^|[-_])(?:sig|signature|hmac|nonce)(?:$|[-_])`)

// VariableName makes the name of a header or a parameter part of the name of a variable.
func VariableName(s string) string {
	name := []byte(strings.ToUpper(s))
	for i, b := range name {
		if (b < 'A' || b > 'Z') && (b < '0' || b > '9') {
			name[i] = '_'
		}
	}
	return string(name[:min(len(name), 40)])
}
