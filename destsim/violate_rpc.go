package destsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// envelopeViolations are broken JSON-RPC envelopes (RPC-001 to RPC-009, RPC-014,
// RPC-015).
var envelopeViolations = []violation{
	breaks("RPC-001", "get_sync_speed answers status 200 with an HTML page instead of the envelope",
		replied(speedReply, func([]byte) []byte { return []byte("<!DOCTYPE html>\n<html><body><h1>It works!</h1></body></html>\n") })),
	breaks("RPC-001.2", "list_objects answers its envelope twice, one directly after the other",
		replied(objectsReply, func(reply []byte) []byte { return bytes.Repeat(reply, 2) })),
	breaks("RPC-001.3", `list_fields adds "é" to the label of the first field and encodes the body as Latin-1`, seams{
		plan: planned(func(_ *call, v fieldsResult) any {
			if len(v.Fields) > 0 {
				v.Fields[0].Label += "é"
			}
			return v
		}).plan,
		reply: replied(giving(rpc.MethodListFields), latin1).reply,
	}),
	breaks("RPC-014", "get_sync_speed wraps its envelope in a one-element array",
		replied(speedReply, func(reply []byte) []byte { return append(append([]byte{'['}, reply...), ']') })),
	breaks("RPC-015", `get_sync_speed prints its "result" member twice with the same value`,
		enveloped(speedReply, func(e *envelope) { e.add("result", json.RawMessage(e.get("result"))) })),
	breaks("RPC-005", "get_sync_speed answers {}", enveloped(speedReply, func(e *envelope) { e.members = nil })),
	breaks("RPC-005.2", `get_sync_speed answers only "jsonrpc" and "id"`, enveloped(speedReply, func(e *envelope) { e.drop("result") })),
	breaks("RPC-002", `get_sync_speed answers "jsonrpc":2.0 as a number`,
		enveloped(speedReply, func(e *envelope) { e.set("jsonrpc", json.RawMessage("2.0")) })),
	breaks("RPC-002.2", `get_sync_speed answers "jsonrpc":"1.0"`, enveloped(speedReply, func(e *envelope) { e.set("jsonrpc", "1.0") })),
	breaks("RPC-002.3", `the error of an unknown method lacks "jsonrpc"`, enveloped(unknownMethod, func(e *envelope) { e.drop("jsonrpc") })),
	breaks("RPC-004", `the error of an unknown method has "result":{} beside it`,
		enveloped(unknownMethod, func(e *envelope) { e.add("result", struct{}{}) })),
	breaks("RPC-004.2", `get_sync_speed has "error":null beside its result`, enveloped(speedReply, func(e *envelope) { e.add("error", nil) })),

	breaks("RPC-006", "get_sync_speed answers its three numbers as an array", planned(func(_ *call, v rpc.Speed) any {
		return []int64{v.MaximumBatchSize, v.MaximumParallelBatches, v.MaximumRecordsPerSecond}
	})),
	breaks("RPC-006.2", "get_sync_speed answers the result as a string that holds the JSON",
		planned(func(_ *call, v rpc.Speed) any { return string(encode(v)) })),
	breaks("RPC-006.3", `get_sync_speed answers "result":null`, planned(func(*call, rpc.Speed) any { return nil })),

	breaks("RPC-007", "the error of an unknown method is a string", failure(func(e *rpc.Error) any { return e.Message })),
	breaks("RPC-007.2", `the error of an unknown method has the code "-32601" as a string`,
		failure(func(e *rpc.Error) any { return coded{"-32601", e.Message} })),
	breaks("RPC-007.3", "the error of an unknown method has no message", failure(func(e *rpc.Error) any { return coded{Code: e.Code} })),
	breaks("RPC-009", "an unknown method has the code -32000", failure(func(e *rpc.Error) any { return coded{rpc.CodeServerError, e.Message} })),
	breaks("RPC-008", `an unknown method is answered by "result":{"success":false}`,
		answered(unknownMethod, func(c *call) { c.answer(connectionResult{}) })),
	breaks("RPC-008.2", "an unknown method is answered by status 500 and an HTML page",
		written(unknownMethod, page(500, "text/html; charset=utf-8", "<html><body><h1>Internal Server Error</h1></body></html>\n"))),

	breaks("RPC-003", `test_connection always answers the id "1"`, answersID(func(string) any { return "1" })),
	breaks("RPC-003.2", `test_connection answers an id that is the text of a number ("007", "1e3") as a number`, answersID(func(id string) any {
		if n, err := strconv.ParseFloat(id, 64); err == nil && numberText.MatchString(id) {
			return n
		}
		return id
	})),
	breaks("RPC-003.3", "test_connection trims spaces from the id", answersID(func(id string) any { return strings.TrimSpace(id) })),
	breaks("RPC-003.4", "test_connection cuts the id after 255 characters", answersID(func(id string) any {
		if utf8.RuneCountInString(id) > 255 {
			return string([]rune(id)[:255])
		}
		return id
	})),
	breaks("RPC-003.5", "test_connection answers the id in the Unicode form NFC", answersID(func(id string) any { return norm.NFC.String(id) })),
}

