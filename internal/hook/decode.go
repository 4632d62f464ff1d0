package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// answer is the reply of a hook, taken apart: its members, or the items of a bare
// array. Values go through restore before they are shown or compared.
type answer struct {
	members map[string]json.RawMessage
	items   json.RawMessage
	restore func(json.RawMessage) json.RawMessage
}

// decodeReply takes one JSON value apart. Names are compared exactly, a name
// that stands twice is an error, names that mean nothing here are kept.
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
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, errors.New("has a member without a name")
		}
		if _, twice := members[key]; twice {
			return nil, fmt.Errorf("has the member %q twice", key)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		members[key] = value
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
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "missing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
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
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' {
		return value{text: string(raw)}
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return value{text: string(raw), quote: true}
	}
	// Lone surrogates all decode to U+FFFD and would be taken for one key.
	if strings.ContainsRune(text, utf8.RuneError) && bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) {
		text = string(raw)
	}
	return value{text: text, quote: true}
}
