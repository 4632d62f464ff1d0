// Package rules judges exchanges with a destination: the request and the response.
//
// A rule is a pure function of one exchange, or of a sequence: the same for the calls of a live
// run, which scenarios provoke, for what a proxy passes on, and for a recording. This package sends
// nothing, and knows nothing of what must be stored.
package rules

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// rule defines which exchanges show whether a check of the catalogue holds. A call that may fail
// for a good reason, such as a fault behind the endpoint (spec 4.2.4), decides nothing.
type rule struct {
	takes  func(t *Traffic, c *Call) bool       // which exchanges are put to the claims; nil: none
	with   func(t *Traffic, c *Call, l *Look)   // completes what the claims look at; nil: the exchange alone
	claims []string                             // those that traffic can decide; nil: all of the check
	late   func(t *Traffic, j *judge) []Verdict // judges at the end, from what was counted on the way
}

// ruleset has the rules of checks by their ids.
type ruleset map[string]*rule

// on puts exchanges of a kind to the claims of checks.
func (g ruleset) on(takes func(c *Call) bool, ids ...string) {
	g.onTraffic(func(_ *Traffic, c *Call) bool { return takes(c) }, ids...)
}

// onTraffic is on for what depends on earlier exchanges.
func (g ruleset) onTraffic(takes func(t *Traffic, c *Call) bool, ids ...string) {
	for _, id := range ids {
		g[id] = &rule{takes: takes}
	}
}

// claims and rules are those of all groups of the catalogue.
var claims, rules = func() (map[string]Claim, ruleset) {
	c, g := map[string]Claim{}, ruleset{}
	for _, group := range []func(ruleset) map[string]Claim{
		rpcGroup, httpGroup, tlsGroup, authGroup, planningGroup, speedGroup, resultsGroup, processedGroup, errorsGroup,
	} {
		maps.Copy(c, group(g))
	}
	return c, g
}()

// Sentences are the claims of the catalogue that this package judges.
func Sentences() []string { return slices.Sorted(maps.Keys(claims)) }

// Of is the claim of a sentence, nil for one that is not in Sentences.
func Of(sentence string) Claim { return claims[sentence] }

// Decided are the ids of the checks that traffic alone can decide.
func Decided() []string { return slices.Sorted(maps.Keys(rules)) }

// Decides reports whether traffic alone can decide a check.
func Decides(id string) bool { return rules[id] != nil }

// Concludes reports whether a check is judged at the end, by Traffic.Conclude.
func Concludes(id string) bool { return rules[id] != nil && rules[id].late != nil }

// sameTime is how far apart two answers may be that must agree: a schema may change in time.
const sameTime = time.Minute

// answers takes what the endpoint itself has answered, to any call.
func answers(c *Call) bool { return c.Ended() && !c.refusedOutside() }

// called takes answers to what reads as a call; a body that is no call has its own rules.
func called(c *Call) bool { return answers(c) && (c.form == goodForm || c.form == badParams) }

// good takes answers to calls without a fault.
func good(c *Call) bool { return answers(c) && c.form == goodForm }

// begun takes responses with at least one byte.
func begun(c *Call) bool { return c.Status != 0 && c.Kind != wire.KindCanceled }

// resultOf takes results of one method.
func resultOf(method string) func(c *Call) bool {
	return func(c *Call) bool { return c.form == goodForm && c.Method == method && c.Result() != nil }
}

// late judges at the end only.
func (g ruleset) late(judge func(t *Traffic, j *judge) []Verdict, ids ...string) {
	for _, id := range ids {
		g[id] = &rule{late: judge}
	}
}

// judge is one check that is put to exchanges.
type judge struct {
	check  *conformance.Check
	rule   *rule
	claims []Claim
}

// Verdict is what one exchange, or the end, has shown of a check.
type Verdict struct {
	Check     *conformance.Check
	Call      *Call  // nil of a handshake
	Look      *Look  // with the breaches and notes
	Looked    int    // how many exchanges it represents
	Answers   int    // how many methods have answered, where the whole was judged
	Undecided string // why the exchange decided nothing, "" when it did
}

type (
	reply  = exchange.Reply
	result = exchange.Result
)

// Terms configure a run: deadlines, and what must not be in a reply.
type Terms struct {
	URL             *url.URL
	Profile         conformance.Profile
	PlanningTimeout time.Duration
	BatchTimeout    time.Duration
	Token, Secret   string         // of the URL; "" for none
	JudgeTLS        bool           // of an endpoint that is not in development
	Roots           *x509.CertPool // of the author; nil: public ones

	finders map[string]*wire.Redactor // by secret, of traffic
}

