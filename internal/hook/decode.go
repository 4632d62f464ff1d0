package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/rawjson"
)

// answer is the reply of a hook, taken apart: its members, or the items of a bare
// array. Values go through restore before they are shown or compared.
type answer struct {
	members map[string]json.RawMessage
	items   json.RawMessage
	restore func(json.RawMessage) json.RawMessage
}

// decodeReply decodes one JSON value. Names are compared exactly, a name
// that occurs twice is an error, unknown names are kept.
func decodeReply(name string, reply []byte) (answer, error) {
	notJSON := func(message string, err error) *Error {
		return &Error{Kind: KindNotJSON, Hook: name, Message: message, Detail: bounded(string(clip(reply))), Err: err, Fix: wanted(name)}
	}
	reply = bytes.TrimPrefix(reply, byteOrderMark)
	if len(bytes.TrimSpace(reply)) == 0 {
		return answer{}, notJSON("answered nothing", nil)
	}
	if !utf8.Valid(reply) {
		return answer{}, notJSON("answered text that is not UTF-8", nil)
	}
	text, restore := stash(reply)
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return answer{}, notJSON("did not answer one JSON value", err)
	}
	if kind(whole) == "an array" {
		return answer{items: whole, restore: restore}, nil
	}
	members, err := decodeObject(whole)
	if err != nil {
		return answer{}, shape(name, "reply", err.Error())
	}
	return answer{members: members, restore: restore}, nil
}

// decodeObject splits valid JSON text of an object into its members.
func decodeObject(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if kind(raw) != "an object" {
		return nil, fmt.Errorf("is %s, not an object", kind(raw))
	}
	members := map[string]json.RawMessage{}
	walk, _ := rawjson.WalkObject(raw)
	for key, value, ok := walk.Next(); ok; key, value, ok = walk.Next() {
		if _, twice := members[string(key)]; twice {
			return nil, fmt.Errorf("has the member %q twice", key)
		}
		members[string(key)] = value
	}
	return members, nil
}

// decodeBool and its like read one member; the error goes on after its path.
func decodeBool(raw json.RawMessage) (bool, error) {
	switch string(bytes.TrimSpace(raw)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("is %s, not a boolean", kind(raw))
}

func decodeString(raw json.RawMessage) (string, error) {
	if kind(raw) != "a string" {
		return "", fmt.Errorf("is %s, not a string", kind(raw))
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}

// kind names the JSON type of valid JSON text.
func kind(raw json.RawMessage) string {
	return strings.Replace(rawjson.Described(raw), "absent", "missing", 1)
}

// value is an identifier made comparable: the decoded text of a string, the
// literal of anything else.
type value struct {
	text  string
	quote bool
}

// valueOf makes escapes alike and nothing else: no case, no normalisation, no
// rounding, since that is what checks are about.
func valueOf(raw json.RawMessage) value {
	return value{text: plainText(raw), quote: kind(raw) == "a string"}
}

// Tolerated slips of hooks. An author writes a hook in an hour, in any
// language, and its slips must not cost the verdict; but nothing is tolerated
// that could make an absent record look present or hide a second copy.

// byteOrderMark is what some editors and languages put before a text.
var byteOrderMark = []byte("\xef\xbb\xbf")

// numbersOfPython are the floats that Python's json module writes although JSON
// has no word for them (json.dumps(1e400) is Infinity).
var numbersOfPython = [][]byte{[]byte("-Infinity"), []byte("Infinity"), []byte("NaN")}

// stash puts strings in the place of those words, so that the rest can be read
// as JSON, and returns what puts them back. The words that come back are no
// JSON: a value with one of them is equal to nothing that could have been sent,
// not even to the string "NaN".
func stash(reply []byte) (text []byte, restore func(json.RawMessage) json.RawMessage) {
	marker := "destkit"
	for bytes.Contains(reply, []byte(marker)) {
		marker += "."
	}
	found := false
	for at := 0; at < len(reply); {
		end := at + 1
		if reply[at] == '"' {
			end = endOfString(reply, at)
		} else if word := wordAt(reply, at); word != nil {
			found = true
			text = append(text, '"')
			text = append(append(text, marker...), word...)
			text = append(text, '"')
			at += len(word)
			continue
		}
		text = append(text, reply[at:end]...)
		at = end
	}
	if !found {
		return reply, func(raw json.RawMessage) json.RawMessage { return raw }
	}
	return text, func(raw json.RawMessage) json.RawMessage {
		for _, word := range numbersOfPython {
			raw = bytes.ReplaceAll(raw, []byte(`"`+marker+string(word)+`"`), word)
		}
		return raw
	}
}

// endOfString is the place behind the string that begins at a quote.
func endOfString(text []byte, at int) int {
	for at++; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(text)
}

// wordAt is the word of Python that is alone at a place, nil when none does.
func wordAt(text []byte, at int) []byte {
	letter := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] == '_' || text[i] >= '0' && text[i] <= '9' || text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z')
	}
	for _, word := range numbersOfPython {
		if bytes.HasPrefix(text[at:], word) && !letter(at-1) && !letter(at+len(word)) {
			return word
		}
	}
	return nil
}

// exactInteger is the plain text of a number that is whole, whatever its
// notation: 42.0 and 4.2e1 are 42. Nothing is rounded, so the reply of a hook
// that has lost digits still has an unrequested key.
func exactInteger(text string) (string, bool) {
	if raw := json.RawMessage(text); kind(raw) != "a number" || !json.Valid(raw) || longExponent(text) {
		return "", false
	}
	number, ok := new(big.Rat).SetString(text)
	if !ok || !number.IsInt() {
		return "", false
	}
	return number.Num().String(), true
}

// decodeCount reads the copies of a key. Database drivers answer a count as a
// text or as a float; 0 means that the key is absent.
func decodeCount(raw json.RawMessage) (int, error) {
	const wanted = "an integer, the number of stored copies"
	text := string(bytes.TrimSpace(raw))
	switch kind(raw) {
	case "a string":
		text, _ = decodeString(raw)
	case "a number":
	default:
		return 0, fmt.Errorf("is %s, not %s", kind(raw), wanted)
	}
	whole, ok := exactInteger(text)
	count, err := strconv.Atoi(whole)
	if !ok || err != nil {
		return 0, fmt.Errorf("is %s, not %s", bounded(string(raw)), wanted)
	}
	if count < 0 {
		return 0, fmt.Errorf("is %d, less than 0", count)
	}
	return count, nil
}

// absent reports whether a member is missing or null, which many encoders
// write for absent values.
func absent(raw json.RawMessage) bool {
	return kind(raw) == "missing" || kind(raw) == "null"
}
