package strictjson

import (
	"bytes"
	"encoding/json"
)

// TypeOf is the name of the type of one JSON value, identified by its first byte.
func TypeOf(value json.RawMessage) string {
	switch value = bytes.TrimSpace(value); value[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
