package exchange

import (
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// Results are what a reply to sync_batch reports about its records.
type Results struct {
	IsArray bool // record_results is an array
	List    []Result
	ByKey   map[string][]int // places in List by the text of the identifier
}

// Result is what the endpoint reports about one record.
type Result struct {
	Node       *wire.Node
	Identifier *wire.Node
	Success    *bool // nil when it is not a boolean
	Message    *wire.Node
}

// Text is the error message of a failed record, "" when there is none.
func (r Result) Text() string {
	if r.Message == nil || r.Message.Kind == wire.Null {
		return ""
	}
	return beginning(NodeText(r.Message))
}

// RecordResults reads the results of a reply to sync_batch.
func (r *Reply) RecordResults() Results {
	list := r.Result().Get("record_results")
	if !list.Is(wire.Array) {
		return Results{}
	}
	all := Results{IsArray: true, List: make([]Result, len(list.Items)), ByKey: make(map[string][]int, len(list.Items))}
	for i, n := range list.Items {
		res := &all.List[i]
		*res = Result{Node: n, Identifier: n.Get("identifier"), Message: n.Get("error_message")}
		if ok, is := n.Get("success").Bool(); is {
			res.Success = &ok
		}
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

// Say reports whether a key has results and all of them have this status.
func (r *Results) Say(key string, success bool) bool {
	return len(r.ByKey[key]) > 0 && !slices.ContainsFunc(r.ByKey[key], func(i int) bool { return !r.List[i].says(success) })
}

// Contradicts reports whether two results of one key disagree.
func (r *Results) Contradicts(key string) bool {
	says := func(success bool) bool {
		return slices.ContainsFunc(r.ByKey[key], func(i int) bool { return r.List[i].says(success) })
	}
	return says(true) && says(false)
}

func (r Result) says(success bool) bool { return r.Success != nil && *r.Success == success }

// KeyText is the text by which identifiers are compared: strings are decoded, numbers raw.
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

// Reading planning replies is lenient: it leaves out what it cannot read, and rules report why.

// Fields are those that a reply to list_fields describes.
func (r *Reply) Fields() []rpc.Field {
	var out []rpc.Field
	for _, n := range r.Items("fields") {
		var f rpc.Field
		if n.Kind == wire.Object && json.Unmarshal(n.Raw, &f) == nil && f.APIName != "" && slices.Contains(rpc.FieldTypes(), f.Type) {
			out = append(out, f)
		}
	}
	return out
}

// Operations are those that a reply to supported_operations lists.
func (r *Reply) Operations() []string {
	var out []string
	for _, n := range r.Items("operations") {
		if n.Kind == wire.String && !slices.Contains(out, n.Text) {
			out = append(out, n.Text)
		}
	}
	return out
}

// Speed is what a reply to get_sync_speed declares, nil unless all three numbers are
// integers of 1 or more.
func (r *Reply) Speed() *rpc.Speed {
	var out rpc.Speed
	for name, into := range map[string]*int64{
		"maximum_batch_size": &out.MaximumBatchSize, "maximum_parallel_batches": &out.MaximumParallelBatches,
		"maximum_records_per_second": &out.MaximumRecordsPerSecond,
	} {
		v, ok := r.Result().Get(name).Int()
		if !ok || v < 1 {
			return nil
		}
		*into = v
	}
	return &out
}
