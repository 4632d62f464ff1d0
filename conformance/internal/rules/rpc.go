package rules

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/openapi"
)

// rpcGroup judges the envelopes of JSON-RPC (spec 4.2).
func rpcGroup(g ruleset) map[string]Claim {
	g.on(answers, "RPC-017")
	g.on(called, "RPC-001", "RPC-002", "RPC-004", "RPC-005", "RPC-006", "RPC-007", "RPC-014", "RPC-015")
	g.on(func(c *Call) bool {
		// A library that could not read a request outside the schema answers with a null id.
		unread := c.IsError() && c.Member("id").Is(wire.Null)
		return good(c) && (!unread || c.known() && openapi.ValidateParams(c.Method, Sample(c.params.Raw)) == nil) ||
			answers(c) && c.form == badParams && !unread
	}, "RPC-003")
	unknown := func(c *Call) bool { return good(c) && c.unknown() }
	g.onTraffic(func(t *Traffic, c *Call) bool { return unknown(c) || t.strange.pages(c) }, "RPC-008")
	g.on(func(c *Call) bool { return unknown(c) && ordinaryName.MatchString(c.Method) }, "RPC-009")
	g.on(func(c *Call) bool { return good(c) && c.almostKnown() }, "RPC-019")
	g.on(func(c *Call) bool { return answers(c) && c.form == noJSON && c.badBody }, "RPC-010")
	g.on(func(c *Call) bool {
		return answers(c) && c.form == noEnvelope && (!c.request.Get("method").Is(wire.String) || c.Method != "")
	}, "RPC-011")
	g.on(func(c *Call) bool { return answers(c) && c.form == badParams && c.known() }, "RPC-012")
	g.on(func(c *Call) bool { return answers(c) && (c.form == notObject || c.form == noID) }, "RPC-018")
	return map[string]Claim{
		"every reply is one JSON value in UTF-8": oneJSONValue,
		"every reply is an object": someCame(expects("a JSON object",
			func(r *reply) bool { return r.Doc() == nil || r.Doc().Is(wire.Object) })),
		"every reply is an error that answers its request": someCame(isErrorReply),
		"every reply has a result":                         each(expects("a result", func(r *reply) bool { return r.Result() != nil })),
		`every reply has "result" or "error"`: each(expects(`a member "result" or "error"`,
			func(r *reply) bool {
				return !r.Doc().Is(wire.Object) || r.Member("result") != nil || r.Member("error") != nil
			})),
		`every reply has not both "result" and "error"`: each(notBoth),
		"every reply has an object as result": each(expects(`"result" as a JSON object`,
			func(r *reply) bool { return r.Member("result") == nil || r.Member("result").Is(wire.Object) })),
		// RPC-005 and the rule of the call judge a reply without an envelope.
		`every reply has "jsonrpc" equal to "2.0"`: each(expects(`"jsonrpc":"2.0" as a string`,
			func(r *reply) bool { return !r.Enveloped() || text(r.Member("jsonrpc")) == rpc.Version })),
		"every reply has the id of its request":         each(SameID),
		"every reply has unique keys":                   each(uniqueKeys),
		"no reply has a result":                         each(noResult),
		"every error has an integer code and a message": each(codeAndMessage),
		"every error has the code -32700 and a null id": each(expects(`an error with the code -32700 and "id":null`,
			func(r *reply) bool { return hasCode(r, "-32700") && r.Member("id").Is(wire.Null) })),
		"every error has the code -32600": each(expects("an error with the code -32600", func(r *reply) bool { return hasCode(r, "-32600") })),
		"every error has the code -32601": each(expects("an error with the code -32601", func(r *reply) bool { return hasCode(r, "-32601") })),

		"it is noted which extra top-level keys the replies have": notesExtraKeys,
		"it is noted how each body is answered": func(l *Look) error {
			for _, r := range l.Replies {
				l.note("reply to %s: %s", foreign.Clip(string(r.Request), 60), r.Short())
			}
			return nil
		},
	}
}

// strange is how calls of unknown methods were answered. A page of a gateway says nothing about one
// call; given to each of them, and to no other in between, it is the answer of the endpoint.
type strange struct {
	page     *Call // the latest of a gateway
	others   int   // calls of known methods that were answered since
	answered bool  // one was answered by the endpoint
}

func (s *strange) pages(c *Call) bool {
	return s.page != nil && s.others > 0 && !s.answered && c.outside() && c.Status == s.page.Status
}

func (s *strange) keep(c *Call) {
	if c.outside() {
		s.page, s.others = c, 0
	} else if c.known() && c.enveloped() {
		s.others++
	} else if c.unknown() && c.enveloped() {
		s.answered = true
	}
}

// outside reports whether a gateway answered a good call of an unknown method.
func (c *Call) outside() bool {
	return c.Good() && c.unknown() && c.Ended() && c.Passing() && !c.Enveloped()
}

func (c *Call) unknown() bool { return !c.known() && !c.almostKnown() }

// ordinaryName is the form of a method that is not refused for its form.
var ordinaryName = regexp.MustCompile(`^[A-Za-z_]{1,64}$`)

// hasCode reports whether a reply is an error with a code.
func hasCode(r *reply, code string) bool { return r.IsError() && r.ErrorCode() == code }

// someCame is each, of a look in which one reply at least came to its end.
func someCame(claim replyClaim) Claim {
	return func(l *Look) error {
		if err := l.every(l.Replies, claim); err != nil {
			return err
		}
		return l.heldBy(slices.ContainsFunc(l.Replies, func(r *reply) bool { return r.OK() && len(r.Body) > 0 }), "no complete reply came")
	}
}

