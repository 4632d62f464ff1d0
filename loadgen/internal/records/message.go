package records

import (
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Message is what the target says, or what is wrong.
func Message(kind string, raw []byte) string {
	switch kind {
	case wire.KindMissing:
		return "a record has no result"
	case wire.KindUnknown:
		return "a result is for an identifier that was not sent"
	case wire.KindRepeated:
		return "a record has more than one result"
	}
	if text := rawjson.MessageText(raw); text != "" {
		return foreign.Clip(text, wire.LongestMessage)
	}
	return "success is not true, and there is no error_message"
}
