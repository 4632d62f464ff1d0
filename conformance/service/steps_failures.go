package service

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// failuresSteps are for FLT: the form of answers, and refused calls (spec 2, 4, 7.1).
func failuresSteps() []engine.Step {
	return []engine.Step{
		step(`^a client makes each call with its own token and the Content-Type "([^"]*)":$`, func(sc *scenario) any { return sc.callsTyped }),
		step(`^what these calls show:$`, func(sc *scenario) any { return sc.remembers }),
		step(`^these calls show the same as before$`, func(sc *scenario) any { return sc.showsTheSame }),
		step(`^each answer is JSON, and says so$`, func(sc *scenario) any { return sc.answersAreJSON }),
		step(`^each answer has a status$`, func(sc *scenario) any { return sc.answersHaveSomeStatus }),
		step(`^the status of each answer is one of "([a-z_, ]+)"$`, func(sc *scenario) any { return sc.statusOneOf }),
		step(`^each call is turned down$`, func(sc *scenario) any { return sc.turnedDown }),
		step(`^no call makes the service fail$`, func(sc *scenario) any { return sc.noFault }),
		step(`^each answer says what is wrong in "message"$`, func(sc *scenario) any { return sc.messagesAreGiven }),
		step(`^each message names what its call has wrong$`, func(sc *scenario) any { return sc.messagesNameFields }),
		step(`^no message tells what the service is made of$`, func(sc *scenario) any { return sc.messagesTellNothing }),
		step(`^each refused method is told which are allowed$`, func(sc *scenario) any { return sc.allowNamesMethods }),
		step(`^each identifier is an integer$`, func(sc *scenario) any { return sc.identifiersAreIntegers }),
		step(`^each time is ISO 8601 in UTC$`, func(sc *scenario) any { return sc.timesAreUTC }),
		step(`^each field name is in snake case$`, func(sc *scenario) any { return sc.namesAreSnakeCase }),
	}
}

// callsTyped makes calls whose bodies come under another name.
func (sc *scenario) callsTyped(kind string, calls *engine.Table) error {
	return sc.callsBy(calls, func(q *request) {
		q.header = http.Header{"Content-Type": {kind}}
	})
}

// remembers keeps what calls show, to be compared.
func (sc *scenario) remembers(calls *engine.Table) error {
	sc.repeated = &repeatable{calls: calls}
	if err := sc.callsEach(itsOwn, calls); err != nil {
		return err
	}
	for _, a := range sc.batch {
		if !accepted(a) {
			return engine.Outcome(conformance.Inconclusive, "", "a step on the way was refused: %s", sc.secrets.String(a.short()))
		}
	}
	sc.repeated.answers = sc.batch
	return nil
}

func (sc *scenario) showsTheSame() error {
	if sc.repeated == nil {
		return engine.Outcome(conformance.HarnessError, "", "no calls were made to compare with")
	}
	was := sc.repeated.answers
	if err := sc.callsEach(itsOwn, sc.repeated.calls); err != nil {
		return err
	}
	for i, a := range sc.batch {
		before, now := jsonvalue.Raw(was[i].at("data")), jsonvalue.Raw(a.at("data"))
		if before != now {
			sc.broken(a.request.path+" shows "+shortened(before), shortened(now), a)
		}
	}
	return sc.heldBy(len(sc.batch), "call")
}

