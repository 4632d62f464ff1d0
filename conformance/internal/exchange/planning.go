package exchange

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// Reading planning replies is lenient: what cannot be read is left out, and rules say why.

// Fields are those that a reply to list_fields describes.
func (r *Reply) Fields() []rpc.Field {
	var out []rpc.Field
	for _, n := range r.Items("fields") {
		var f rpc.Field
		if n.Kind != wire.Object || json.Unmarshal(n.Raw, &f) != nil || f.APIName == "" || !slices.Contains(rpc.FieldTypes(), f.Type) {
			continue
		}
		out = append(out, f)
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
	res := r.Result()
	if res == nil {
		return nil
	}
	var out rpc.Speed
	for name, into := range map[string]*int64{
		"maximum_batch_size": &out.MaximumBatchSize, "maximum_parallel_batches": &out.MaximumParallelBatches,
		"maximum_records_per_second": &out.MaximumRecordsPerSecond,
	} {
		n := res.Get(name)
		if n == nil || n.Kind != wire.Number {
			return nil
		}
		v, err := strconv.ParseInt(string(n.Raw), 10, 64)
		if err != nil || v < 1 {
			return nil
		}
		*into = v
	}
	return &out
}
