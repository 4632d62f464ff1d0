package destsim

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// rpcViolations are broken JSON-RPC envelopes (RPC-*).
func rpcViolations() []violation {
	all := encodingViolations()
	all = append(all, memberViolations()...)
	all = append(all, resultMemberViolations()...)
	all = append(all, errorMemberViolations()...)
	all = append(all, idViolations()...)
	return append(all, requestViolations()...)
}

// breaks is a violation that keeps no state, so that its seams can be written
// down at once.
func breaks(id, changes string, s seams, also ...Also) violation {
	return violation{Violation{ID: id, Changes: changes, Also: also}, func(*Sim) seams { return s }}
}

// keeps is a violation with state, or one that needs the simulator.
func keeps(id, changes string, arm func(s *Sim) seams) violation {
	return violation{Violation{ID: id, Changes: changes}, arm}
}

// gives reports whether a call of that method has a result. Refusals and errors
// stay clean, so that a violation of one reply does not reach another rule.
func gives(c *call, method string) bool { return c.method == method && c.err == nil }

// enveloped changes the envelope of a method's result.
func enveloped(method string, change func(e *envelope)) seams {
	return seams{envelope: func(c *call, e *envelope) {
		if gives(c, method) {
			change(e)
		}
	}}
}

// replied changes the encoded reply that carries a method's result.
func replied(method string, change func(reply []byte) []byte) seams {
	return seams{reply: func(c *call, reply []byte) []byte {
		if gives(c, method) {
			return change(reply)
		}
		return reply
	}}
}

// unknownMethod reports whether a call is answered by "method not found".
func unknownMethod(c *call) bool { return c.err != nil && c.err.Code == rpc.CodeMethodNotFound }

// encodingViolations break the body as a whole.
func encodingViolations() []violation {
	return []violation{
		breaks("RPC-001", "get_sync_speed answers status 200 with an HTML page instead of the envelope",
			replied(rpc.MethodGetSyncSpeed, func([]byte) []byte {
				return []byte("<!DOCTYPE html>\n<html><body><h1>It works!</h1></body></html>\n")
			})),
		breaks("RPC-001.2", "list_objects answers its envelope twice, one directly after the other",
			replied(rpc.MethodListObjects, func(reply []byte) []byte { return bytes.Repeat(reply, 2) })),
		breaks("RPC-001.3", `list_fields adds "é" to the label of the first field and encodes the body as Latin-1`,
			seams{
				plan: func(_ *call, value any) any {
					if v, ok := value.(fieldsResult); ok && len(v.Fields) > 0 {
						v.Fields[0].Label += "é"
					}
					return value
				},
				reply: func(c *call, reply []byte) []byte {
					if gives(c, rpc.MethodListFields) {
						return latin1(reply)
					}
					return reply
				},
			}),
		breaks("RPC-014", "get_sync_speed wraps its envelope in a one-element array",
			replied(rpc.MethodGetSyncSpeed, func(reply []byte) []byte { return append(append([]byte{'['}, reply...), ']') })),
		breaks("RPC-015", `get_sync_speed prints its "result" member twice with the same value`,
			enveloped(rpc.MethodGetSyncSpeed, func(e *envelope) { e.add("result", json.RawMessage(e.get("result"))) })),
	}
}

// latin1 gives one byte per character; what the charset lacks becomes "?".
func latin1(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if r > 0xFF {
			r = '?'
		}
		out = append(out, byte(r))
	}
	return out
}

// memberViolations drop members of the envelope, or add one too many.
func memberViolations() []violation {
	return []violation{
		breaks("RPC-005", "get_sync_speed answers {}",
			enveloped(rpc.MethodGetSyncSpeed, func(e *envelope) { e.members = nil })),
		breaks("RPC-005.2", `get_sync_speed answers only "jsonrpc" and "id"`,
			enveloped(rpc.MethodGetSyncSpeed, func(e *envelope) { e.drop("result") })),
		breaks("RPC-002", `get_sync_speed answers "jsonrpc":2.0 as a number`,
			enveloped(rpc.MethodGetSyncSpeed, func(e *envelope) { e.set("jsonrpc", json.RawMessage("2.0")) })),
		breaks("RPC-002.2", `get_sync_speed answers "jsonrpc":"1.0"`,
			enveloped(rpc.MethodGetSyncSpeed, func(e *envelope) { e.set("jsonrpc", "1.0") })),
		breaks("RPC-002.3", `the error of an unknown method lacks "jsonrpc"`,
			seams{envelope: func(c *call, e *envelope) {
				if unknownMethod(c) {
					e.drop("jsonrpc")
				}
			}}),
		breaks("RPC-004", `the error of an unknown method has "result":{} beside it`,
			seams{envelope: func(c *call, e *envelope) {
				if unknownMethod(c) {
					e.add("result", struct{}{})
				}
			}}),
		breaks("RPC-004.2", `get_sync_speed has "error":null beside its result`,
			enveloped(rpc.MethodGetSyncSpeed, func(e *envelope) { e.add("error", nil) })),
	}
}

