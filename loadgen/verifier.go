package loadgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

const (
	// Without a share, one key in a hundred is verified, within these bounds.
	usualShare                  = 0.01
	leastVerified, mostVerified = 1000, 100_000
	// askedAtOnce is how many keys are in one question.
	askedAtOnce = hook.PageSize
	// mostPending bounds the keys that are looked at again while the window is open.
	mostPending = 10_000
	// mostFailures in a row end a verification: the hook is gone.
	mostFailures = 5
	// windowOfKeys is how many numbers of keys are sorted at once.
	windowOfKeys = 1 << 16
	// interruptedVerify is how long a verification lasts after an interruption.
	interruptedVerify = 10 * time.Second
)

// verifier is a verification under way.
type verifier struct {
	e          *engine
	ask        hook.Readback
	own        map[*keyspace]map[string]int // how often a file has an identifier
	below      uint64
	until      time.Time // the end of the window
	result     *Verification
	unverified map[string]int64
	tallies    map[string]*tally
	page       []*expected
	pending    []*expected // not as they must be, and looked at again
	again      bool        // page is from pending
	failures   int
	uncounted  bool
	progress   func()
}

// verify reads back the run's records, and adds findings to the errors of the result.
func (s *session) verify(ctx context.Context) {
	log, all := s.e.acks, s.e.remembers()
	s.e.acks = nil // batches of the clean-up are not verified
	ended := time.Now()
	if ctx.Err() != nil { // the load was interrupted: its records are still verified
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), interruptedVerify)
		defer cancel()
	}
	v := &verifier{
		e: s.e, ask: s.o.Verify.readback(s.e.end), below: log.below.Load(), until: ended.Add(s.o.Verify.Window),
		result: &Verification{Unverified: []Unverified{}}, unverified: map[string]int64{}, tallies: map[string]*tally{}, own: map[*keyspace]map[string]int{},
	}
	v.progress = func() {
		if s.o.Progress != nil {
			s.o.Progress(Moment{Phase: "verify", Elapsed: time.Since(ended), Records: v.result.Verified, Errors: v.result.Findings()})
		}
	}
	for _, g := range s.e.plan.grounds {
		v.result.Keys += v.keysOf(g, log)
	}
	if s.o.Verify.Share == 0 && v.result.Keys > 0 {
		want := min(max(usualShare*float64(v.result.Keys), leastVerified), mostVerified)
		v.below = min(v.below, threshold(want/float64(v.result.Keys)))
	}
	v.result.Share = float64(v.below) / math.MaxUint64
	for _, g := range s.e.plan.grounds {
		v.verifyKeys(ctx, g, log, all[g])
	}
	v.flush(ctx)
	v.result.Seconds = time.Since(ended).Seconds()
	v.finish(s.result)
	if log.halved {
		s.remark("the memory for the verification was full (%d MiB): %.3g %% of the keys were kept to be verified", mostAcks>>20, 100*log.share())
	}
	if v.uncounted {
		s.remark("the read-back hook gives no count: a key counts as often as it is listed, and a hook that lists each key once cannot show a second copy")
	}
	if r := v.result; r.Lost > 0 && r.Lost == r.Verified {
		s.remark("the read-back hook shows not one of %s: the endpoint stores nothing, or the hook looks elsewhere than the endpoint writes", quantity.Count(r.Lost, "acknowledged record"))
	}
}

// keysOf counts the keys that a run has used in an object.
func (v *verifier) keysOf(g *keyspace, log *acks) int64 {
	for _, t := range log.tasks {
		if t.keyspace != g || !t.own {
			continue
		}
		if v.own[g] == nil {
			v.own[g] = make(map[string]int, len(t.rows))
			for _, r := range t.rows {
				v.own[g][records.Canonical(r.Text[r.From:r.To])]++
			}
		}
		return min(int64(len(v.own[g])), t.turn.Load())
	}
	return g.used.Load()
}

// verifyKeys verifies the keys of one object, a window of their numbers after the other.
func (v *verifier) verifyKeys(ctx context.Context, g *keyspace, log *acks, all []ack) {
	longest := int64(0)
	for i := range all {
		longest = max(longest, int64(all[i].count))
	}
	var writes []write
	for low, more := int64(0), len(all) > 0; more; {
		high, reaches := low+windowOfKeys, false
		writes = writes[:0]
		at := sort.Search(len(all), func(i int) bool { return all[i].key > low-longest })
		for ; at < len(all) && all[at].key < high; at++ {
			a := &all[at]
			reaches = reaches || a.key+int64(a.count) > high
			for key := max(a.key, low); key < min(a.key+int64(a.count), high); key++ {
				if log.chosen(key, v.below) {
					writes = append(writes, write{a, log.tasks[a.task], key, int(a.row) + int(key-a.key)})
				}
			}
		}
		v.keys(ctx, g, writes)
		switch {
		case reaches:
			low = high
		case at < len(all):
			low = all[at].key
		default:
			more = false
		}
	}
}

// keys verifies the keys of some writes.
func (v *verifier) keys(ctx context.Context, g *keyspace, writes []write) {
	slices.SortStableFunc(writes, func(a, b write) int { return cmp.Compare(a.key, b.key) })
	for len(writes) > 0 {
		n := 1
		for n < len(writes) && writes[n].key == writes[0].key {
			n++
		}
		v.key(ctx, g, writes[:n])
		writes = writes[n:]
	}
}

