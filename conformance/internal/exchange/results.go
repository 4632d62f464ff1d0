package exchange

import (
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
)

// Results are what a reply to sync_batch says of its records.
type Results struct {
	IsArray bool // record_results is an array
	List    []Result
	ByKey   map[string][]int // places in List by the text of the identifier
}

// Result is what the endpoint says of one record.
type Result struct {
	Node       *wire.Node
	Identifier *wire.Node
	Success    *bool // nil when it is not a boolean
	Message    *wire.Node
}

// Text is the error message of a failed record, "" when there is none.
func (r Result) Text() string {
	switch {
	case r.Message == nil || r.Message.Kind == wire.Null:
		return ""
	case r.Message.Kind == wire.String:
		return beginning(r.Message.Text)
	}
	return beginning(string(r.Message.Raw))
}

// RecordResults reads the results of a reply to sync_batch.
func (r *Reply) RecordResults() Results {
	list := r.Result().Get("record_results")
	if !list.Is(wire.Array) {
		return Results{}
	}
	all := Results{IsArray: true, List: make([]Result, len(list.Items)), ByKey: make(map[string][]int, len(list.Items))}
	for i, n := range list.Items {
		res := Result{Node: n}
		if n.Kind == wire.Object {
			res.Identifier, res.Message = n.Get("identifier"), n.Get("error_message")
			if ok, is := n.Get("success").Bool(); is {
				res.Success = &ok
			}
		}
		all.List[i] = res
		if res.Identifier != nil {
			k := NodeText(res.Identifier)
			all.ByKey[k] = append(all.ByKey[k], i)
		}
	}
	return all
}

// Of returns the results for a key, in the order of the reply.
func (r *Results) Of(key string) []Result {
	return lists.Of(r.ByKey[key], func(i int) Result { return r.List[i] })
}

// Say reports whether a key has results and whether each of them says that.
func (r *Results) Say(key string, success bool) bool {
	for _, i := range r.ByKey[key] {
		if ok := r.List[i].Success; ok == nil || *ok != success {
			return false
		}
	}
	return len(r.ByKey[key]) > 0
}

// Contradicts reports whether two results of one key disagree.
func (r *Results) Contradicts(key string) bool {
	yes, no := false, false
	for _, i := range r.ByKey[key] {
		if ok := r.List[i].Success; ok != nil {
			yes, no = yes || *ok, no || !*ok
		}
	}
	return yes && no
}

// KeyText is the text by which identifiers are compared: decoded strings,
// numbers as they are on the wire.
func KeyText(raw []byte) string {
	n, err := wire.Parse(raw)
	if err != nil {
		return string(raw)
	}
	return NodeText(n)
}

// NodeText is KeyText of a value that was read.
func NodeText(n *wire.Node) string {
	if n.Kind == wire.String {
		return n.Text
	}
	return string(n.Raw)
}
