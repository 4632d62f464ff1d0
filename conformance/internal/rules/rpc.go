package rules

import (
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
)

// rpcGroup judges the envelopes of JSON-RPC (spec 4.2).
func rpcGroup() group {
	g := group{claims: map[string]Claim{
		"every reply is one JSON value in UTF-8":           oneJSONValue,
		"every reply is an object":                         someCame(isObject),
		"every reply is an error that answers its request": someCame(isErrorReply),
		"every reply has a result":                         each(HasResult),
		`every reply has "result" or "error"`:              each(hasEither),
		`every reply has not both "result" and "error"`:    each(notBoth),
		"every reply has an object as result":              each(objectResult),
		`every reply has "jsonrpc" equal to "2.0"`:         each(saysVersion),
		"every reply has the id of its request":            each(SameID),
		"every reply has unique keys":                      each(uniqueKeys),
		"no reply has a result":                            each(noResult),
		"every error has an integer code and a message":    each(codeAndMessage),
		"every error has the code -32700 and a null id":    each(errorWithCode("-32700", true)),
		"every error has the code -32600":                  each(errorWithCode("-32600", false)),
		"every error has the code -32601":                  each(errorWithCode("-32601", false)),

		"it is noted which extra top-level keys the replies have": notesExtraKeys,
		"it is noted how each body is answered":                   notesAnswers,
	}, rules: map[string]*rule{}}
	g.on(answers, "RPC-017")
	g.on(called, "RPC-001", "RPC-002", "RPC-004", "RPC-005", "RPC-006", "RPC-007", "RPC-014", "RPC-015")
	g.on(func(c *Call) bool {
		// A library that could not read the request answers with a null id.
		unread := c.IsError() && c.Member("id").Is(wire.Null)
		return good(c) && (!unread || !c.odd()) || answers(c) && c.form == badParams && !unread
	}, "RPC-003")
	unknown := func(c *Call) bool { return good(c) && !c.known() && c.almost() == "" }
	g.on(unknown, "RPC-008")
	g.on(func(c *Call) bool { return unknown(c) && ordinaryName.MatchString(c.Method) }, "RPC-009")
	g.on(func(c *Call) bool { return good(c) && c.almost() != "" }, "RPC-019")
	g.on(func(c *Call) bool { return answers(c) && c.form == noJSON && c.badBody }, "RPC-010")
	g.on(func(c *Call) bool {
		return answers(c) && c.form == noEnvelope && (!c.request.Get("method").Is(wire.String) || c.Method != "")
	}, "RPC-011")
	g.on(func(c *Call) bool { return answers(c) && c.form == badParams && c.known() }, "RPC-012")
	g.on(func(c *Call) bool { return answers(c) && (c.form == notObject || c.form == noID) }, "RPC-018")
	return g
}

// ordinaryName is the form of a method that is known or not; another one may be refused
// for its form.
var ordinaryName = regexp.MustCompile(`^[A-Za-z_]{1,64}$`)

// someCame is each, of a look in which one reply at least came to its end.
func someCame(claim replyClaim) Claim {
	return func(l *Look) error {
		err := l.every(l.Replies, claim)
		if err == nil && !slices.ContainsFunc(l.Replies, func(r *reply) bool { return r.OK() && len(r.Body) > 0 }) {
			return inconclusive("", "no complete reply came")
		}
		return err
	}
}

// oneJSONValue names the words that encoders of some languages write and JSON does not have.
func oneJSONValue(l *Look) error {
	err := someCame(oneValue)(l)
	for i := range l.Breaches {
		b := &l.Breaches[i]
		var bad *wire.SyntaxError
		if r := b.Where[0]; errors.As(r.DocErr, &bad) && bad.Offset < len(r.Body) {
			if word := noJSONWord.Find(r.Body[bad.Offset:]); word != nil {
				b.Cause = fmt.Sprintf("the encoder writes %s, which is no JSON value: a number that does not exist, such as an average of nothing, or a value in the words of a language.", word)
				b.Fix = "write null or leave the member out, and let the encoder refuse what JSON does not have."
			}
		}
	}
	return err
}

var noJSONWord = regexp.MustCompile(`^-?(?:NaN|Infinity|undefined|None|True|False)\b`)

func oneValue(r *reply) (string, string) {
	const expected = "one JSON value encoded as UTF-8, with nothing before or after it"
	if r.Doc() != nil {
		return "", ""
	}
	if !r.OK() || len(r.Body) == 0 {
		return "", "" // an incomplete or empty response is judged elsewhere
	}
	if !utf8.Valid(r.Body) {
		return expected, "the body is not valid UTF-8: " + r.Short()
	}
	var bad *wire.SyntaxError
	if errors.As(r.DocErr, &bad) {
		return expected, fmt.Sprintf("%s: %s", bad.Error(), r.Short())
	}
	return expected, fmt.Sprintf("%v: %s", r.DocErr, r.Short())
}

func isObject(r *reply) (string, string) {
	if r.Doc() != nil && r.Doc().Kind != wire.Object {
		return "a JSON object", r.Short()
	}
	return "", ""
}