// key verifies one key with all its writes, together with others.
func (v *verifier) key(ctx context.Context, g *keyspace, writes []write) {
	if !slices.ContainsFunc(writes, func(w write) bool { return w.a.state == records.Acked }) {
		return
	}
	v.result.Chosen++
	x, why := expect(g, writes)
	if why == "" && v.own[g][records.Canonical(x.key)] > 1 {
		why = "the data file has the key more than once"
	}
	if why != "" {
		v.unverified[why]++
		return
	}
	if len(v.page) > 0 && v.page[0].keyspace != g {
		v.turn(ctx)
	}
	if v.page = append(v.page, x); len(v.page) == askedAtOnce {
		v.turn(ctx)
	}
}

// turn sends a page of keys to the hook and compares its reply.
func (v *verifier) turn(ctx context.Context) {
	page := v.page
	v.page = nil
	if len(page) == 0 {
		return
	}
	request := hook.ReadbackRequest{Object: page[0].keyspace.object.APIName, IdentifierField: page[0].keyspace.object.Identifier.APIName}
	for _, x := range page {
		request.Identifiers = append(request.Identifiers, x.key)
	}
	reply, err := v.question(ctx, request)
	if err != nil {
		v.unverified[v.e.end.Redact(foreign.Line(err.Error()))] += int64(len(page))
		return
	}
	found := make(map[string]*hook.ReadbackRecord, len(reply.Records))
	for i := range reply.Records {
		found[string(reply.Records[i].Identifier)] = &reply.Records[i]
		v.uncounted = v.uncounted || reply.Records[i].Uncounted
	}
	for _, x := range page {
		wrong := x.compare(found[string(x.key)])
		if len(wrong) > 0 && !v.again && time.Now().Before(v.until) && len(v.pending) < mostPending {
			v.pending = append(v.pending, x)
			continue
		}
		v.result.Verified++
		for _, f := range wrong {
			v.count(x, f)
		}
	}
	v.progress()
}

// question repeats a call where the hook fails: a single slip of it is no finding, and
// no reason to leave a thousand keys unverified.
func (v *verifier) question(ctx context.Context, request hook.ReadbackRequest) (hook.ReadbackReply, error) {
	if v.failures >= mostFailures {
		return hook.ReadbackReply{}, fmt.Errorf("the read-back hook failed %s in a row and was not asked again", quantity.Count(v.failures, "time"))
	}
	reply, err := v.ask(ctx, request)
	if err != nil && ctx.Err() == nil {
		reply, err = v.ask(ctx, request)
	}
	switch {
	case err == nil:
		v.failures = 0
	case ctx.Err() != nil:
		err = errors.New("the verification was interrupted")
	default:
		v.failures++
	}
	return reply, err
}

// flush verifies the rest, and the pending keys until all are as they must be or the
// window has ended.
func (v *verifier) flush(ctx context.Context) {
	v.turn(ctx)
	for len(v.pending) > 0 {
		select {
		case <-time.After(min(200*time.Millisecond, max(time.Until(v.until), 0))):
		case <-ctx.Done():
		}
		pending := v.pending
		v.pending = nil
		v.again = !time.Now().Before(v.until) || ctx.Err() != nil
		for _, x := range pending {
			if len(v.page) > 0 && v.page[0].keyspace != x.keyspace || len(v.page) == askedAtOnce {
				v.turn(ctx)
			}
			v.page = append(v.page, x)
		}
		v.turn(ctx)
	}
}

// count adds a finding.
func (v *verifier) count(x *expected, f finding) {
	switch f.kind {
	case wire.KindLost:
		v.result.Lost++
	case wire.KindDoubled:
		v.result.Doubled++
	case wire.KindUndeleted:
		v.result.Undeleted++
	case wire.KindWrong:
		v.result.Wrong++
	}
	message := foreign.Clip(v.e.end.Redact(foreign.Line(f.message)), wire.LongestMessage)
	key := f.kind + " " + message
	t := v.tallies[key]
	if t == nil {
		if len(v.tallies) >= distinct {
			message, key = "(other messages)", f.kind
			t = v.tallies[key]
		}
		if t == nil {
			t = &tally{Kind: f.kind, Message: message, Example: Example{
				Identifier: v.e.end.Redact(foreign.Clip(x.key, wire.LongestQuote)), At: float64(x.at) / 1e9, Detail: foreign.Clip(v.e.end.Redact(foreign.Line(f.detail)), wire.LongestMessage),
			}}
			v.tallies[key] = t
		}
	}
	t.Count++
}

// finish adds the findings to a result.
func (v *verifier) finish(r *Result) {
	for why, n := range v.unverified {
		v.result.Unverified = append(v.result.Unverified, Unverified{why, n})
	}
	slices.SortFunc(v.result.Unverified, func(a, b Unverified) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	r.Verification = v.result
	for _, t := range v.tallies {
		r.ErrorMessages = append(r.ErrorMessages, ErrorMessage{Kind: t.Kind, Message: t.Message, Count: t.Count, Example: t.Example})
	}
	for kind, n := range map[string]int64{wire.KindLost: v.result.Lost, wire.KindWrong: v.result.Wrong, wire.KindDoubled: v.result.Doubled, wire.KindUndeleted: v.result.Undeleted} {
		if n > 0 {
			r.ErrorsByKind[kind] += n
			r.Errors += n
		}
	}
	slices.SortStableFunc(r.ErrorMessages, func(a, b ErrorMessage) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Message, b.Message))
	})
}
