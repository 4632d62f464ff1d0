package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// table is a source in memory.
type table struct {
	rows     []row
	fails    int  // reading fails after so many rows; 0: never
	shuffled bool // it does not keep to the requested order
}

// Rows implements source.Reader.
func (s *table) Rows(_ context.Context, _ source.Object, columns, order []string) (source.Rows, error) {
	rows := slices.Clone(s.rows)
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.key(), b.key()) })
	if len(order) == 0 || s.shuffled {
		slices.Reverse(rows)
	}
	return &tableRows{rows: rows, columns: columns, fails: s.fails}, nil
}

type tableRows struct {
	rows    []row
	columns []string
	at      int
	fails   int
}

func (r *tableRows) Next() ([][]byte, error) {
	if r.fails > 0 && r.at >= r.fails {
		return nil, errors.New("the source has gone")
	}
	if r.at == len(r.rows) {
		return nil, io.EOF
	}
	var cells [][]byte
	for _, column := range r.columns {
		cells = append(cells, []byte(r.rows[r.at][column]))
	}
	r.at++
	return cells, nil
}

func (r *tableRows) Close() error { return nil }

// Outcomes of a call, other than success.
const (
	fateRefused    = "an error object, nothing stored"
	fateStored     = "an error object, all stored"
	fateHalf       = "a timeout, half of it stored"
	fateLost       = "the answer is lost, all stored"
	fateSilent     = "half of the results are missing"
	fateDoubtful   = "a second result says the opposite"
	fateStrange    = "results for others, and in another order"
	fateThrottled  = "429"
	fateRejects    = "records are refused that are stored"
	fateGone       = "no connection"
	fateStop       = "the service shuts down"
	fateCancel     = "a user cancels"
	fateIdentifier = "identifiers come back as text"
)

func fates() []string {
	return []string{
		fateRefused, fateStored, fateHalf, fateLost, fateSilent, fateDoubtful, fateStrange, fateThrottled,
		fateRejects, fateGone, fateStop, fateCancel, fateIdentifier,
	}
}

// entry of the destination: the stored value, and how often it was added.
type stored struct {
	fields map[string]string
	copies int
}

// store is a destination in memory with the semantics of spec 4.2, and with
// failures: the outcome of each call is drawn.
type store struct {
	mu       sync.Mutex
	log      bool // additions are appended, whatever is there
	skipGood bool // records that do not qualify are reported as successes
	parallel int64
	records  map[string]stored
	next     map[string]stored // of the replacement under way; nil: none
	commits  int               // replacements that took the place of the table

	armed   []string // fates that may be drawn, "" among them
	seed    uint32
	refuses map[string]int // how often records are still refused
	end     context.CancelCauseFunc
	dead    bool // nothing reaches it any more: the process was killed

	words   map[string]word   // of this pass
	twice   string            // the key sent after its acknowledgement
	settled map[string]string // of appended keys: the moment whose acknowledgement is certain
	seen    map[string]int    // fates
}

func (s *store) fate() string {
	if len(s.armed) == 0 {
		return ""
	}
	s.seed = s.seed*1664525 + 1013904223
	fate := s.armed[int(s.seed>>16)%len(s.armed)]
	if fate != "" {
		s.seen[fate]++
	}
	return fate
}

func (s *store) Speed(context.Context) (destination.Speed, error) {
	return destination.Speed{Speed: rpc.Speed{MaximumBatchSize: 3, MaximumParallelBatches: s.parallel, MaximumRecordsPerSecond: 1_000_000}}, nil
}

func (s *store) Close() error { return nil }

var errDead = &destination.CallError{Outcome: destination.OutcomeCanceled, Message: "the process is dead"}

func (s *store) Send(_ context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return destination.Reply{}, errDead
	}
	fate := s.fate()
	reach := len(records)
	switch fate {
	case fateRefused, fateThrottled, fateGone, fateStop, fateCancel:
		reach = 0
	case fateHalf:
		reach /= 2
	}
	var reply destination.Reply
	for i, raw := range records {
		fields, err := read(raw)
		if err != nil {
			return reply, err
		}
		key := fields["id"]
		s.watch(key, fields["at"], plan.Operation)
		if i >= reach {
			continue
		}
		ok := s.take(plan.Operation, key, fields)
		if fate == fateRejects && i%2 == 0 {
			ok = false
		}
		reply.Results = append(reply.Results, rpc.RecordResult{Identifier: []byte(key), Success: ok})
	}
	return s.answer(fate, reply, plan.Operation == rpc.OperationDelete)
}