// latin1 gives one byte per character; characters outside the charset become "?".
func latin1(text []byte) (out []byte) {
	for _, r := range string(text) {
		if r > 0xFF {
			r = '?'
		}
		out = append(out, byte(r))
	}
	return out
}

// failure gives another error object for an unknown method.
func failure(change func(e *rpc.Error) any) seams {
	return seams{envelope: func(c *call, e *envelope) {
		if unknownMethod(c) {
			e.set("error", change(c.err))
		}
	}}
}

// coded is an error object with a code of any type.
type coded struct {
	Code    any    `json:"code"`
	Message string `json:"message,omitempty"`
}

// numberText is what some servers take for a number when it is in a string.
var numberText = regexp.MustCompile(`^-?\d+(\.\d+)?([eE][+-]?\d+)?$`)

// answersID changes the id of the replies of test_connection, where it is a string: the
// service sends none other.
func answersID(change func(id string) any) seams {
	return enveloped(giving(rpc.MethodTestConnection), func(e *envelope) {
		text, err := rawjson.StringText(e.get("id"))
		if changed := change(text); err == nil && changed != text {
			e.set("id", changed) // an id that stays keeps its escapes
		}
	})
}

// requestViolations are requests that are read too leniently, too strictly or
// not at all (RPC-010 to RPC-013, RPC-016, RPC-019).
var requestViolations = []violation{
	breaks("RPC-010", "a body that ends in the middle of the JSON is never answered", written(endsEarly, func(c *call, h *httpReply) {
		c.sleep(c.sim.delays.Hang)
		h.raw = []byte{}
	})),
	breaks("RPC-010.2", "a body that ends in the middle of the JSON is answered like test_connection, with a null id",
		called(endsEarly, testConnection)),
	breaks("RPC-010.3", "a body that ends in the middle of the JSON closes the connection without a response",
		written(endsEarly, unanswered)),
	breaks("RPC-011", "a body without a method is answered like test_connection",
		called(func(c *call) bool { return c.err != nil && c.err.Code == rpc.CodeInvalidRequest && lacksMethod(c.body) }, testConnection)),
	breaks("RPC-012", `list_fields without an object answers "fields":[]`,
		called(func(c *call) bool { return gives(c, rpc.MethodListFields) && lacksObject(c) },
			func(c *call) { c.answer(fieldsResult{[]rpc.Field{}}) })),
	breaks("RPC-012.2", "list_fields without an object closes the connection without a response",
		written(func(c *call) bool { return wrongParams(c, rpc.MethodListFields) && lacksObject(c) }, unanswered)),
	breaks("RPC-013", "list_objects with an unknown member in params or beside it answers an error -32602",
		called(func(c *call) bool {
			return gives(c, rpc.MethodListObjects) && (len(membersOf(c.params)) > 0 || hasUnknownMember(c.body))
		}, func(c *call) { c.fail(rpc.CodeInvalidParams, "invalid params: unknown member") })),
	breaks("RPC-016", "list_objects is unknown when key order, spaces or escapes of the request are not the published ones",
		called(func(c *call) bool { return gives(c, rpc.MethodListObjects) && !publishedForm(c) },
			func(c *call) { c.fail(rpc.CodeMethodNotFound, "method not found") })),
	breaks("RPC-019", "the method name is folded to lower case before it is looked up",
		called(func(c *call) bool { return c.err == nil }, func(c *call) { c.method = strings.ToLower(c.method) })),
}

// testConnection goes on as if test_connection had been called.
func testConnection(c *call) {
	c.method, c.params, c.err = rpc.MethodTestConnection, []byte("{}"), nil
}

// unanswered closes the connection without a byte.
func unanswered(_ *call, h *httpReply) { h.raw = []byte{} }

// endsEarly reports whether the body is the beginning of a JSON text and the
// caller was allowed to send it.
func endsEarly(c *call) bool {
	if c.err == nil || c.err.Code != rpc.CodeParseError || c.status != 200 || len(bytes.TrimSpace(c.body)) == 0 {
		return false
	}
	var v any
	return errors.Is(json.NewDecoder(bytes.NewReader(c.body)).Decode(&v), io.ErrUnexpectedEOF)
}

// wrongParams reports whether a call of that method is refused for its params.
func wrongParams(c *call, method string) bool {
	return c.method == method && c.err != nil && c.err.Code == rpc.CodeInvalidParams
}

// membersOf decodes an object, nil when it is none.
func membersOf(raw []byte) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

func lacksObject(c *call) bool { return membersOf(c.params)["object"] == nil }

func lacksMethod(body []byte) bool {
	members := membersOf(body)
	return members != nil && members["method"] == nil
}

func hasUnknownMember(body []byte) bool {
	members := membersOf(body)
	for _, name := range []string{"jsonrpc", "method", "params", "id"} {
		delete(members, name)
	}
	return len(members) > 0
}

