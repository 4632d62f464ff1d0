package destination

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
)

// Sender makes the calls of a run (spec 4.2, phase execution), without retries
// and without any limit of speed. It is safe for parallel use. Errors of calls
// are *CallError.
type Sender interface {
	// Speed queries how fast and how parallel one sync may send.
	Speed(ctx context.Context) (Speed, error)
	// Send writes one batch. records are JSON objects with the members that the
	// plan names; they are copied as they are. A reply without an error has one
	// result for each record only if the destination keeps to the protocol:
	// that is for the caller to check.
	Send(ctx context.Context, plan *Plan, records [][]byte) (Reply, error)
	// Close frees what this sender alone holds.
	Close() error
}

// Speed is the answer of get_sync_speed as it was given: whether the numbers can
// be used is for the caller to say.
type Speed struct {
	rpc.Speed
	RateLimit int64 // as in Reply
}

// Reply is the answer to one batch.
type Reply struct {
	// Results are in the order of the reply. Messages are cleaned of secrets.
	Results []rpc.RecordResult
	// RateLimit is X-RateLimit-Limit in requests per second (spec 8); 0 without
	// one that can be used.
	RateLimit int64
	Status    int // HTTP status; 0 where there is none
	// Call is the id of the call, by which a journal has it; "" where the
	// destination is not called.
	Call string
}

// Sender opens a destination for the calls of a run. Credentials are the merged
// ones of CheckConnection. Senders of one id share their network connections.
func (g *Gate) Sender(id int64, typ string, credentials Credentials) (Sender, error) {
	c, err := g.Open(id, typ, credentials)
	if err != nil {
		return nil, err
	}
	switch c := c.(type) {
	case *customConnection:
		return &callSender{caller: c.caller, connection: c}, nil
	case *emulatedConnection:
		return &emulatedSender{callSender: callSender{caller: c.caller, connection: c}, emulated: c}, nil
	case *filesConnection:
		return &filesSender{filesConnection: c, locks: &g.locks, crash: g.options.Crash, inherited: map[string]keySet{}}, nil
	}
	return nil, fmt.Errorf("open destination %d: nothing can be sent to type %s", id, foreign.Clip(typ, 64))
}

// HiddenIdentifier names the field that identifies an object's records where no
// mapping does, and which clients never see; "" where there is none. Records of
// local_files carry it besides their columns: it is not written into the file.
func (g *Gate) HiddenIdentifier(typ, object string) string {
	if o := g.emulatedObject(typ, object); o != nil {
		return o.HiddenIdentifier
	}
	if g.FileSystem(typ) {
		return filesIdentifier
	}
	return ""
}

// callSender sends over the custom destination protocol.
type callSender struct {
	*caller
	connection Connection
}

// Close closes the connection behind it.
func (s *callSender) Close() error { return s.connection.Close() }

// Speed calls get_sync_speed with {}.
func (s *callSender) Speed(ctx context.Context) (Speed, error) {
	var speed Speed
	_, x, failed := s.checked(ctx, rpc.MethodGetSyncSpeed, nil, func(result json.RawMessage) (problem string) {
		speed.Speed, problem = readSpeed(result)
		return problem
	})
	defer x.leave()
	if failed != nil {
		return Speed{}, failed
	}
	speed.RateLimit = rateLimit(x)
	return speed, nil
}

// readSpeed reads the three integers; all are required.
func readSpeed(result json.RawMessage) (speed rpc.Speed, problem string) {
	members, ok := rawObject(result)
	if !ok {
		return speed, "result is not an object"
	}
	for _, part := range []struct {
		key string
		dst *int64
	}{
		{"maximum_batch_size", &speed.MaximumBatchSize},
		{"maximum_parallel_batches", &speed.MaximumParallelBatches},
		{"maximum_records_per_second", &speed.MaximumRecordsPerSecond},
	} {
		var err error
		if *part.dst, err = strconv.ParseInt(string(members[part.key]), 10, 64); err != nil {
			return rpc.Speed{}, "result." + part.key + " is missing or not an integer"
		}
	}
	return speed, ""
}

// bodies are buffers of params; the client copies them into its request.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// largestKept bounds the memory in the pool.
const largestKept = 4 << 20

// Send calls sync_batch.
func (s *callSender) Send(ctx context.Context, plan *Plan, records [][]byte) (Reply, error) {
	body := bodies.Get().(*[]byte)
	*body = plan.appendParams((*body)[:0], records)
	defer func() {
		if cap(*body) <= largestKept {
			bodies.Put(body)
		}
	}()
	var results []rpc.RecordResult
	_, x, failed := s.checked(ctx, rpc.MethodSyncBatch, json.RawMessage(*body), func(result json.RawMessage) (problem string) {
		results, problem = s.readResults(result, len(records))
		return problem
	})
	defer x.leave()
	if failed != nil {
		return Reply{}, failed
	}
	if x.large {
		detached(results, records)
	}
	return Reply{Results: results, RateLimit: rateLimit(x), Status: x.Status, Call: x.RequestID}, nil
}

// errResults ends the reading of a reply that has too many.
var errResults = errors.New("too many results")

// readResults reads record_results. Identifiers are slices of result, which
// no other code holds.
func (s *callSender) readResults(result json.RawMessage, expected int) (results []rpc.RecordResult, problem string) {
	results = make([]rpc.RecordResult, 0, expected)
	err := rpc.ScanResults(result, func(identifier []byte, success bool, message []byte) error {
		r := rpc.RecordResult{Identifier: identifier, Success: success}
		if len(message) > 0 {
			if r.ErrorMessage = rawjson.MessageText(message); r.ErrorMessage != "" {
				r.ErrorMessage = s.clean.Foreign(r.ErrorMessage)
			}
		}
		if len(results) == mostResults(expected) {
			return errResults
		}
		results = append(results, r)
		return nil
	})
	if errors.Is(err, errResults) {
		return nil, fmt.Sprintf("result.record_results holds more than %d results for %d records", mostResults(expected), expected)
	}
	if err != nil {
		// The chain of the error names our own functions: users see its end.
		_, what, found := strings.Cut(err.Error(), rpc.ErrResults.Error()+": ")
		if !found {
			what = "the result has not the shape of record_results"
		}
		return nil, what
	}
	return results, ""
}

// rateLimitHeaders in the order in which they count: the second is a
// misspelling in published text.
var rateLimitHeaders = []string{"X-Ratelimit-Limit", "X-Ratelimit_limit"}

// rateLimit reads the header that overrides the limit of a connection (spec 8):
// an integer of 1 or more. Anything else counts for nothing: it would stop all
// syncs for ever.
func rateLimit(x *Exchange) int64 {
	for _, name := range rateLimitHeaders {
		values := x.Header[name]
		if i := slices.IndexFunc(values, func(v string) bool { return strings.TrimSpace(v) != "" }); i >= 0 {
			if n, err := strconv.ParseInt(strings.TrimSpace(values[i]), 10, 64); err == nil && n > 0 {
				return n
			}
		}
	}
	return 0
}