// oneJSONValue names what the bytes of a body show of their cause, such as the words that encoders of some
// languages write and JSON does not have.
func oneJSONValue(l *Look) error {
	err := someCame(oneValue)(l)
	for i := range l.Breaches {
		b, rest := &l.Breaches[i], []byte(nil)
		r := b.Where[0]
		var bad *wire.SyntaxError
		if errors.As(r.DocErr, &bad) {
			rest = r.Body[min(bad.Offset, len(r.Body)):]
		}
		switch word := noJSONWord.Find(rest); {
		case bytes.HasPrefix(r.Body, []byte("\x1f\x8b")) && r.Header.Get("Content-Encoding") == "":
			b.Cause, b.Observed = "the body is compressed (it begins with 1f 8b), and no Content-Encoding says so.", true
			b.Fix = "send Content-Encoding: gzip with each body that is compressed."
		case strings.ContainsAny(r.ID, "\"\\\n\t") && bytes.Contains(r.Body, []byte(`"`+r.ID+`"`)):
			b.Cause, b.Observed = "the reply is put together as text: the id is written into it without the escapes of JSON.", true
			b.Fix = "let a JSON encoder write the whole reply."
		case word != nil:
			b.Cause = fmt.Sprintf("the encoder writes %s, which is no JSON value: a number that does not exist, such as an average of nothing, or a value in the words of a language.", word)
			b.Fix = "write null or leave the member out, and let the encoder refuse what JSON does not have."
		case bad != nil && len(rest) == 0 && r.Framing == wire.FramingLength && utf8.RuneCount(r.Body) < len(r.Body):
			b.Cause = "Content-Length counts characters and not bytes, so that a body with text outside ASCII ends early."
			b.Fix = "encode the body first, and send the number of its bytes."
		}
	}
	return err
}

var noJSONWord = regexp.MustCompile(`^-?(?:NaN|Infinity|undefined|None|True|False)\b`)

// oneValue leaves an incomplete or empty response to others.
func oneValue(r *reply) (string, string) {
	const expected = "one JSON value encoded as UTF-8, with nothing before or after it"
	switch {
	case r.Doc() != nil || !r.OK() || len(r.Body) == 0:
		return "", ""
	case !utf8.Valid(r.Body):
		return expected, "the body is not valid UTF-8: " + r.Short()
	}
	return expected, fmt.Sprintf("%v: %s", r.DocErr, r.Short())
}

func notBoth(r *reply) (string, string) {
	switch {
	case r.Member("result") == nil || r.Member("error") == nil:
		return "", ""
	case r.Member("error").Is(wire.Null):
		return `"result" alone; a null "error" next to it is present all the same: leave it out`, r.Short()
	}
	return `"result" or "error", never both`, r.Short()
}

// SameID is the claim that a reply has the id of its request.
func SameID(r *reply) (string, string) {
	if !r.OtherID() {
		return "", ""
	}
	expected := "id " + string(values.Quote(foreign.Clip(r.ID, 80)))
	n := r.Member("id")
	if n == nil {
		return expected, "no id: " + r.Short()
	}
	got := "id " + foreign.Clip(string(n.Raw), 80)
	if n.Kind != wire.String {
		return expected, got + ", which is no string"
	}
	sent := quantity.Count(utf8.RuneCountInString(r.ID), "character")
	return expected, fmt.Sprintf("%s (%s were sent, %d came back)", got, sent, utf8.RuneCountInString(n.Text))
}

func uniqueKeys(r *reply) (string, string) {
	if r.Doc() == nil || len(r.Doc().Duplicates) == 0 {
		return "", ""
	}
	return "each key once in its object", "twice: " + quantity.List(r.Doc().Duplicates) + " in " + r.Short()
}

func noResult(r *reply) (string, string) {
	switch {
	case r.Plain && r.Member("error") != nil:
		return "no protocol over plain http", r.Short()
	case r.Member("result") != nil:
		return "no result", r.Short()
	}
	return "", ""
}

// isErrorReply takes a null id: a library that could not read the request answers so.
func isErrorReply(r *reply) (string, string) {
	actual := ""
	if !r.IsError() {
		actual = r.Short()
	} else if !r.Member("id").Is(wire.Null) {
		_, actual = SameID(r)
	}
	return "a JSON-RPC error with the id of the request", actual
}

func codeAndMessage(r *reply) (string, string) {
	const expected = `"error" as an object with an integer "code" and a non-empty string "message"`
	e := r.Member("error")
	switch {
	case e == nil || r.Member("result") != nil:
		return "", ""
	case !e.Is(wire.Object):
		return expected, r.Short()
	case !e.Get("code").IsInteger():
		return expected, "the code is no integer: " + r.Short()
	case strings.TrimSpace(text(e.Get("message"))) == "":
		return expected, "the message is missing, empty or no string: " + r.Short()
	}
	return "", ""
}

func notesExtraKeys(l *Look) error {
	known := []string{"jsonrpc", "id", "result", "error"}
	own := len(known)
	for _, r := range l.Replies {
		if r.Doc() == nil {
			continue
		}
		for _, m := range r.Doc().Members {
			if !slices.Contains(known, m.Name) {
				known = append(known, m.Name)
			}
		}
	}
	if len(known) == own {
		l.note("replies have no extra top-level keys")
		return nil
	}
	l.note("replies have extra top-level keys, which the service ignores: %s", quantity.List(known[own:]))
	return nil
}
