package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// destinationsSteps are for DST: connections to destinations (spec 2.2).
func destinationsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a connection(?: whose URL ends in "([^"]+)")?(?: with the credentials (\{.+\}))?(?: to an endpoint whose test (.+))?$`,
			func(p *play) any { return p.aConnection }),
		step(`^the endpoint's test (passes|says|fails|is|gets|lacks)(.*)$`, func(p *play) any { return p.testChanges }),
		step(`^a client (fetches|lists|saves) the destination(?: again)?$`, func(p *play) any { return p.looksAtDestination }),
		step(`^a client looks at the destination in every way$`, func(p *play) any { return p.looksInEveryWay }),
		step(`^a client updates the destination with (\{.*\})(, a moment later)?$`, func(p *play) any { return p.updatesDestination }),
		step(`^the list shows the destination (once|no more)$`, func(p *play) any { return p.isListed }),
		step(`^some step of the latest test failed(?: with "([^"]*)")?$`, func(p *play) any { return p.stepFailed }),
		step(`^the service (?:calls|called) the endpoint with the token "(\{secret[a-z-]*\})"$`, func(p *play) any { return p.callsWithToken }),
		step(`^the latest call of the service is test_connection$`, func(p *play) any { return p.latestIsTest }),
		step(`^no destination has the name "(\{name[a-z-]*\})"$`, func(p *play) any { return p.noneIsCalled }),
	}
}

// aConnection makes a connection, whatever the API answers.
func (p *play) aConnection(suffix, credentials, test string) error {
	c := connecting{}
	var err error
	if c.suffix, err = p.spoken(suffix); err != nil {
		return err
	}
	if test != "" {
		if c.script, err = testThat(test); err != nil {
			return err
		}
	}
	given := map[string]any{}
	if credentials != "" {
		text, err := p.spoken(credentials)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return fmt.Errorf("read credentials %s: %w", credentials, err)
		}
	}
	d, err := p.place(c)
	if err != nil {
		return err
	}
	return p.connects(d, d.connection(given))
}

// connects makes a connection to what stands on the stage.
func (p *play) connects(d *destination, body map[string]any) error {
	p.dest = d
	p.vars[callsBefore], p.vars[latestAnswers] = 0, nil
	a, err := p.api(request{method: "POST", path: "/destinations", body: body})
	if err != nil {
		return err
	}
	p.anew("destination")
	p.shows("destination", "creation", a, a.at("data"))
	p.words["url"], p.words["given"] = d.url, d.name
	if d.id = a.id("data", "id"); d.id != 0 {
		p.made(thing{kind: "destinations", id: d.id, name: d.name})
	}
	return nil
}

// errorText is an error of JSON-RPC in words: code and message.
var errorText = regexp.MustCompile(`^fails with the error (-?\d+) "([^"]*)"$`)

// testThat answers test_connection in the way that the words say.
func testThat(words string) (func(*call) *reply, error) {
	result := func(result any) *reply { return &reply{edit: withResult(result)} }
	var by *reply
	switch said, says := between(words, `says "`, `"`); {
	case words == "passes":
		return nil, nil
	case says:
		by = result(map[string]any{"success": false, "error_message": said})
	case words == `lacks "success"`:
		by = result(map[string]any{})
	case words == "is answered with HTTP 500":
		by = &reply{status: http.StatusInternalServerError, body: []byte("out of order")}
	case words == "is answered with a page":
		by = &reply{header: http.Header{"Content-Type": {"text/html"}}, body: []byte("<html><body>Welcome</body></html>")}
	case words == "gets no answer":
		by = &reply{cut: true}
	case errorText.MatchString(words):
		m := errorText.FindStringSubmatch(words)
		by = &reply{edit: withError(json.RawMessage(m[1]), m[2])}
	default:
		return nil, fmt.Errorf("no test %q", words)
	}
	return func(c *call) *reply {
		if c.method == rpc.MethodTestConnection {
			return by
		}
		return nil
	}, nil
}

