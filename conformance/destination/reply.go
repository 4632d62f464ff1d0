package destination

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/unreached"
)

// reply is what came back, with the request that it answers.
type reply struct {
	*wire.Reply
	id     string
	method string
	object string
	small  *wire.Node // the values of a small body; doc gives those of any
	trees  *trees     // where those of a larger one are kept; nil of no JSON and of a small one
	docErr error
	plain  bool // over plain http, without the token
	// replica is the one that was called, 0 for the URL itself.
	replica int
	// redirected are the replies that led here.
	redirected []*reply
}

// parse reads the body as JSON. A body that is labelled gzip and is not is
// judged by HTTP-007 alone; everything else looks at the bytes as they came.
//
// One that cannot be held beside others is as one that did not arrive: nothing is known
// of it.
func (r *reply) parse(trees *trees) {
	if !r.OK() {
		r.docErr = fmt.Errorf("no complete reply: %s", r.failure())
		return
	}
	root, cost, err := r.Tree()
	if r.docErr = err; err != nil {
		if wire.Classify(err, r.Received) == wire.KindUnread {
			r.Kind, r.Err = wire.KindUnread, err
		}
		return
	}
	if cost <= smallTree || trees == nil {
		r.small = root
		return
	}
	r.trees = trees
	trees.put(r, root, cost)
}

// failure describes what kept a complete reply from coming.
func (r *reply) failure() string {
	switch {
	case r.Kind == wire.KindTimeout:
		return fmt.Sprintf("no complete reply within %s", round(r.Total))
	case r.Kind == wire.KindClosed:
		return "the server closed the connection without responding"
	case r.Kind == wire.KindReset && (errors.Is(r.Err, syscall.ECONNRESET) || errors.Is(r.Err, syscall.EPIPE)):
		return "the server reset the connection without responding"
	case r.Kind == wire.KindTruncated && errors.Is(r.Err, io.ErrUnexpectedEOF):
		return "the response was truncated: the connection ended in the middle of it"
	case r.Kind == wire.KindTruncated && (errors.Is(r.Err, syscall.ECONNRESET) || errors.Is(r.Err, syscall.EPIPE)):
		return "the response was truncated: the server reset the connection in the middle of it"
	case r.Err != nil && r.Received == 0 && r.Kind != wire.KindCanceled:
		return inWords(r.Err, "the endpoint")
	case r.Err != nil:
		return r.Err.Error()
	case r.OK():
		return fmt.Sprintf("HTTP status %d", r.Status)
	}
	return string(r.Kind)
}

// inWords says in plain words what kept a call to a host, or its connection, from coming
// about.
func inWords(err error, host string) string {
	if cause := unreached.Of(err, "endpoint", host); cause.What != "" {
		return cause.What
	}
	return err.Error()
}

// member returns a top-level member of the reply, nil when it is absent.
func (r *reply) member(name string) *wire.Node {
	return r.doc().Get(name)
}

// result returns the result when it is an object and no error stands beside it. A
// null error is RPC-004's, and hides nothing else.
func (r *reply) result() *wire.Node {
	e := r.member("error")
	if n := r.member("result"); n != nil && n.Kind == wire.Object && (e == nil || e.Kind == wire.Null) {
		return n
	}
	return nil
}

// isError tells a JSON-RPC error.
func (r *reply) isError() bool {
	n := r.member("error")
	return n != nil && n.Kind != wire.Null && r.member("result") == nil
}

// errorText returns the message of a JSON-RPC error, its beginning where it is so long
// that no person would read it: what is made of it is redacted, searched and kept.
func (r *reply) errorText() string { return beginning(r.wholeErrorText()) }

// longestMessage bounds a message of an endpoint in bytes, but for the checks that are
// about its length.
const longestMessage = 64 << 10

// beginning is a message up to longestMessage, without half a character at its end.
func beginning(message string) string {
	if len(message) <= longestMessage {
		return message
	}
	return strings.ToValidUTF8(message[:longestMessage], "")
}

func (r *reply) wholeErrorText() string {
	if n := r.member("error"); n != nil {
		if m := n.Get("message"); m != nil && m.Kind == wire.String {
			return m.Text
		}
		return string(n.Raw)
	}
	return ""
}

// kindOf names the kind of a reply: the method and the shape of what came back,
// the same for all replies of one defect. An ordinary record result has none.
func (r *reply) kindOf() string {
	shape := ""
	// A null id of an error is that of a request that could not be read.
	if _, actual := sameID(r); actual != "" && (!r.member("id").Is(wire.Null) || r.member("result") != nil) {
		return "another id"
	}
	switch {
	case !r.complete():
		shape = string(r.Kind)
	case r.doc() == nil:
		shape = fmt.Sprintf("HTTP %d without JSON", r.Status)
	case r.isError():
		shape = fmt.Sprintf("HTTP %d error %s", r.Status, r.errorCode())
	case r.result() == nil:
		shape = fmt.Sprintf("HTTP %d %s", r.Status, r.shape())
	case r.method == rpc.MethodSyncBatch && !r.result().Get("record_results").Is(wire.Array):
		shape = "no record_results"
	case r.method == rpc.MethodSyncBatch:
		return ""
	default:
		return r.methodName() + " " + r.object + ": result"
	}
	return r.methodName() + ": " + shape
}

// methodName is the method, the same for all that do not exist.
func (r *reply) methodName() string {
	if r.method != "" && !slices.Contains(rpc.Methods(), r.method) {
		return "an unknown method"
	}
	return r.method
}

func (r *reply) errorCode() string {
	if c := r.member("error").Get("code"); c != nil {
		return string(c.Raw)
	}
	return ""
}

// shape lists the members of an envelope with their kinds.
func (r *reply) shape() string {
	return strings.Join(lists.Of(r.doc().Members, func(m wire.Member) string { return fmt.Sprintf("%s %v", m.Name, m.Value.Kind) }), " ")
}

// what describes the call for a finding: `list_fields of "contact"`.
func (r *reply) what() string {
	if r.object != "" {
		return fmt.Sprintf("%s of %q", r.method, r.object)
	}
	if r.method == "" {
		return "the call"
	}
	return r.method
}

// short shows the reply in a line.
func (r *reply) short() string {
	if !r.OK() && r.Kind != wire.KindEncoding {
		return r.failure()
	}
	// What is shown is at the beginning, and the body may be as long as it likes.
	text := strings.ToValidUTF8(string(r.Body[:min(len(r.Body), utf8.UTFMax*(shownCharacters+1))]), "\ufffd")
	if text == "" {
		return fmt.Sprintf("HTTP %d with an empty body", r.Status)
	}
	if r.Status != http.StatusOK {
		return fmt.Sprintf("HTTP %d %s", r.Status, foreign.Clip(text, shownCharacters-20))
	}
	return foreign.Clip(text, shownCharacters)
}

// shownCharacters is how many characters of a reply a finding shows.
const shownCharacters = 260
