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
	"github.com/destkit/destkit/conformance/internal/wire"
)

// failuresSteps are for FLT: the form of answers, and refused calls (spec 2, 4, 7.1).
func failuresSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client makes each call with its own token and the Content-Type "([^"]*)":$`, func(p *play) any { return p.callsTyped }),
		step(`^what these calls show:$`, func(p *play) any { return p.remembers }),
		step(`^these calls show the same as before$`, func(p *play) any { return p.showsTheSame }),
		step(`^each answer is JSON, and says so$`, func(p *play) any { return p.answersAreJSON }),
		step(`^each answer has a status$`, func(p *play) any { return p.answersHaveSomeStatus }),
		step(`^the status of each answer is one of "([a-z_, ]+)"$`, func(p *play) any { return p.statusOneOf }),
		step(`^each call is turned down$`, func(p *play) any { return p.turnedDown }),
		step(`^no call makes the service fail$`, func(p *play) any { return p.noFault }),
		step(`^each answer says what is wrong in "message"$`, func(p *play) any { return p.messagesAreTold }),
		step(`^each message names what its call has wrong$`, func(p *play) any { return p.messagesNameFields }),
		step(`^no message tells what the service is made of$`, func(p *play) any { return p.messagesTellNothing }),
		step(`^each refused method is told which are allowed$`, func(p *play) any { return p.allowIsTold }),
		step(`^each identifier is an integer$`, func(p *play) any { return p.identifiersAreIntegers }),
		step(`^each time is ISO 8601 in UTC$`, func(p *play) any { return p.timesAreUTC }),
		step(`^each field name is in snake case$`, func(p *play) any { return p.namesAreSnakeCase }),
	}
}

// callsTyped makes calls whose bodies come under another name.
func (p *play) callsTyped(kind string, calls *conformance.Table) error {
	return p.callsBy(calls, func(q *request) {
		q.header = http.Header{"Content-Type": {kind}}
	})
}

// remembers keeps what calls show, to be compared.
func (p *play) remembers(calls *conformance.Table) error {
	p.repeated = &repeatable{calls: calls}
	if err := p.callsEach(itsOwn, calls); err != nil {
		return err
	}
	for _, a := range p.batch {
		if !accepted(a) {
			return conformance.Outcome(conformance.Inconclusive, "", "a step on the way was refused: %s", p.secrets.String(a.short()))
		}
	}
	p.repeated.answers = p.batch
	return nil
}

func (p *play) showsTheSame() error {
	if p.repeated == nil {
		return conformance.Outcome(conformance.HarnessError, "", "no calls were made to compare with")
	}
	was := p.repeated.answers
	if err := p.callsEach(itsOwn, p.repeated.calls); err != nil {
		return err
	}
	for i, a := range p.batch {
		before, now := rawOf(was[i].at("data")), rawOf(a.at("data"))
		if before != now {
			p.broken(a.request.path+" shows "+shortened(before), shortened(now), a)
		}
	}
	p.Proof("%d calls", len(p.batch))
	return p.Held()
}

func shortened(text string) string {
	if len(text) > 300 {
		return text[:300] + "…"
	}
	return text
}

func (p *play) answersAreJSON() error {
	for _, a := range p.batch {
		kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
		switch {
		case !a.OK() || a.json == nil:
			p.broken("an answer in JSON", a.short(), a)
		case err != nil || kind != "application/json":
			p.broken("Content-Type: application/json", fmt.Sprintf("%s %s: Content-Type %q", a.request.method, a.request.path, a.Header.Get("Content-Type")), a)
		}
	}
	p.Proof("%d answers", len(p.batch))
	return p.Held()
}

// answersHaveSomeStatus leaves the word to other checks: errors have an integer in
// the live dialect.
func (p *play) answersHaveSomeStatus() error {
	for _, a := range p.batch {
		if n := a.at("status"); !n.Is(wire.String) && !n.Is(wire.Number) {
			p.broken("a member status", a.short(), a)
		}
	}
	p.Proof("%d answers", len(p.batch))
	return p.Held()
}

func (p *play) statusOneOf(words string) error {
	known := strings.Split(words, ", ")
	for _, a := range p.batch {
		if !slices.Contains(known, a.text("status")) {
			p.broken("a status of "+words, a.short(), a)
		}
	}
	p.Proof("%d answers", len(p.batch))
	return p.Held()
}

