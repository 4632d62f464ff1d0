package service

import (
	"fmt"
	"mime"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/foreign"
)

// failuresSteps are for FLT: the form of answers, and refused calls (spec 2, 4, 7.1).
func failuresSteps() []engine.Step {
	return []engine.Step{
		step(`^what these calls show:$`, (*scenario).remembers),
		step(`^these calls show the same as before$`, (*scenario).showsTheSame),
		step(`^each answer is JSON, and says so$`, (*scenario).answersAreJSON),
		step(`^each answer has a status$`, (*scenario).answersHaveSomeStatus),
		step(`^each answer says what is wrong in "message"$`, (*scenario).messagesAreGiven),
		step(`^each identifier is an integer$`, (*scenario).identifiersAreIntegers),
		step(`^each time is ISO 8601 in UTC$`, (*scenario).timesAreUTC),
		step(`^each field name is in snake case$`, (*scenario).namesAreSnakeCase),
	}
}

// remembers keeps what calls show, to be compared.
func (sc *scenario) remembers(calls *engine.Table) {
	sc.repeated = &repeatable{calls: calls}
	sc.callsBy(calls, func(*request) {})
	for _, a := range sc.batch {
		if !accepted(a) {
			undecided("a step on the way was refused: %s", sc.secrets.String(a.short()))
		}
	}
	sc.repeated.answers = sc.batch
}

func (sc *scenario) showsTheSame() error {
	if sc.repeated == nil {
		return engine.Outcome(conformance.HarnessError, "", "no calls were made to compare with")
	}
	was := sc.repeated.answers
	sc.callsBy(sc.repeated.calls, func(*request) {})
	for i, a := range sc.batch {
		before, now := jsonvalue.Raw(was[i].at("data")), jsonvalue.Raw(a.at("data"))
		if before != now {
			sc.broken(a.request.path+" shows "+foreign.Clip(before, longest), foreign.Clip(now, longest), a)
		}
	}
	return sc.heldBy(len(sc.batch), "call")
}

func (sc *scenario) answersAreJSON() error {
	return sc.eachAnswer("answer", func(a *answer) {
		kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
		switch {
		case !a.OK() || a.json == nil:
			sc.broken("an answer in JSON", a.short(), a)
		case err != nil || kind != "application/json":
			sc.broken("Content-Type: application/json", fmt.Sprintf("%s %s: Content-Type %q", a.request.method, a.request.path, a.Header.Get("Content-Type")), a)
		}
	})
}

// answersHaveSomeStatus leaves the word to other checks: errors have an integer in
// the live dialect.
func (sc *scenario) answersHaveSomeStatus() error {
	return sc.eachAnswer("answer", func(a *answer) {
		if n := a.at("status"); !n.Is(wire.String) && !n.Is(wire.Number) {
			sc.broken("a member status", a.short(), a)
		}
	})
}

func (sc *scenario) messagesAreGiven() error {
	return sc.eachAnswer("answer", func(a *answer) {
		if strings.TrimSpace(a.text("message")) == "" {
			sc.broken("a message that says what is wrong", a.short(), a)
		}
	})
}

// member is a member of an answer, with its place.
type member struct {
	place, name string
	value       *wire.Node
}

// free are members whose own members are named by clients or destinations.
var free = []string{"connection_details", "advanced_configuration", "configurable_field_definitions", "schema"}

// allMembers are all members below data, but for those of free objects.
func allMembers(n *wire.Node, place string) []member {
	var out []member
	for _, one := range jsonvalue.Items(n) {
		out = append(out, allMembers(one, place+"[]")...)
	}
	for _, m := range jsonvalue.Members(n) {
		at := strings.TrimPrefix(place+"."+m.Name, ".")
		out = append(out, member{at, m.Name, m.Value})
		if !slices.Contains(free, m.Name) {
			out = append(out, allMembers(m.Value, at)...)
		}
	}
	return out
}

// eachMember looks at all members of the answers of the latest calls.
func (sc *scenario) eachMember(expected string, good func(member) (concerned, ok bool)) error {
	seen := 0
	for _, a := range sc.batch {
		if !accepted(a) {
			undecided("a step on the way was refused: %s", sc.secrets.String(a.short()))
		}
		for _, m := range allMembers(a.at("data"), "") {
			concerned, ok := good(m)
			if concerned {
				seen++
			}
			if concerned && !ok {
				sc.broken(fmt.Sprintf("%s of %s is %s", m.place, a.request.path, expected), foreign.Clip(m.name+": "+jsonvalue.Raw(m.value), longest), a)
			}
		}
	}
	if seen == 0 {
		undecided("no answer has such a member")
	}
	return sc.heldBy(seen, "member")
}

func (sc *scenario) identifiersAreIntegers() error {
	return sc.eachMember("an integer", func(m member) (concerned, ok bool) {
		concerned = m.name == "id" || strings.HasSuffix(m.name, "_id")
		return concerned && !m.value.Is(wire.Null), m.value.IsInteger()
	})
}

func (sc *scenario) timesAreUTC() error {
	return sc.eachMember("an ISO 8601 time in UTC", func(m member) (concerned, ok bool) {
		concerned = strings.HasSuffix(m.name, "_at") || m.name == "scheduled_execution_time"
		return concerned && !m.value.Is(wire.Null), jsonvalue.IsMoment(m.value)
	})
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

func (sc *scenario) namesAreSnakeCase() error {
	return sc.eachMember("a name in snake case", func(m member) (concerned, ok bool) {
		return true, snakeCase.MatchString(m.name)
	})
}
