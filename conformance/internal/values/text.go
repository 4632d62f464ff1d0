package values

import (
	"bytes"
	"encoding/json"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/internal/rawjson"
)

// Normalise brings a text into Unicode form NFC, to recognise a key that an
// endpoint has normalised.
func Normalise(s string) string { return norm.NFC.String(s) }

// Quote writes a JSON string without HTML escapes.
func Quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return json.RawMessage(`""`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Text is a JSON string decoded, and the JSON text of any other value. Halves of
// surrogate pairs stay apart.
func Text(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return string(raw)
	}
	text, _ := rawjson.Unescape(nil, raw[1:len(raw)-1])
	return string(text)
}
