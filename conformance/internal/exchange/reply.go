// Package exchange is one call and its reply as bytes, text and tree.
//
// It knows no rule, and nothing of what a record means: package rules and the checks do.
package exchange

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// Reply is what came back, with the request that it answers.
type Reply struct {
	*wire.Reply
	ID     string
	Method string
	Object string     // that the request speaks of
	small  *wire.Node // the values of a small body; Doc gives those of any
	trees  *Trees     // where those of a larger one are kept; nil of no JSON and of a small one
	DocErr error
	Plain  bool // over plain http, without the token
	// Replica is the one that was called, 0 for the URL itself.
	Replica    int
	Redirected []*Reply // that led here
}

// Parse reads the body as JSON. Only HTTP-007 judges a body that is wrongly labelled gzip; all else
// looks at the bytes as they came. A body that does not fit into memory with others counts as one
// that did not arrive.
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
		// It was read before: only memory lacks, until other steps end.
		root, _ = wire.Parse(r.Body)
	}
	r.trees.put(r, root, cost)
	return root
}

// Member returns a top-level member of the reply, nil when it is absent.
func (r *Reply) Member(name string) *wire.Node { return r.Doc().Get(name) }

// Result returns the result when it is an object and the reply has no error. RPC-004 judges a null
// error, which hides nothing else.
func (r *Reply) Result() *wire.Node {
	if n, e := r.Member("result"), r.Member("error"); n.Is(wire.Object) && (e == nil || e.Kind == wire.Null) {
		return n
	}
	return nil
}

// IsError reports whether the reply is a JSON-RPC error.
func (r *Reply) IsError() bool {
	n := r.Member("error")
	return n != nil && n.Kind != wire.Null && r.Member("result") == nil
}

// ErrorText returns the message of a JSON-RPC error, its beginning where it is very long.
func (r *Reply) ErrorText() string { return beginning(r.WholeErrorText()) }

// longestMessage bounds a message in bytes, but for the checks of its length.
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
	n := r.Member("error")
	switch m := n.Get("message"); {
	case m.Is(wire.String):
		return m.Text
	case n != nil:
		return string(n.Raw)
	}
	return ""
}

// ErrorCode is the code of a JSON-RPC error as written, "" without one.
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

// OtherID reports whether an object came back without the id of the request. A server that refuses
// a call before it reads the body, as a limit does, has no id to give: JSON-RPC has null for that.
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
	passing := []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests}
	return slices.Contains(passing, r.Status)
}

// InPlace reports whether a balancer or a limit answered in the place of the endpoint.
func (r *Reply) InPlace() bool {
	return r.Passing() && r.Member("result") == nil && r.Member("error") == nil
}

// WaitedInVain reports whether nothing of a reply came in its time.
func (r *Reply) WaitedInVain() bool { return r.Kind == wire.KindTimeout && r.Received == 0 }

// The values of replies are a multiple of their text. A scenario that queries fifty objects keeps
// all replies until its end, and many scenarios run at once, so the values of large replies are
// kept for those that were looked at last, and read again for others.
const (
	smallTree = 32 << 10 // bytes that stay with the reply
	keptTrees = 16 << 20 // bytes of all larger ones
)

// Trees holds the values of the replies that were looked at last.
type Trees struct {
	mu   sync.Mutex
	kept []tree // the latest last
	size int
}

type tree struct {
	reply *Reply
	root  *wire.Node
	cost  int
}

func (t *Trees) index(r *Reply) int {
	return slices.IndexFunc(t.kept, func(one tree) bool { return one.reply == r })
}

// get gives the kept values of a reply, nil when there are none.
func (t *Trees) get(r *Reply) *wire.Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.index(r)
	if i < 0 {
		return nil
	}
	found := t.kept[i]
	t.kept = append(slices.Delete(t.kept, i, i+1), found)
	return found.root
}

// put keeps the values of a reply, and drops those that were not looked at for longest.
func (t *Trees) put(r *Reply, root *wire.Node, cost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index(r) >= 0 {
		return
	}
	t.kept = append(t.kept, tree{r, root, cost})
	for t.size += cost; t.size > keptTrees && len(t.kept) > 1; t.kept = slices.Delete(t.kept, 0, 1) {
		t.size -= t.kept[0].cost
	}
}

// Spare gives a function for the client that forgets all of them. It must not keep alive what
// it waits for the end of.
func (t *Trees) Spare() func() {
	weakly := weak.Make(t)
	return func() {
		if t := weakly.Value(); t != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.kept, t.size = nil, 0
		}
	}
}
