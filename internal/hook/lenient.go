package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// What hooks are forgiven. An author writes a hook in an hour, in any language,
// and its slips must not cost the verdict; but nothing is forgiven that could
// make an absent record look present or hide a second copy.

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

// wordAt is the word of Python that stands alone at a place, nil when none does.
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
// notation: 42.0 and 4.2e1 are 42. Nothing is rounded, so that a hook that has
// lost digits still answers a key that was not asked for.
func exactInteger(text string) (string, bool) {
	if raw := json.RawMessage(text); kind(raw) != "a number" || !json.Valid(raw) {
		return "", false
	}
	_, exponent, has := strings.Cut(strings.ToLower(text), "e")
	if n, err := strconv.Atoi(exponent); has && (err != nil || n > 400 || n < -400) {
		return "", false
	}
	number, ok := new(big.Rat).SetString(text)
	if !ok || !number.IsInt() {
		return "", false
	}
	return number.Num().String(), true
}

// decodeCount reads the copies of a key. Database drivers answer a count as a
// text or as a float; 0 says that the key is absent.
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
// write for what they have not got.
func absent(raw json.RawMessage) bool {
	return kind(raw) == "missing" || kind(raw) == "null"
}
