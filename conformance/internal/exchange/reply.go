package exchange

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// Reply is what came back, with the request that it answers.
type Reply struct {
	*wire.Reply
	ID     string
	Method string
	Object string     // that the request speaks of
	small  *wire.Node // the values of a small body; doc gives those of any
	trees  *Trees     // where those of a larger one are kept; nil of no JSON and of a small one
	DocErr error
	Plain  bool // over plain http, without the token
	// replica is the one that was called, 0 for the URL itself.
	Replica int
	// redirected are the replies that led here.
	Redirected []*Reply
}

// Parse reads the body as JSON. A body that is labelled gzip and is not is
// judged by HTTP-007 alone; everything else looks at the bytes as they came.
//
// One that cannot be held beside others is as one that did not arrive: nothing is known
// of it.
func (r *Reply) Parse(trees *Trees) {
	if !r.OK() {
		r.DocErr = fmt.Errorf("no complete reply: %s", r.Failure())
		return
	}
	root, cost, err := r.Tree()
	if r.DocErr = err; err != nil {
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

// Doc gives the body as JSON, nil when it is not one value.
func (r *Reply) Doc() *wire.Node {
	if r.small != nil || r.trees == nil || r.DocErr != nil {
		return r.small
	}
	if root := r.trees.get(r); root != nil {
		return root
	}
	root, cost, err := r.Tree()
	if err != nil {
		// It was read before, so that nothing is wrong with it but the lack of memory, which
		// ends with the steps that look at other replies now.
		root, _ = wire.Parse(r.Body)
	}
	r.trees.put(r, root, cost)
	return root
}

// Member returns a top-level member of the reply, nil when it is absent.
func (r *Reply) Member(name string) *wire.Node {
	return r.Doc().Get(name)
}

// Result returns the result when it is an object and no error stands beside it. A
// null error is RPC-004's, and hides nothing else.
func (r *Reply) Result() *wire.Node {
	e := r.Member("error")
	if n := r.Member("result"); n != nil && n.Kind == wire.Object && (e == nil || e.Kind == wire.Null) {
		return n
	}
	return nil
}

// IsError tells a JSON-RPC error.
func (r *Reply) IsError() bool {
	n := r.Member("error")
	return n != nil && n.Kind != wire.Null && r.Member("result") == nil
}

// ErrorText returns the message of a JSON-RPC error, its beginning where it is so long
// that no person would read it: what is made of it is redacted, searched and kept.
func (r *Reply) ErrorText() string { return beginning(r.WholeErrorText()) }

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

// WholeErrorText is the same, however long it is.
func (r *Reply) WholeErrorText() string {
	if n := r.Member("error"); n != nil {
		if m := n.Get("message"); m != nil && m.Kind == wire.String {
			return m.Text
		}
		return string(n.Raw)
	}
	return ""
}

// ErrorCode is the code of a JSON-RPC error as it stands, "" without one.
func (r *Reply) ErrorCode() string {
	if c := r.Member("error").Get("code"); c != nil {
		return string(c.Raw)
	}
	return ""
}

// Items are the elements of an array in the result.
func (r *Reply) Items(name string) []*wire.Node {
	if n := r.Result().Get(name); n.Is(wire.Array) {
		return n.Items
	}
	return nil
}

// OtherID reports whether an object came back without the id of the request. What refuses
// a call before its body is read (a caller that is unknown, a limit) has none to give:
// JSON-RPC has null for that.
func (r *Reply) OtherID() bool {
	id := r.Member("id")
	if !r.Doc().Is(wire.Object) || (id == nil || id.Is(wire.Null)) && (r.Passing() || slices.Contains(unread, r.Status)) {
		return false
	}
	return !id.Is(wire.String) || id.Text != r.ID
}

// unread are the statuses of calls whose body need not have been read.
var unread = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge}

// Enveloped reports whether the body looks like an envelope of JSON-RPC, be it a bad one.
func (r *Reply) Enveloped() bool {
	doc := r.Doc()
	return doc.Is(wire.Object) && (doc.Get("jsonrpc") != nil || doc.Get("result") != nil || doc.Get("id") != nil && doc.Get("error") != nil)
}

// Passing reports whether the status is one of a disturbance that passes.
func (r *Reply) Passing() bool {
	switch r.Status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return true
	}
	return false
}

// InPlace reports whether what stands before the endpoint answered in its place, as a
// balancer and a limit do.
func (r *Reply) InPlace() bool {
	return r.Passing() && r.Member("result") == nil && r.Member("error") == nil
}

// WaitedInVain reports whether nothing of a reply came in its time.
func (r *Reply) WaitedInVain() bool { return r.Kind == wire.KindTimeout && r.Received == 0 }