func (p *play) turnedDown() error {
	for _, a := range p.batch {
		if !refused(a) || a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden {
			p.broken(fmt.Sprintf("%s %s is turned down with a status from 400 to 499", a.request.method, a.request.path), a.short(), a)
		}
	}
	p.Proof("%d calls", len(p.batch))
	return p.Held()
}

func (p *play) noFault() error {
	for _, a := range p.batch {
		if !a.OK() || a.Status >= http.StatusInternalServerError {
			p.broken(fmt.Sprintf("%s %s is answered, or refused with a status from 400 to 499", a.request.method, a.request.path), a.short(), a)
		}
	}
	p.Proof("%d calls", len(p.batch))
	return p.Held()
}

func (p *play) messagesAreTold() error {
	for _, a := range p.batch {
		if strings.TrimSpace(a.text("message")) == "" {
			p.broken("a message that says what is wrong", a.short(), a)
		}
	}
	p.Proof("%d answers", len(p.batch))
	return p.Held()
}

// messagesNameFields looks for the word in the third column of the calls.
func (p *play) messagesNameFields() error {
	for i, a := range p.batch {
		if word := p.hints[i]; !bytes.Contains(a.Body, []byte(word)) {
			p.broken("an answer that names "+word, a.short(), a)
		}
	}
	p.Proof("%d answers", len(p.batch))
	return p.Held()
}

// innards are what only the maker of a service should ever read.
var innards = regexp.MustCompile(`(?i)goroutine \d|\.(go|rb|py|js|java):\d+|traceback|stack trace|\b(select|insert into|update|delete from)\b.{1,80}\b(from|values|set|where)\b|sqlite|SQLSTATE|nil pointer|undefined method|/usr/|/home/`)

func (p *play) messagesTellNothing() error {
	for _, a := range p.batch {
		if found := innards.Find(a.Body); found != nil {
			p.broken("a message for clients", fmt.Sprintf("%s %s shows %q", a.request.method, a.request.path, found), a)
		}
	}
	p.Proof("%d answers", len(p.batch))
	return p.Held()
}

// allowIsTold: whoever answers 405 names the methods (RFC 9110, 15.5.6).
func (p *play) allowIsTold() error {
	seen := 0
	for _, a := range p.batch {
		if a.Status != http.StatusMethodNotAllowed {
			continue
		}
		if seen++; !strings.Contains(a.Header.Get("Allow"), "GET") {
			p.broken("a header Allow that names GET", fmt.Sprintf("%s %s: Allow %q", a.request.method, a.request.path, a.Header.Get("Allow")), a)
		}
	}
	if seen == 0 {
		return conformance.Outcome(conformance.NotApplicable, "", "the service never answers 405")
	}
	p.Proof("%d answers with 405", seen)
	return p.Held()
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
func (p *play) eachMember(expected string, good func(member) (concerned, ok bool)) error {
	seen := 0
	for _, a := range p.batch {
		if !accepted(a) {
			return conformance.Outcome(conformance.Inconclusive, "", "a step on the way was refused: %s", p.secrets.String(a.short()))
		}
		for _, m := range allMembers(a.at("data"), "") {
			concerned, ok := good(m)
			if concerned {
				seen++
			}
			if concerned && !ok {
				p.broken(fmt.Sprintf("%s of %s is %s", m.place, a.request.path, expected), shortened(m.name+": "+rawOf(m.value)), a)
			}
		}
	}
	if seen == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no answer has such a member")
	}
	p.Proof("%d members", seen)
	return p.Held()
}

func (p *play) identifiersAreIntegers() error {
	return p.eachMember("an integer", func(m member) (concerned, ok bool) {
		concerned = m.name == "id" || strings.HasSuffix(m.name, "_id")
		return concerned && !m.value.Is(wire.Null), m.value.IsInteger()
	})
}

func (p *play) timesAreUTC() error {
	return p.eachMember("an ISO 8601 time in UTC", func(m member) (concerned, ok bool) {
		concerned = strings.HasSuffix(m.name, "_at") || m.name == "scheduled_execution_time"
		return concerned && !m.value.Is(wire.Null), isUTC(stringOf(m.value))
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

func (p *play) namesAreSnakeCase() error {
	return p.eachMember("a name in snake case", func(m member) (concerned, ok bool) {
		return true, snakeCase.MatchString(m.name)
	})
}
