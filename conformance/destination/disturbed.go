package destination

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// A single 502, 503, 504 or 429, or a connection that is lost, says nothing of the rule
// that is judged at that moment: the call is repeated, and what it was is one finding of
// ERR-007. What every repeat is answered with is the answer to that call.

// disturbances are the calls of a run that were answered when they were made again.
type disturbances struct {
	mu      sync.Mutex
	replies []*reply
	lasting map[string]bool // kinds of replies that no repeat has changed
}

const (
	mostRepeats   = 3
	firstPause    = 50 * time.Millisecond
	longestRetry  = 2 * time.Second // of a Retry-After
	fewLostAnswer = 2               // lost connections below that are none
)

// isDisturbance reports whether a reply may be one of a disturbance that passes.
func isDisturbance(r *reply) bool {
	return r.Passing() || r.Status == 0 && (r.Kind == wire.KindReset || r.Kind == wire.KindClosed)
}

// send makes a call, and makes it again where a disturbance kept it from its answer.
func (s *session) send(ctx context.Context, check string, req request) (*reply, error) {
	first, err := s.sendOnce(ctx, check, req)
	if err != nil || !isDisturbance(first) || !req.repeatable() || s.watch.expected() {
		return s.saw(req, first), err
	}
	kind := first.Symptom()
	s.disturbed.mu.Lock()
	times := mostRepeats
	if s.disturbed.lasting[kind] {
		times = 1
	}
	s.disturbed.mu.Unlock()
	for n := range times {
		if s.reserve(req.records) != nil {
			break
		}
		if err := elapse(ctx, pauseAfter(first, n)); err != nil {
			return nil, err
		}
		again, err := s.sendOnce(ctx, check, req)
		if unsent, is := errors.AsType[unsentError](err); is {
			err = unsent.error // the first call was sent
		}
		if err != nil {
			return nil, err
		}
		if isDisturbance(again) {
			continue
		}
		if req.once && !acceptedAll(again) {
			// The first call may have had its effect, which the second one has met.
			if !s.judgesAlone.Load() {
				return nil, wire.ErrAway
			}
			break
		}
		s.disturbed.add(first)
		return s.saw(req, again), nil
	}
	s.disturbed.mu.Lock()
	defer s.disturbed.mu.Unlock()
	if s.disturbed.lasting == nil {
		s.disturbed.lasting = map[string]bool{}
	}
	s.disturbed.lasting[kind] = true
	return s.saw(req, first), nil
}

// add keeps a reply that a repeat has changed.
func (d *disturbances) add(r *reply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.replies = append(d.replies, r)
}

// repeatable reports whether a call is an ordinary one, which can be made again.
func (r *request) repeatable() bool {
	return !r.unrepeated && r.httpMethod == "" && r.url == "" && !r.plain && r.conn == nil && !r.cutAtOnce && r.cutReply == 0 && r.cutRequest == 0
}

// pauseAfter is how long the n-th repeat waits.
func pauseAfter(r *reply, n int) time.Duration {
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, longestRetry)
	}
	return firstPause << n
}

// acceptedAll reports whether a batch was taken as a whole.
func acceptedAll(r *reply) bool {
	results := r.RecordResults()
	for _, one := range results.List {
		if one.Success == nil || !*one.Success {
			return false
		}
	}
	return results.IsArray
}

// takesEffectOnce reports whether a batch that is sent twice may be answered in another
// way the second time.
func takesEffectOnce(operation string) bool {
	return operation == rpc.OperationInsert || operation == rpc.OperationDelete
}

// answeredFirst judges the disturbances of the run.
func (sc *scenario) answeredFirst() error {
	sc.disturbed.mu.Lock()
	defer sc.disturbed.mu.Unlock()
	count := map[string]int{}
	lost, inPlace := 0, true
	for _, r := range sc.disturbed.replies {
		what := fmt.Sprintf("HTTP %d", r.Status)
		if r.Status == 0 {
			what = "a lost connection"
			lost++
		}
		count[what]++
		inPlace = inPlace && r.InPlace()
	}
	n := len(sc.disturbed.replies)
	if n == lost && lost < fewLostAnswer {
		return sc.Held()
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", what, quantity.Count(count[what], "time")))
	}
	sc.brokenAs(symptomDisturbed, "", "an answer to each call when it is made",
		fmt.Sprintf("%s of %d had none at first, and were answered when they were made again: %s; the first was %s",
			quantity.Count(n, "call"), sc.replicas.calls(), strings.Join(parts, ", "), cmp.Or(sc.disturbed.replies[0].What(), "a call")),
		sc.disturbed.replies[:min(n, 4)]...)
	if inPlace {
		sc.Explain(func(s string) bool { return s == symptomDisturbed },
			"a platform, gateway or balancer answers "+quantity.List(slices.Sorted(maps.Keys(count)))+" in place of the endpoint now and then: its workers are full or restart, or it has a limit below the one that is declared.", false)
	}
	return sc.Held()
}

const symptomDisturbed = "a disturbance that passes"

// expected reports whether an author's hook takes the endpoint down on purpose.
func (w *watch) expected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.off > 0
}