// publishedForm reports whether the body begins with the four members in the
// published order and has neither spaces nor escapes in them, which is all
// that a search for a pattern would find.
func publishedForm(c *call) bool {
	var compact bytes.Buffer
	if json.Compact(&compact, c.body) != nil || !bytes.Equal(compact.Bytes(), c.body) {
		return false
	}
	published := `{"jsonrpc":"2.0","method":"` + c.method + `","params":` + string(c.params)
	if c.id != nil {
		published += `,"id":` + string(c.id)
	}
	rest, ok := bytes.CutPrefix(c.body, []byte(published))
	return ok && len(rest) > 0 && (rest[0] == ',' || rest[0] == '}')
}

const (
	// traceback is what ERR-003 appends to a message.
	traceback = "\nTraceback (most recent call last):\n" +
		"  File \"/srv/app/main.py\", line 7, in list_fields\n" +
		"    return FIELDS[name]\nKeyError: name"
	// goneAfter is what both ways of ERR-006 do.
	goneAfter = " every call is reset without a response for Delays.Down, that first one included"
)

// errorsViolations are faults that are hidden, harm the next call, or are
// reported in a wrong way (ERR-*).
var errorsViolations = []violation{
	breaks("ERR-001", "while the downstream is broken sync_batch acknowledges every record and writes nothing", batched(func(c *call, b *batch) {
		if c.sim.broken.Load() {
			b.acknowledge()
		}
	})),
	breaks("ERR-005", "while the downstream is broken list_objects takes Delays.Retry",
		called(func(c *call) bool { return gives(c, rpc.MethodListObjects) && c.sim.broken.Load() },
			func(c *call) { c.sleep(c.sim.delays.Retry) })),
	breaks("ERR-003", "the message of list_fields for an unknown object is followed by a traceback",
		tells(func(message string) string { return message + traceback })),
	breaks("ERR-004", "the message of list_fields for an unknown object is 1 MB long",
		tells(func(message string) string { return (message + strings.Repeat(" and so on", 1<<20/10))[:1<<20] })),
	breaks("ERR-004.2", "the message of list_fields for an unknown object is empty", tells(func(string) string { return "" })),

	keeps("ERR-002", "after a body that is no JSON text at all the next list_objects on the same connection is not answered until its caller has gone", func() seams {
		var known connections
		return seams{
			parsed: func(c *call) {
				if at := known.of(c); at.spoiled != nil && gives(c, rpc.MethodListObjects) {
					at.spoiled = nil
					c.hang()
				}
			},
			reply: known.spoil,
		}
	}),
	keeps("ERR-002.2", "after a body that is no JSON text at all the next call on the same connection is answered by the parse error of the bad one", func() seams {
		var known connections
		return seams{reply: func(c *call, reply []byte) []byte {
			if at := known.of(c); at.spoiled != nil && !c.garbled() {
				reply, at.spoiled = at.spoiled, nil
				return reply
			}
			return known.spoil(c, reply)
		}}
	}),
	counts("ERR-007", "every third supported_operations is answered by 503 without a body", func(next func() int64) seams {
		return written(giving(rpc.MethodSupportedOperations), func(_ *call, h *httpReply) {
			if next()%3 == 0 {
				h.status, h.body = http.StatusServiceUnavailable, nil
			}
		})
	}),
	keeps("ERR-006", "after a request body that is no JSON text at all"+goneAfter, func() seams {
		var p process
		return seams{http: p.refuses, parsed: called((*call).garbled, p.end).parsed}
	}),
	keeps("ERR-006.2", "after a batch with U+0000 in a string field"+goneAfter, func() seams {
		var p process
		ends := batched(func(c *call, b *batch) {
			if b.carries(rpc.TypeString, holds("\x00")) {
				p.end(c)
			}
		})
		ends.http = p.refuses
		return ends
	}),
}

// tells changes the message of list_fields for an unknown object.
func tells(change func(message string) string) seams {
	return seams{answered: func(c *call) {
		if _, problem := objectName(c.params); problem == "" && wrongParams(c, rpc.MethodListFields) {
			c.err = &rpc.Error{Code: c.err.Code, Message: change(c.err.Message)}
		}
	}}
}

// garbled reports whether the body is not even the beginning of an object or
// array, and the caller was allowed to send it.
func (c *call) garbled() bool {
	text := bytes.TrimSpace(c.body)
	return c.err != nil && c.err.Code == rpc.CodeParseError && len(text) > 0 && text[0] != '{' && text[0] != '['
}

// spoil keeps the reply to a garbled body with its connection.
func (k *connections) spoil(c *call, reply []byte) []byte {
	if c.garbled() {
		k.of(c).spoiled = bytes.Clone(reply)
	}
	return reply
}

// process is one that may be gone for a while.
type process struct {
	back atomic.Int64 // when it is there again, in nanoseconds of the clock
}

// end takes the process away from now on.
func (p *process) end(c *call) {
	p.back.Store(c.sim.clock().Add(c.sim.delays.Down).UnixNano())
	c.reset()
}

// refuses resets a call while the process is gone.
func (p *process) refuses(c *call) bool {
	if c.sim.clock().UnixNano() >= p.back.Load() {
		return false
	}
	c.reset()
	return true
}