// resultMemberViolations give the result another type than object.
func resultMemberViolations() []violation {
	speed := func(id, changes string, change func(v rpc.Speed) any) violation {
		return breaks(id, changes, seams{plan: func(_ *call, value any) any {
			if v, ok := value.(rpc.Speed); ok {
				return change(v)
			}
			return value
		}})
	}
	return []violation{
		speed("RPC-006", "get_sync_speed answers its three numbers as an array", func(v rpc.Speed) any {
			return []int64{v.MaximumBatchSize, v.MaximumParallelBatches, v.MaximumRecordsPerSecond}
		}),
		speed("RPC-006.2", "get_sync_speed answers the result as a string that holds the JSON", func(v rpc.Speed) any {
			return string(encode(v))
		}),
		speed("RPC-006.3", `get_sync_speed answers "result":null`, func(rpc.Speed) any { return nil }),
	}
}

// errorMemberViolations break the error of an unknown method, or give another
// answer than that error (spec 7.2.2).
func errorMemberViolations() []violation {
	failure := func(id, changes string, change func(e *rpc.Error) any) violation {
		return breaks(id, changes, seams{failure: func(c *call, e any) any {
			if unknownMethod(c) {
				return change(c.err)
			}
			return e
		}})
	}
	type coded struct {
		Code    any    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	return []violation{
		failure("RPC-007", "the error of an unknown method is a string", func(e *rpc.Error) any { return e.Message }),
		failure("RPC-007.2", `the error of an unknown method has the code "-32601" as a string`, func(e *rpc.Error) any {
			return coded{"-32601", e.Message}
		}),
		failure("RPC-007.3", "the error of an unknown method has no message", func(e *rpc.Error) any {
			return coded{Code: e.Code}
		}),
		failure("RPC-009", "an unknown method has the code -32000", func(e *rpc.Error) any {
			return coded{rpc.CodeServerError, e.Message}
		}),
		breaks("RPC-008", `an unknown method is answered by "result":{"success":false}`,
			seams{answered: func(c *call) {
				if unknownMethod(c) {
					c.answer(connectionResult{})
				}
			}}),
		breaks("RPC-008.2", "an unknown method is answered by status 500 and an HTML page",
			seams{write: func(c *call, h *httpReply) {
				if unknownMethod(c) {
					h.status, h.body = 500, []byte("<html><body><h1>Internal Server Error</h1></body></html>\n")
					h.set("Content-Type", "text/html; charset=utf-8")
				}
			}}),
	}
}

// numberText is what some servers take for a number when it stands in a string.
var numberText = regexp.MustCompile(`^-?\d+(\.\d+)?([eE][+-]?\d+)?$`)

// idViolations change the id of the replies of test_connection (RPC-003).
func idViolations() []violation {
	id := func(name, changes string, change func(id string) any) violation {
		return breaks(name, changes, seams{envelope: func(c *call, e *envelope) {
			if !gives(c, rpc.MethodTestConnection) {
				return
			}
			text, err := rawjson.StringText(c.id)
			if err != nil {
				return // not a string: the service sends none of those
			}
			if changed := change(text); changed != text {
				e.set("id", changed) // an id that stays keeps its escapes
			}
		}})
	}
	return []violation{
		id("RPC-003", `test_connection always answers the id "1"`, func(string) any { return "1" }),
		id("RPC-003.2", `test_connection answers an id that is the text of a number ("007", "1e3") as a number`, func(id string) any {
			if n, err := strconv.ParseFloat(id, 64); err == nil && numberText.MatchString(id) {
				return n
			}
			return id
		}),
		id("RPC-003.3", "test_connection trims spaces from the id", func(id string) any { return strings.TrimSpace(id) }),
		id("RPC-003.4", "test_connection cuts the id after 255 characters", func(id string) any {
			if utf8.RuneCountInString(id) > 255 {
				return string([]rune(id)[:255])
			}
			return id
		}),
		id("RPC-003.5", "test_connection answers the id in the Unicode form NFC", func(id string) any { return norm.NFC.String(id) }),
	}
}
