package mapping

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/destkit/destkit/internal/rawjson"
)

// Arrays and texts of JSON, taken apart and written without decoding them.

var errArray = errors.New("the array is not valid JSON")

// appendArray writes an array item by item; text that holds an array as JSON is
// one too.
func appendArray(dst, raw []byte, w wire) ([]byte, error) {
	switch {
	case isNullText(raw):
		return append(dst, nullText...), nil
	case raw[0] != '[' || w == wireAny:
		return castSlowly(dst, raw, w, w != wireAny)
	}
	dst = append(dst, '[')
	at, more, fault := rawjson.FirstElement(raw, 0)
	for n := 0; more && fault == rawjson.FaultNone; n++ {
		end, broken := rawjson.SkipValue(raw, at, 0)
		if broken != rawjson.FaultNone {
			return dst, errArray
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendScalar(dst, raw[at:end], w, false); err != nil {
			return dst, fmt.Errorf("item %d: %w", n, err)
		}
		at, more, fault = rawjson.NextElement(raw, end)
	}
	if fault != rawjson.FaultNone {
		return dst, errArray
	}
	return append(dst, ']'), nil
}

// AppendCanonical appends a JSON value of an identifier in the one form that
// keys have: strings with the fewest escapes, everything else unchanged.
// Identifiers from a destination are converted before a comparison with a key.
func AppendCanonical(dst, raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' || bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw...)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return append(dst, raw...)
	}
	return rawjson.AppendString(dst, text)
}