// Look is what a rule looks at: one exchange, or several in the order of their requests.
type Look struct {
	Terms
	Replies   []*reply
	Batches   []*Batch // sync_batch calls with their records
	Latest    []*Batch // those that were sent last
	Handshake *Handshake
	Reached   *float64 // the share of the intended rate; nil when none was measured

	// What the rule has found.
	Breaches []Breach
	Notes    []string
	Proofs   []string // what it rests on that it holds
}

// Breach is one way in which a rule is broken.
type Breach struct {
	// Symptom identifies a defect in other rules; "": the kind of the first reply.
	Symptom, Operation, Expected, Actual string
	Where                                []*reply
	Cause, Fix                           string // "" for those of the catalogue
	Observed                             bool   // what was exchanged excludes any other cause
	Curl                                 string // "" for the call of the first reply
}

// Claim judges a look: nil when it holds, errBroken when it has breaches, *Undecided when the
// exchanges do not decide.
type Claim func(*Look) error

// errBroken means that a look has breaches.
var errBroken = errors.New("rule broken")

// Undecided is why a claim neither holds nor is broken.
type Undecided struct {
	Status  conformance.Status // NotApplicable, Inconclusive or HarnessError
	Decider string             // what would decide it
	Reason  string
}

func (u *Undecided) Error() string { return string(u.Status) + ": " + u.Reason }

// held ends a claim.
func (l *Look) held() error {
	if len(l.Breaches) > 0 {
		return errBroken
	}
	return nil
}

// heldBy ends a claim that is INCONCLUSIVE unless something was seen.
func (l *Look) heldBy(seen bool, format string, args ...any) error {
	if err := l.held(); err != nil || seen {
		return err
	}
	return &Undecided{Status: conformance.Inconclusive, Reason: fmt.Sprintf(format, args...)}
}

// broken adds a breach, which the caller may complete.
func (l *Look) broken(expected, actual string, where ...*reply) *Breach {
	l.Breaches = append(l.Breaches, Breach{Expected: expected, Actual: actual, Where: where})
	return &l.Breaches[len(l.Breaches)-1]
}

// brokenIn is broken in the reply to a batch.
func (l *Look) brokenIn(b *Batch, expected, actual string) *Breach {
	breach := l.broken(expected, actual, b.Reply)
	breach.Operation = b.Operation
	return breach
}

func (l *Look) note(format string, args ...any) {
	l.Notes = append(l.Notes, fmt.Sprintf(format, args...))
}

// of returns the replies of a method.
func (l *Look) of(method string) []*reply {
	return lists.Where(l.Replies, func(r *reply) bool { return r.Method == method })
}

// replyClaim describes the fault of one reply; actual is "" when the claim holds.
type replyClaim func(r *reply) (expected, actual string)

// expects is the claim that a reply passes a test; one that does not is shown as it came.
func expects(expected string, passes func(r *reply) bool) replyClaim {
	return func(r *reply) (string, string) {
		if passes(r) {
			return "", ""
		}
		return expected, r.Short()
	}
}

// each is the claim about every reply of a look.
func each(claim replyClaim) Claim {
	return func(l *Look) error { return l.every(l.Replies, claim) }
}

// every applies a claim to each of some replies.
func (l *Look) every(replies []*reply, claim replyClaim) error {
	if len(replies) == 0 {
		return &Undecided{conformance.HarnessError, "", "no call was made"}
	}
	for _, r := range replies {
		if expected, actual := claim(r); actual != "" {
			l.broken(expected, r.What()+": "+actual, r)
		}
	}
	return l.held()
}

// Every is the same for a claim of the caller.
func Every(replies []*reply, claim func(r *exchange.Reply) (expected, actual string)) (*Look, error) {
	l := &Look{Replies: replies}
	return l, l.every(replies, claim)
}

// Accepts reports whether batches of an operation may be sent to an object that lists
// these. A mirror sync sends upsert and delete batches (spec 4.2).
func Accepts(listed []string, operation string) bool {
	mirrored := operation == rpc.OperationUpsert || operation == rpc.OperationDelete
	return operation != rpc.OperationDelete && slices.Contains(listed, operation) || mirrored && slices.Contains(listed, rpc.OperationMirror)
}

func text(n *wire.Node) string {
	if n.Is(wire.String) {
		return n.Text
	}
	return ""
}
