package line

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// A single 502, 503, 504 or 429, or a connection that is lost, says nothing of the rule
// that is judged at that moment: the call is repeated, and what it was is one finding of
// ERR-007. What every repeat is answered with is the answer to that call.

// disturbances are the calls of a run that were answered when they were made again.
type disturbances struct {
	Mu      sync.Mutex
	Replies []*exchange.Reply
	lasting map[string]bool // kinds of replies that no repeat has changed
}

const (
	MostRepeats   = 3
	firstPause    = 50 * time.Millisecond
	longestRetry  = 2 * time.Second // of a Retry-After
	FewLostAnswer = 2               // lost connections below that are none
)

// IsDisturbance reports whether a reply may be one of a disturbance that passes. A
// connection may be lost behind a 100 Continue as well.
func IsDisturbance(r *exchange.Reply) bool {
	return r.Passing() || r.Status == 0 && (r.Kind == wire.KindReset || r.Kind == wire.KindClosed || r.Kind == wire.KindTruncated && len(r.Interim) > 0)
}

// Send makes a call, and makes it again where a disturbance kept it from its answer.
func (s *Session) Send(ctx context.Context, check string, req Request) (*exchange.Reply, error) {
	first, err := s.sendOnce(ctx, check, req)
	if err != nil || !IsDisturbance(first) || !req.repeatable() || s.Watch.Expected() {
		return s.saw(req, first), err
	}
	kind := first.Symptom()
	s.Disturbed.Mu.Lock()
	times := MostRepeats
	if s.Disturbed.lasting[kind] {
		times = 1
	}
	s.Disturbed.Mu.Unlock()
	for n := range times {
		if s.Reserve(req.Records) != nil {
			break
		}
		if err := Elapse(ctx, PauseAfter(first, n)); err != nil {
			return nil, err
		}
		again, err := s.sendOnce(ctx, check, req)
		if unsent, is := errors.AsType[UnsentError](err); is {
			err = unsent.error // the first call was sent
		}
		if err != nil {
			return nil, err
		}
		if IsDisturbance(again) {
			continue
		}
		if req.Once && !acceptedAll(again) {
			// The first call may have had its effect, which the second one has met.
			if !s.JudgesAlone.Load() {
				return nil, wire.ErrAway
			}
			break
		}
		s.Disturbed.Add(first)
		return s.saw(req, again), nil
	}
	s.Disturbed.Mu.Lock()
	defer s.Disturbed.Mu.Unlock()
	if s.Disturbed.lasting == nil {
		s.Disturbed.lasting = map[string]bool{}
	}
	s.Disturbed.lasting[kind] = true
	return s.saw(req, first), nil
}

// Add keeps a reply that a repeat has changed.
func (d *disturbances) Add(r *exchange.Reply) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.Replies = append(d.Replies, r)
}

// repeatable reports whether a call is an ordinary one, which can be made again.
func (r *Request) repeatable() bool {
	return !r.Unrepeated && r.HTTPMethod == "" && r.URL == "" && !r.Plain && r.Conn == nil && !r.CutAtOnce && r.CutReply == 0 && r.CutRequest == 0
}

// PauseAfter is how long the n-th repeat waits.
func PauseAfter(r *exchange.Reply, n int) time.Duration {
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, longestRetry)
	}
	return firstPause << n
}

// acceptedAll reports whether a batch was taken as a whole.
func acceptedAll(r *exchange.Reply) bool {
	results := r.RecordResults()
	for _, one := range results.List {
		if one.Success == nil || !*one.Success {
			return false
		}
	}
	return results.IsArray
}

// TakesEffectOnce reports whether a batch that is sent twice may be answered in another
// way the second time.
func TakesEffectOnce(operation string) bool {
	return operation == rpc.OperationInsert || operation == rpc.OperationDelete
}

const SymptomDisturbed = "a disturbance that passes"

// Expected reports whether an author's hook takes the endpoint down on purpose.
func (w *watch) Expected() bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Off > 0
}