func hasEither(r *reply) (string, string) {
	if r.Doc() != nil && r.Doc().Kind == wire.Object && r.Member("result") == nil && r.Member("error") == nil {
		return `a member "result" or "error"`, r.Short()
	}
	return "", ""
}

func notBoth(r *reply) (string, string) {
	if r.Member("result") == nil || r.Member("error") == nil {
		return "", ""
	}
	if r.Member("error").Kind == wire.Null {
		return `"result" alone; a null "error" beside it is present all the same: leave it out`, r.Short()
	}
	return `"result" or "error", never both`, r.Short()
}

func objectResult(r *reply) (string, string) {
	if n := r.Member("result"); n != nil && n.Kind != wire.Object {
		return `"result" as a JSON object`, r.Short()
	}
	return "", ""
}

func saysVersion(r *reply) (string, string) {
	if !r.Enveloped() { // RPC-005 and the rule of the call judge what is none
		return "", ""
	}
	if n := r.Member("jsonrpc"); n == nil || n.Kind != wire.String || n.Text != rpc.Version {
		return `"jsonrpc":"2.0" as a string`, r.Short()
	}
	return "", ""
}

// SameID is the claim that a reply has the id of its request.
func SameID(r *reply) (string, string) {
	if !r.OtherID() {
		return "", ""
	}
	expected := "id " + string(values.Quote(foreign.Clip(r.ID, 80)))
	n := r.Member("id")
	switch {
	case n == nil:
		return expected, "no id: " + r.Short()
	case n.Kind != wire.String:
		return expected, fmt.Sprintf("id %s, which is no string", foreign.Clip(string(n.Raw), 80))
	}
	return expected, fmt.Sprintf("id %s (%s were sent, %d came back)",
		foreign.Clip(string(n.Raw), 80), quantity.Count(utf8.RuneCountInString(r.ID), "character"), utf8.RuneCountInString(n.Text))
}

func uniqueKeys(r *reply) (string, string) {
	if r.Doc() != nil && len(r.Doc().Duplicates) > 0 {
		return "each key once in its object", "twice: " + quantity.List(r.Doc().Duplicates) + " in " + r.Short()
	}
	return "", ""
}

// HasResult is the claim that a reply has a result.
func HasResult(r *reply) (string, string) {
	if r.Result() == nil {
		return "a result", r.Short()
	}
	return "", ""
}

func noResult(r *reply) (string, string) {
	if r.Plain && r.Member("error") != nil {
		return "no protocol over plain http", r.Short()
	}
	if r.Member("result") != nil {
		return "no result", r.Short()
	}
	return "", ""
}

func isErrorReply(r *reply) (string, string) {
	const expected = "a JSON-RPC error with the id of the request"
	if !r.IsError() {
		return expected, r.Short()
	}
	// A library that could not read the request answers with a null id.
	if n := r.Member("id"); n != nil && n.Kind == wire.Null {
		return "", ""
	}
	if _, actual := SameID(r); actual != "" {
		return expected, actual
	}
	return "", ""
}

func codeAndMessage(r *reply) (string, string) {
	e := r.Member("error")
	if e == nil || r.Member("result") != nil {
		return "", ""
	}
	const expected = `"error" as an object with an integer "code" and a non-empty string "message"`
	if e.Kind != wire.Object {
		return expected, r.Short()
	}
	code, message := e.Get("code"), e.Get("message")
	switch {
	case code == nil || code.Kind != wire.Number || strings.ContainsAny(string(code.Raw), ".eE"):
		return expected, "the code is no integer: " + r.Short()
	case message == nil || message.Kind != wire.String || strings.TrimSpace(message.Text) == "":
		return expected, "the message is missing, empty or no string: " + r.Short()
	}
	return "", ""
}

func errorWithCode(code string, nullID bool) replyClaim {
	expected := "an error with the code " + code
	if nullID {
		expected += ` and "id":null`
	}
	return func(r *reply) (string, string) {
		c, id := r.Member("error").Get("code"), r.Member("id")
		if !r.IsError() || c == nil || string(c.Raw) != code || nullID && !id.Is(wire.Null) {
			return expected, r.Short()
		}
		return "", ""
	}
}

func notesExtraKeys(l *Look) error {
	known := []string{"jsonrpc", "id", "result", "error"}
	var extra []string
	for _, r := range l.Replies {
		if r.Doc() == nil {
			continue
		}
		for _, m := range r.Doc().Members {
			if !slices.Contains(known, m.Name) && !slices.Contains(extra, m.Name) {
				extra = append(extra, m.Name)
			}
		}
	}
	if len(extra) == 0 {
		l.note("replies have no extra top-level keys")
		return nil
	}
	l.note("replies have extra top-level keys, which the service ignores: %s", quantity.List(extra))
	return nil
}

func notesAnswers(l *Look) error {
	for _, r := range l.Replies {
		l.note("reply to %s: %s", foreign.Clip(string(r.Request), 60), r.Short())
	}
	return nil
}