// between is what stands between two texts that hold the whole.
func between(s, before, after string) (string, bool) {
	if len(s) < len(before)+len(after) || s[:len(before)] != before || s[len(s)-len(after):] != after {
		return "", false
	}
	return s[len(before) : len(s)-len(after)], true
}

// withResult puts another result into an answer of the simulator.
func withResult(result any) func([]byte, http.Header) []byte {
	return func(body []byte, _ http.Header) []byte {
		return raw(map[string]any{"jsonrpc": "2.0", "id": answeredID(body), "result": result})
	}
}

// withError makes an error of it.
func withError(code json.RawMessage, message string) func([]byte, http.Header) []byte {
	return func(body []byte, _ http.Header) []byte {
		return raw(map[string]any{"jsonrpc": "2.0", "id": answeredID(body), "error": map[string]any{"code": code, "message": message}})
	}
}

func answeredID(body []byte) json.RawMessage {
	n, err := wire.Parse(body)
	if err != nil || n.Get("id") == nil {
		return json.RawMessage("null")
	}
	return n.Get("id").Raw
}

func (p *play) testChanges(verb, rest string) error {
	script, err := testThat(verb + rest)
	if err != nil {
		return err
	}
	p.dest.plays(script)
	return nil
}

// here is the path of the latest destination; without one nothing is decided.
func (p *play) here() (string, error) {
	if p.dest == nil || p.dest.id == 0 {
		return "", conformance.Outcome(conformance.Inconclusive, "", "the destination could not be made")
	}
	return "/destinations/" + strconv.FormatInt(p.dest.id, 10), nil
}

func (p *play) looksAtDestination(how string) error {
	path, err := p.here()
	if err != nil {
		return err
	}
	switch how {
	case "lists":
		return p.listsDestination()
	case "saves":
		return p.updatesDestination(`{"name":"{given}"}`, "")
	}
	a, err := p.api(request{method: "GET", path: path})
	if err != nil {
		return err
	}
	p.vars[latestAnswers] = nil
	p.shows("destination", "fetch", a, a.at("data"))
	return nil
}

const timesListed = "times listed"

// listsDestination looks for the latest destination in the list, which begins
// with the newest (spec 8).
func (p *play) listsDestination() error {
	times := 0
	all, err := p.pages("/destinations", func(a *answer, n *wire.Node) {
		if id, _ := n.Get("id").Int(); id == p.dest.id {
			times++
			p.shows("destination", "list", a, n)
		}
	})
	if err != nil {
		return err
	}
	p.vars[timesListed], p.vars[latestAnswers] = times, all
	return nil
}

// mostPages bounds a list that never ends.
const mostPages = 50

// pages goes through a list.
func (p *play) pages(path string, each func(*answer, *wire.Node)) ([]*answer, error) {
	var all []*answer
	for page := 1; page <= mostPages; page++ {
		a, err := p.api(request{method: "GET", path: path + "?per_page=100&page=" + strconv.Itoa(page)})
		if err != nil {
			return nil, err
		}
		all = append(all, a)
		data := a.at("data")
		if !data.Is(wire.Array) {
			p.broken("a list in data (spec 2.1)", a.short(), a)
			return all, p.Held()
		}
		for _, n := range data.Items {
			each(a, n)
		}
		if next, is := a.at("pagination", "next_page").Int(); !is || next <= int64(page) {
			break
		}
	}
	return all, nil
}

func (p *play) isListed(how string) error {
	times, looked := p.vars[timesListed].(int)
	if !looked {
		return conformance.Outcome(conformance.Inconclusive, "", "the list was not looked at")
	}
	if times != map[string]int{"once": 1}[how] {
		p.broken("the destination stands "+how+" in the list", fmt.Sprintf("%d times", times), p.last)
		return p.Held()
	}
	p.Proof("looked for by its id")
	return p.Held()
}

func (p *play) looksInEveryWay() error {
	for _, how := range []string{"fetches", "lists"} {
		if err := p.looksAtDestination(how); err != nil {
			return err
		}
	}
	return p.sends(`{"name":"{given}"}`)
}