func shortened(text string) string {
	if len(text) > 300 {
		return text[:300] + "…"
	}
	return text
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

func (sc *scenario) statusOneOf(words string) error {
	known := strings.Split(words, ", ")
	return sc.eachAnswer("answer", func(a *answer) {
		if !slices.Contains(known, a.text("status")) {
			sc.broken("a status of "+words, a.short(), a)
		}
	})
}

func (sc *scenario) turnedDown() error {
	return sc.eachAnswer("call", func(a *answer) {
		if !refused(a) || a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden {
			sc.broken(fmt.Sprintf("%s %s is turned down with a status from 400 to 499", a.request.method, a.request.path), a.short(), a)
		}
	})
}

func (sc *scenario) noFault() error {
	return sc.eachAnswer("call", func(a *answer) {
		if !a.OK() || a.Status >= http.StatusInternalServerError {
			sc.broken(fmt.Sprintf("%s %s is answered, or refused with a status from 400 to 499", a.request.method, a.request.path), a.short(), a)
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

// messagesNameFields looks for the word in the third column of the calls.
func (sc *scenario) messagesNameFields() error {
	for i, a := range sc.batch {
		if word := sc.hints[i]; !bytes.Contains(a.Body, []byte(word)) {
			sc.broken("an answer that names "+word, a.short(), a)
		}
	}
	return sc.heldBy(len(sc.batch), "answer")
}

// innards are what only the maker of a service should ever read.
var innards = regexp.MustCompile(`(?i)goroutine \d|\.(go|rb|py|js|java):\d+|traceback|stack trace|\b(select|insert into|update|delete from)\b.{1,80}\b(from|values|set|where)\b|sqlite|SQLSTATE|nil pointer|undefined method|/usr/|/home/`)

func (sc *scenario) messagesTellNothing() error {
	return sc.eachAnswer("answer", func(a *answer) {
		if found := innards.Find(a.Body); found != nil {
			sc.broken("a message for clients", fmt.Sprintf("%s %s shows %q", a.request.method, a.request.path, found), a)
		}
	})
}

// allowNamesMethods: whoever answers 405 names the methods (RFC 9110, 15.5.6).
func (sc *scenario) allowNamesMethods() error {
	seen := 0
	for _, a := range sc.batch {
		if a.Status != http.StatusMethodNotAllowed {
			continue
		}
		if seen++; !strings.Contains(a.Header.Get("Allow"), "GET") {
			sc.broken("a header Allow that names GET", fmt.Sprintf("%s %s: Allow %q", a.request.method, a.request.path, a.Header.Get("Allow")), a)
		}
	}
	if seen == 0 {
		return engine.Outcome(conformance.NotApplicable, "", "the service never answers 405")
	}
	return sc.HeldBy("%s with 405", quantity.Count(seen, "answer"))
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
	switch {
	case n.Is(wire.Array):
		for _, one := range n.Items {
			out = append(out, allMembers(one, place+"[]")...)
		}
	case n.Is(wire.Object):
		for _, m := range n.Members {
			at := strings.TrimPrefix(place+"."+m.Name, ".")
			out = append(out, member{at, m.Name, m.Value})
			if !slices.Contains(free, m.Name) {
				out = append(out, allMembers(m.Value, at)...)
			}
		}
	}
	return out
}

// eachMember looks at all members of the answers of the latest calls.
func (sc *scenario) eachMember(expected string, good func(member) (concerned, ok bool)) error {
	seen := 0
	for _, a := range sc.batch {
		if !accepted(a) {
			return engine.Outcome(conformance.Inconclusive, "", "a step on the way was refused: %s", sc.secrets.String(a.short()))
		}
		for _, m := range allMembers(a.at("data"), "") {
			concerned, ok := good(m)
			if concerned {
				seen++
			}
			if concerned && !ok {
				sc.broken(fmt.Sprintf("%s of %s is %s", m.place, a.request.path, expected), shortened(m.name+": "+jsonvalue.Raw(m.value)), a)
			}
		}
	}
	if seen == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "no answer has such a member")
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
		return concerned && !m.value.Is(wire.Null), isUTC(jsonvalue.Text(m.value))
	})
}

// isUTC reports whether a text is an ISO 8601 time in UTC.
func isUTC(text string) bool {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return false
	}
	_, offset := t.Zone()
	return offset == 0
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

func (sc *scenario) namesAreSnakeCase() error {
	return sc.eachMember("a name in snake case", func(m member) (concerned, ok bool) {
		return true, snakeCase.MatchString(m.name)
	})
}
