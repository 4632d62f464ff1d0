package rules

import (
	"maps"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
)

// rule says which exchanges show whether a check of the catalogue holds. It takes only
// what leaves no doubt: a call that may fail for a good reason, such as a fault behind the
// endpoint (spec 4.2.4), decides nothing.
type rule struct {
	// takes reports whether the claims of the check are put to an exchange; nil: to none.
	takes func(t *Traffic, c *Call) bool
	// with completes what the claims look at, where that is more than the exchange.
	with func(t *Traffic, c *Call, l *Look)
	// claims are those of the check that traffic can decide; nil: all of them.
	claims []string
	// late judges at the end, from what was counted on the way.
	late func(t *Traffic, j *judge) []Verdict
}

// group is one group of the catalogue: its sentences, and its rules by check.
type group struct {
	claims map[string]Claim
	rules  map[string]*rule
}

// on puts exchanges of a kind to the claims of checks.
func (g *group) on(takes func(c *Call) bool, ids ...string) {
	g.onTraffic(func(_ *Traffic, c *Call) bool { return takes(c) }, ids...)
}

// onTraffic is on for what depends on earlier exchanges.
func (g *group) onTraffic(takes func(t *Traffic, c *Call) bool, ids ...string) {
	for _, id := range ids {
		g.rules[id] = &rule{takes: takes}
	}
}

// claims and rules are those of all groups.
var claims, rules = func() (map[string]Claim, map[string]*rule) {
	c, r := map[string]Claim{}, map[string]*rule{}
	for _, g := range []group{rpcGroup(), httpGroup(), tlsGroup(), authGroup(), planningGroup(), speedGroup(), resultsGroup(), processedGroup(), errorsGroup()} {
		maps.Copy(c, g.claims)
		maps.Copy(r, g.rules)
	}
	return c, r
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

// sameTime is how far apart two answers may be that must agree: a schema may change,
// though not from one call of a sync to the next.
const sameTime = time.Minute

// answers takes what the endpoint itself has answered, whatever was asked.
func answers(c *Call) bool { return c.Ended() && !c.refusedOutside() }

// called takes answers to what reads as a call; a body that is no call has its own rules.
func called(c *Call) bool { return answers(c) && (c.form == goodForm || c.form == badParams) }

// good takes answers to calls without a fault.
func good(c *Call) bool { return answers(c) && c.form == goodForm }

// begun takes responses of which something came.
func begun(c *Call) bool { return c.Status != 0 && !c.canceled() }

// resultOf takes results of one method.
func resultOf(method string) func(c *Call) bool {
	return func(c *Call) bool { return c.form == goodForm && c.Method == method && c.Result() != nil }
}

// emptyOf takes calls with empty params, which are refused as wrong only by an endpoint that
// wants some; any other error may have another cause.
func emptyOf(method string) func(c *Call) bool {
	return func(c *Call) bool {
		return c.form == goodForm && c.Method == method && c.empty && (c.Result() != nil || c.IsError() && c.ErrorCode() == "-32602")
	}
}

// late judges at the end only.
func (g *group) late(judge func(t *Traffic, j *judge) []Verdict, ids ...string) {
	for _, id := range ids {
		g.rules[id] = &rule{late: judge}
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
	Looked    int    // how many exchanges it stands for
	Answers   int    // how many methods have answered, where the whole was judged
	Undecided string // why the exchange decided nothing, "" when it did
}
