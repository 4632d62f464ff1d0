package codec

import (
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// DecodeCall is rpc.DecodeRequest for a server's hot path: r is reused, and the
// params of a sync_batch are decoded into b in the same pass over the body when
// the method precedes the params, as in the published order. It allocates
// nothing when r and b are reused and the plan is remembered. ID stays empty;
// RawID is what an answer needs.
//
// A wrong envelope is an *rpc.Error as in rpc.DecodeRequest, wrong params of a
// sync_batch are one as in DecodeBatch. b holds something only after a
// sync_batch without error.
func DecodeCall(body []byte, r *rpc.Request, b *Batch) error {
	*r = rpc.Request{}
	b.reset(nil)
	if decodeQuickly(body, r, b) {
		return nil
	}
	// Whatever the single pass does not like is decoded again step by step.
	b.reset(nil)
	var err error
	*r, err = rpc.DecodeRequest(body)
	r.ID = ""
	if err != nil || r.Method != rpc.MethodSyncBatch {
		return err
	}
	return DecodeBatch(r.Params, b)
}

// rawRequest holds the raw members of a request while it is scanned.
type rawRequest struct {
	version, method, params, id []byte
}

// decodeQuickly decodes a call that is right in every part and writes its words
// without escapes, as nearly all do.
func decodeQuickly(body []byte, r *rpc.Request, b *Batch) bool {
	i := rawjson.SkipSpace(body, 0)
	if i == len(body) || body[i] != '{' {
		return false
	}
	var q rawRequest
	if !q.scan(body, i, b) {
		return false
	}
	method := methodOf(q.method)
	if string(q.version) != `"`+rpc.Version+`"` || method == "" || len(q.params) == 0 || q.params[0] != '{' {
		return false
	}
	if len(q.id) > 0 && strings.IndexByte("{[tf", q.id[0]) >= 0 {
		return false // an object, a list or a boolean is no id
	}
	switch {
	case method != rpc.MethodSyncBatch:
		b.reset(nil) // another method may follow the params of a batch
	case !b.done:
		return false
	}
	*r = rpc.Request{JSONRPC: rpc.Version, Method: method, Params: q.params, RawID: q.id}
	return true
}

// methodOf is the method of the protocol that a raw value names, "" for any other
// and for a name with escapes.
func methodOf(raw []byte) string {
	for _, name := range methods {
		if len(raw) == len(name)+2 && string(raw[1:len(raw)-1]) == name {
			return name
		}
	}
	return ""
}

var methods = rpc.Methods()

// scan reads the members of the object at i to the end of the body; false means that
// something there is not JSON.
func (q *rawRequest) scan(body []byte, i int, b *Batch) bool {
	i = rawjson.SkipSpace(body, i+1)
	more := true
	if i < len(body) && body[i] == '}' {
		i, more = i+1, false
	}
	for more {
		end, v, f := rawjson.SkipKey(body, i)
		if f != rawjson.FaultNone {
			return false
		}
		key := rawjson.PlainKey(body[i+1 : end])
		params := string(key) == "params"
		if params && string(q.method) == `"`+rpc.MethodSyncBatch+`"` {
			i, f = b.scan(body, v, 1)
		} else {
			i, f = rawjson.SkipValue(body, v, 1)
			if params {
				b.done = false // the last params count, and these were not decoded
			}
		}
		if f != rawjson.FaultNone {
			return false
		}
		q.set(key, body[v:i:i])
		if i, more, f = rawjson.NextMember(body, i); f != rawjson.FaultNone {
			return false
		}
	}
	return rawjson.SkipSpace(body, i) == len(body)
}

func (q *rawRequest) set(key, raw []byte) {
	switch string(key) {
	case "jsonrpc":
		q.version = raw
	case "method":
		q.method = raw
	case "params":
		q.params = raw
	case "id":
		q.id = raw
	}
}