// aMoment bounds how long a time stamp may stand still: those without a
// fraction change every second.
const aMoment = 1300 * time.Millisecond

// updatesDestination changes the connection; what it looked like is forgotten.
func (p *play) updatesDestination(change, later string) error {
	if later == "" {
		p.anew("destination")
		return p.sends(change)
	}
	return p.later("destination", "last_tested_at", func() error { return p.sends(change) })
}

// later does something until a moment moves on, or for a second.
func (p *play) later(kind, member string, do func() error) error {
	var first *view
	for deadline := time.Now().Add(aMoment); ; {
		p.anew(kind)
		if first == nil {
			first = p.before[kind]
		}
		p.before[kind] = first
		if err := do(); err != nil {
			return err
		}
		all := p.shown(kind)
		if first == nil || len(all) == 0 || time.Now().After(deadline) || momentOf(all[0].member(member)).After(momentOf(first.member(member))) {
			return nil
		}
		if err := p.sleep(pollAtMost); err != nil {
			return err
		}
	}
}

// sends is the update itself.
func (p *play) sends(change string) error {
	path, err := p.here()
	if err != nil {
		return err
	}
	text, err := p.spoken(change)
	if err != nil {
		return err
	}
	p.vars[callsBefore], p.vars[latestAnswers] = len(p.dest.seen("")), nil
	a, err := p.api(request{method: "PATCH", path: path, body: json.RawMessage(`{"service_connection":` + text + `}`)})
	if err != nil {
		return err
	}
	p.shows("destination", "update", a, a.at("data"))
	return nil
}

// stepFailed looks for the message of a failed step (spec 7.1.3).
func (p *play) stepFailed(message string) error {
	looks, err := p.looked("destination")
	if err != nil {
		return err
	}
	for _, v := range looks {
		found := false
		for _, s := range p.shown("test step") {
			said := stringOf(s.member("error.message"))
			if s.of == v && said != "" && (message == "" || regexp.MustCompile(regexp.QuoteMeta(message)).MatchString(said)) {
				found = true
			}
		}
		if !found {
			p.brokenView(v, "last_test_results", "has a step with an error.message that says "+quoted(message), shownAs(v.member("last_test_results")))
		}
	}
	p.Proof("%d looks", len(looks))
	return p.Held()
}

// quoted is what a message has to say; any will do where none is named.
func quoted(message string) string {
	if message == "" {
		return "why"
	}
	return strconv.Quote(message)
}

// callsWithToken looks at the latest call (spec 5.2.2).
func (p *play) callsWithToken(word string) error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	token, err := p.spoken(word)
	if err != nil {
		return err
	}
	if calls[0].http.Header.Get("Authorization") == "" {
		return conformance.Outcome(conformance.Inconclusive, "", "the service does not take auth_token for the token of a connection")
	}
	last := calls[len(calls)-1]
	if last.http.Header.Get("Authorization") != "Bearer "+token {
		p.brokenCall("Authorization: Bearer "+token, p.secrets.String(last.http.Header.Get("Authorization")), last)
		return p.Held()
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

// latestIsTest tells that the connection was tested (facts A3).
func (p *play) latestIsTest() error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	first, _ := p.vars[callsBefore].(int)
	for _, c := range calls[first:] {
		if c.method == rpc.MethodTestConnection {
			p.Proof("call %d", c.number)
			return p.Held()
		}
	}
	p.brokenCall("a call of test_connection", fmt.Sprintf("%d calls of other methods", len(calls)-first), calls[len(calls)-1])
	return p.Held()
}

const callsBefore = "calls before"

// noneIsCalled looks through the list for what must not have been made.
func (p *play) noneIsCalled(word string) error {
	name, err := p.spoken(word)
	if err != nil {
		return err
	}
	found := false
	all, err := p.pages("/destinations", func(a *answer, n *wire.Node) {
		if stringOf(n.Get("name")) == name {
			found = true
			p.broken("no destination "+name, "it stands in the list", a)
		}
	})
	if err != nil {
		return err
	}
	if !found {
		p.Proof("%d pages", len(all))
	}
	return p.Held()
}
