package rules

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

type (
	reply  = exchange.Reply
	result = exchange.Result
)

// Terms are what a run was told: deadlines, and what must not be in a reply.
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

	missing *reply // a planning reply that did not arrive
}

// Breach is one way in which a rule is broken.
type Breach struct {
	// Symptom is a word for what was seen, by which a defect is known again in another rule;
	// "": the kind of the first reply.
	Symptom, Operation, Expected, Actual string
	Where                                []*reply
	Cause, Fix                           string // "" for those of the catalogue
	Observed                             bool   // what was exchanged excludes any other cause
	Curl                                 string // "" for the call of the first reply
}

// Claim judges a look: nil when it holds, ErrBroken when breaches say otherwise, *Undecided
// when the exchanges do not decide.
type Claim func(*Look) error

// ErrBroken says that a look has breaches.
var ErrBroken = errors.New("rule broken")

// Undecided is why a claim neither holds nor is broken.
type Undecided struct {
	Status  conformance.Status // NotApplicable, Inconclusive or HarnessError
	Decider string             // what would decide it
	Reason  string
}

func (u *Undecided) Error() string { return string(u.Status) + ": " + u.Reason }

func notApplicable(format string, args ...any) error {
	return &Undecided{conformance.NotApplicable, "", fmt.Sprintf(format, args...)}
}

func inconclusive(decider, format string, args ...any) error {
	return &Undecided{conformance.Inconclusive, decider, fmt.Sprintf(format, args...)}
}

// held ends a claim.
func (l *Look) held() error {
	if len(l.Breaches) > 0 {
		return ErrBroken
	}
	return nil
}

// broken adds a breach: what was expected, what was seen, in which replies.
func (l *Look) broken(expected, actual string, where ...*reply) {
	l.brokenAs("", "", expected, actual, where...)
}

// brokenFor is broken for one operation.
func (l *Look) brokenFor(operation, expected, actual string, where ...*reply) {
	l.brokenAs("", operation, expected, actual, where...)
}

// brokenAs is brokenFor with a word for what was seen.
func (l *Look) brokenAs(symptom, operation, expected, actual string, where ...*reply) {
	l.Breaches = append(l.Breaches, Breach{Symptom: symptom, Operation: operation, Expected: expected, Actual: actual, Where: where})
}

// brokenBy is brokenAs where a cause is seen; "" for none.
func (l *Look) brokenBy(cause, symptom, operation, expected, actual string, where ...*reply) {
	l.brokenAs(symptom, operation, expected, actual, where...)
	l.Breaches[len(l.Breaches)-1].Cause = cause
}

func (l *Look) note(format string, args ...any) {
	l.Notes = append(l.Notes, fmt.Sprintf(format, args...))
}

// of returns the replies of a method.
func (l *Look) of(method string) []*reply {
	return lists.Where(l.Replies, func(r *reply) bool { return r.Method == method })
}

// replyClaim says what is wrong with one reply: expected and actual, both "" when the
// claim holds.
type replyClaim func(r *reply) (expected, actual string)

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
	has := func(op string) bool { return slices.Contains(listed, op) }
	switch operation {
	case rpc.OperationUpsert:
		return has(rpc.OperationUpsert) || has(rpc.OperationMirror)
	case rpc.OperationDelete:
		return has(rpc.OperationMirror)
	default:
		return has(operation)
	}
}

func text(n *wire.Node) string {
	if n.Is(wire.String) {
		return n.Text
	}
	return ""
}
