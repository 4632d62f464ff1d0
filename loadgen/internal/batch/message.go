package batch

import (
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/loadgen/internal/failure"
)

// Message is what the target says, or what is wrong.
func Message(kind string, raw []byte) string {
	switch kind {
	case failure.KindMissing:
		return "a record has no result"
	case failure.KindUnknown:
		return "a result is for an identifier that was not sent"
	case failure.KindRepeated:
		return "a record has more than one result"
	}
	if text := rawjson.MessageText(raw); text != "" {
		return foreign.Clip(text, failure.LongestMessage)
	}
	return "success is not true, and there is no error_message"
}
