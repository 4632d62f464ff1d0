package destination

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// replyClaim says what is wrong with one reply: expected and actual, both ""
// when the claim holds.
type replyClaim func(r *reply) (expected, actual string)

// replySteps judge the replies of all calls that the scenario has made.
func replySteps() []definition {
	return []definition{
		step(`^every reply is (one JSON value in UTF-8|an object|an error that answers its request)$`,
			func(sc *scenario) any { return sc.everyReplyIs }),
		step(`^every reply has (a result|"result" or "error"|not both "result" and "error"|an object as result|"jsonrpc" equal to "2.0"|the id of its request|unique keys)$`,
			func(sc *scenario) any { return func(claim string) error { return sc.everyReply(replyClaims[claim]) } }),
		step(`^no reply has a result$`, func(sc *scenario) any { return func() error { return sc.everyReply(noResult) } }),
	}
}

var replyClaims = map[string]replyClaim{
	"one JSON value in UTF-8":           oneValue,
	"an object":                         isObject,
	"an error that answers its request": isErrorReply,
	"a result":                          hasResult,
	`"result" or "error"`:               hasEither,
	`not both "result" and "error"`:     notBoth,
	"an object as result":               objectResult,
	`"jsonrpc" equal to "2.0"`:          saysVersion,
	"the id of its request":             sameID,
	"unique keys":                       uniqueKeys,
}

func (sc *scenario) everyReplyIs(claim string) error {
	err := sc.everyReply(replyClaims[claim])
	if err == nil && !slices.ContainsFunc(sc.replies, func(r *reply) bool { return r.OK() && len(r.Body) > 0 }) {
		return inconclusive("", "no complete reply came")
	}
	return err
}

// everyReply applies a claim to every reply.
func (sc *scenario) everyReply(claim replyClaim) error {
	return sc.every(sc.replies, claim)
}

// every applies a claim to each of some replies.
func (sc *scenario) every(replies []*reply, claim replyClaim) error {
	if len(replies) == 0 {
		return harness("no call was made")
	}
	for _, r := range replies {
		if expected, actual := claim(r); actual != "" {
			sc.broken(expected, r.What()+": "+actual, r)
		}
	}
	return sc.held()
}

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

func sameID(r *reply) (string, string) {
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

func hasResult(r *reply) (string, string) {
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
	if _, actual := sameID(r); actual != "" {
		return expected, actual
	}
	return "", ""
}

// errorSteps judge JSON-RPC errors (spec 7.2.2).
func errorSteps() []definition {
	return []definition{
		step(`^every error (has an integer code and a message|reveals nothing internal|is short readable text)$`, func(sc *scenario) any { return sc.everyError }),
		step(`^every error has the code (-\d+)( and a null id)?$`, func(sc *scenario) any { return sc.everyErrorHasCode }),
		step(`^it is noted (.+)$`, func(sc *scenario) any { return sc.takesNote }),
	}
}

func (sc *scenario) everyError(claim string) error {
	if claim == "has an integer code and a message" {
		return sc.everyReply(codeAndMessage)
	}
	return sc.errorText(claim)
}

// observations are what the INFO checks write down.
var observations = map[string]func(*scenario) error{
	"which extra top-level keys the replies have":   (*scenario).notesExtraKeys,
	"how each body is answered":                     (*scenario).notesAnswers,
	"which rate limit applies":                      (*scenario).notesRateLimit,
	"which successes carry a message":               (*scenario).notesMessages,
	"which values are stored":                       (*scenario).notesStored,
	"which protocol and profile the verdict is for": (*scenario).notesProtocol,
}

func (sc *scenario) takesNote(what string) error {
	take, ok := observations[what]
	if !ok {
		return harness("no observation is called %q", what)
	}
	return take(sc)
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

func (sc *scenario) everyErrorHasCode(code, nullID string) error {
	return sc.everyReply(func(r *reply) (string, string) {
		expected := "an error with the code " + code
		if nullID != "" {
			expected += ` and "id":null`
		}
		if !r.IsError() {
			return expected, r.Short()
		}
		if c := r.Member("error").Get("code"); c == nil || string(c.Raw) != code {
			return expected, r.Short()
		}
		if id := r.Member("id"); nullID != "" && (id == nil || id.Kind != wire.Null) {
			return expected, r.Short()
		}
		return "", ""
	})
}

func (sc *scenario) notesExtraKeys() error {
	known := []string{"jsonrpc", "id", "result", "error"}
	var extra []string
	for _, r := range sc.replies {
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
		sc.note("replies have no extra top-level keys")
		return nil
	}
	sc.note("replies have extra top-level keys, which the service ignores: %s", quantity.List(extra))
	return nil
}

func (sc *scenario) notesAnswers() error {
	for _, r := range sc.replies {
		sc.note("reply to %s: %s", foreign.Clip(string(r.Request), 60), r.Short())
	}
	return nil
}
