package mapping

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

// Cast brings a value of a source row or of a template to one of the seven
// types of the wire in the form that JSON marshals: bool, string, or
// json.Number with every digit kept, nil for nil, and []any of these for array.
//
// Values are nil, bool, the integer and float types, *big.Int, json.Number,
// string, []byte, time.Time, []any and map[string]any. A cast that would lose
// information fails with the loss: nothing is rounded, cut or guessed.
func Cast(value any, fieldType string, array bool) (any, error) {
	if value == nil {
		return nil, nil
	}
	if !array {
		return castOne(value, fieldType)
	}
	items, ok := value.([]any)
	if !ok {
		// Sources without arrays keep them as JSON text.
		source, isText := value.(string)
		decoded, err := decodeValue([]byte(source))
		if items, ok = decoded.([]any); !isText || err != nil || !ok {
			return nil, fmt.Errorf("cast to array: %s is not an array", describe(value))
		}
	}
	out := make([]any, len(items))
	for i, item := range items {
		var err error
		if out[i], err = Cast(item, fieldType, false); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return out, nil
}

// castOne casts a value that is no list. The type is one of the wire's seven; a
// field of another type was refused when the sync was configured.
func castOne(value any, fieldType string) (any, error) {
	var out any
	var err error
	switch fieldType {
	case api.TypeString:
		out, err = castString(value)
	case api.TypeBoolean:
		out, err = castBoolean(value)
	case api.TypeInteger, api.TypeFloat, api.TypeDecimal:
		out, err = castNumber(value, fieldType)
	case api.TypeDate, api.TypeDateTime:
		out, err = castTime(value, fieldType)
	default:
		err = fmt.Errorf("unknown type %q", foreign.Clip(fieldType, 80))
	}
	if err != nil {
		return nil, fmt.Errorf("cast to %s: %w", fieldType, err)
	}
	return out, nil
}

// decodeValue reads one JSON value and keeps the digits of its numbers.
func decodeValue(data []byte) (any, error) {
	if bytes.Contains(data, lostByte) {
		return nil, errNotUTF8
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode value: %w", err)
	}
	// Text after the value would be lost silently.
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode value: more than one value")
	}
	return value, nil
}

// castString writes any value as text: times in the form of the wire, arrays
// and objects as JSON, bytes as they are when they are UTF-8 and as base64
// otherwise.
func castString(value any) (any, error) {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return nil, errNotUTF8
		}
		return v, nil
	case []byte:
		// Bytes of a text column in another encoding are no text for the wire.
		if utf8.Valid(v) {
			return string(v), nil
		}
		return base64.StdEncoding.EncodeToString(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case time.Time:
		return formatMoment(v), nil
	case []any, map[string]any:
		text, err := marshalPlain(v)
		return string(text), err
	}
	// Numbers without an exponent, so that a text field shows what the source
	// shows.
	digits, err := decimalText(value)
	return digits, err
}

// marshalPlain writes JSON without escaping HTML.
func marshalPlain(value any) ([]byte, error) {
	text, err := rawjson.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return text, nil
}

// castBoolean takes true and false, their words in any case, and 1 and 0.
func castBoolean(value any) (any, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "t", "1":
			return true, nil
		case "false", "f", "0":
			return false, nil
		}
	default:
		// Databases without booleans keep them as 1 and 0.
		if digits, err := decimalText(value); err == nil {
			switch digits {
			case "1":
				return true, nil
			case "0":
				return false, nil
			}
		}
	}
	return nil, fmt.Errorf("%s is neither true nor false", describe(value))
}

// describe names a value in a message without repeating all of it.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(foreign.Clip(v, 80))
	case []byte:
		return fmt.Sprintf("a value of %d bytes", len(v))
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	case time.Time:
		return formatMoment(v)
	}
	return foreign.Clip(fmt.Sprint(value), 80)
}