func read(raw []byte) (map[string]string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("read record %s: %w", raw, err)
	}
	fields := map[string]string{}
	for name, value := range members {
		fields[name] = string(value)
	}
	return fields, nil
}

// watch notices records that are sent although their acknowledgement is certain.
func (s *store) watch(key, at, operation string) {
	w, spoken := s.words[key]
	last, certain := s.settled[key]
	if spoken && w.success && w.delete == (operation == rpc.OperationDelete) || certain && last == at {
		s.twice = fmt.Sprintf("%s %s at %q was sent again after its acknowledgement", operation, key, at)
	}
	if !spoken { // under way: refused, unless something else is known
		s.words[key] = word{delete: operation == rpc.OperationDelete}
	}
}

// take applies one record and reports whether it was taken.
func (s *store) take(operation, key string, fields map[string]string) bool {
	if s.refuses[key] > 0 {
		s.refuses[key]--
		return false
	}
	into := s.records
	if s.next != nil {
		into = s.next
	}
	old, there := into[key]
	switch {
	case s.log:
		into[key] = stored{fields, old.copies + 1}
	case operation == rpc.OperationDelete:
		delete(into, key)
	case operation == rpc.OperationInsert && there, operation == rpc.OperationUpdate && !there:
		return s.skipGood
	default:
		merged := maps.Clone(old.fields)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, fields)
		into[key] = stored{merged, 1}
	}
	return true
}

// answer decides what the caller gets to see, and keeps account of it.
func (s *store) answer(fate string, reply destination.Reply, deleted bool) (destination.Reply, error) {
	failure := func(c destination.CallError) (destination.Reply, error) {
		c.Method, c.Message = rpc.MethodSyncBatch, fate
		return destination.Reply{}, &c
	}
	switch fate {
	case fateRefused, fateStored:
		return failure(destination.CallError{Outcome: destination.OutcomeRPCError, Code: -32000})
	case fateHalf:
		return failure(destination.CallError{Outcome: destination.OutcomeTimeout})
	case fateLost:
		return failure(destination.CallError{Outcome: destination.OutcomeNetwork})
	case fateThrottled:
		return failure(destination.CallError{Outcome: destination.OutcomeStatus, Status: statusThrottled, RetryAfter: "3"})
	case fateGone:
		return failure(destination.CallError{Outcome: destination.OutcomeDNS})
	case fateStop:
		s.end(ErrStop)
		return failure(destination.CallError{Outcome: destination.OutcomeCanceled})
	case fateCancel:
		s.end(context.Canceled)
		return failure(destination.CallError{Outcome: destination.OutcomeCanceled})
	case fateSilent:
		reply.Results = reply.Results[:len(reply.Results)/2]
	}
	if fate != fateDoubtful {
		for _, r := range reply.Results {
			s.words[string(r.Identifier)] = word{delete: deleted, success: r.Success}
		}
	}
	s.disturb(fate, &reply)
	return reply, nil
}

// disturb changes an answer that keeps its meaning, or contradicts itself.
func (s *store) disturb(fate string, reply *destination.Reply) {
	switch fate {
	case fateDoubtful:
		for _, r := range slices.Clone(reply.Results) {
			r.Success = !r.Success
			reply.Results = append(reply.Results, r)
		}
	case fateStrange:
		slices.Reverse(reply.Results)
		reply.Results = append(reply.Results, rpc.RecordResult{Identifier: []byte("4711"), Success: true})
	case fateIdentifier:
		for i := range reply.Results {
			reply.Results[i].Identifier = []byte(strconv.Quote(string(reply.Results[i].Identifier)))
		}
	}
}

// swapStore can replace its whole table.
type swapStore struct{ *store }

// Swap implements destination.Swapper.
func (s swapStore) Swap(context.Context, *destination.Plan) (destination.Swap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = map[string]stored{}
	return s, nil
}

// Commit fails now and then, before or after the table took its place.
func (s swapStore) Commit(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errDead
	}
	fate := s.fate()
	switch fate {
	case fateRefused, fateStop, fateCancel, fateGone, fateThrottled:
		_, err := s.answer(fate, destination.Reply{}, false)
		return err
	}
	if s.next != nil { // else an earlier try has done it, and its answer was lost
		s.records, s.next = s.next, nil
		s.commits++
	}
	switch fate {
	case fateStored, fateLost, fateHalf:
		_, err := s.answer(fate, destination.Reply{}, false)
		return err
	}
	return nil
}

// Abort drops the sent records.
func (s swapStore) Abort() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = nil
	return nil
}
