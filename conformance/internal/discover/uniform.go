package discover

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// stranger answers every call before or in place of the endpoint: a guard, a router, a web server,
// a gateway. The checks would show nothing about the endpoint, so the run ends with one problem.
// One sound envelope among the planning calls, and everything is judged.
type stranger string

const (
	strangerGuard  stranger = "guard"  // refuses the caller
	strangerRouter stranger = "router" // knows no such path
	strangerPage   stranger = "page"   // answers with a web page
	strangerFault  stranger = "fault"  // fails, whatever the call is
)

// uniform is the problem of planning calls that the same stranger answers; nil of none.
func (s *Discovery) uniform(ctx context.Context, planning []*exchange.Reply) *conformance.Problem {
	if len(planning) < 2 {
		return nil
	}
	who := strangerOf(planning[0])
	another := slices.ContainsFunc(planning, func(r *exchange.Reply) bool { return strangerOf(r) != who })
	if who == "" || another || who == strangerFault && !s.alwaysFails(ctx) {
		return nil
	}
	p := &conformance.Problem{ExitStatus: 3}
	answered := planning[len(planning)-1] // of list_objects or get_sync_speed
	switch who {
	case strangerGuard:
		p.Kind, p.Message = "unauthorized", "every call is refused with "+refusalOf(planning)
		s.explainRefusal(p, answered)
	case strangerRouter:
		p.Kind = "not-found"
		p.Message = fmt.Sprintf("every call is answered with HTTP status %s: the host answers, and there is no endpoint under this path", statusesOf(planning))
		p.Fix = "is the path right? Look at the URL that the endpoint is served under; it gets a POST"
	case strangerPage:
		s.explainPage(p, planning)
	case strangerFault:
		p.Kind, p.Message = "unhealthy", "every call is answered with HTTP status "+statusesOf(planning)
		p.Fix = fixOfFault(answered.Status)
	}
	p.Message = s.Redactor.String(p.Message)
	return p
}

func strangerOf(r *exchange.Reply) stranger {
	switch {
	case !r.OK():
		return ""
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden, credentials.MatchString(refusalText(r)):
		return strangerGuard
	case r.Enveloped():
		return ""
	case slices.Contains(unrouted, r.Status):
		return strangerRouter
	case markup.Match(r.Body):
		return strangerPage
	case slices.Contains(faults, r.Status):
		return strangerFault
	}
	return ""
}

var (
	unrouted = []int{http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed, http.StatusNotImplemented}
	// faults are those of a server that gets to no call. 502 with a text is judged: RPC-001 shows it.
	faults = []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestHeaderFieldsTooLarge}
)

// alwaysFails reports whether a call with params fails like those with empty ones,
// which is what an endpoint that reads a missing member never does.
func (s *Discovery) alwaysFails(ctx context.Context) bool {
	name := "contact"
	if len(s.Opts.Objects) > 0 {
		name = s.Opts.Objects[0]
	}
	o := rpc.Object{APIName: name, Label: name}
	r, err := s.Send(ctx, "", line.Request{Method: rpc.MethodListFields, Params: line.ObjectParams(o), Object: name})
	return err == nil && strangerOf(r) == strangerFault
}

// fixOfFault is what to do where every call fails with a status.
func fixOfFault(status int) string {
	switch status {
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "does the endpoint run, and what is behind it? Judge again when it takes calls"
	case http.StatusRequestHeaderFieldsTooLarge:
		return "make the token and what --header gives shorter, or raise the limit of the server for the head of a request"
	}
	return "the application fails before it gets to the call: look into its log. Is the path right?"
}

// refusalText is the message of an answer that refuses: a JSON-RPC error, or the message of a
// test_connection with success:false.
func refusalText(r *exchange.Reply) string {
	if r.IsError() {
		return r.ErrorText()
	}
	return write.Unhealthy(r)
}

// credentials are words about the caller, looked for only where every planning call fails.
var credentials = regexp.MustCompile(`(?i)\b(un-?authori[sz]ed|un-?authenticated|not (authori[sz]ed|authenticated|logged in)|` +
	`(authentication|authorization)( is| token| header| credentials| failed| required| error|$)|forbidden|access denied|permission denied|` +
	`(invalid|missing|wrong|bad|no|expired|unknown|incorrect) (\w+ ){0,2}(tokens?|credentials?|api[ _-]?keys?|bearer|secrets?|signature)|` +
	`(tokens?|credentials?|api[ _-]?keys?|bearer|secret) (\w+ ){0,2}(is |are |was )?(invalid|missing|required|wrong|expired|incorrect|not valid|rejected|refused|denied|mismatch))\b`)

// refusalOf names the status of refusals, or the message where the status is 200.
func refusalOf(planning []*exchange.Reply) string {
	for _, r := range planning {
		if r.Status != http.StatusUnauthorized && r.Status != http.StatusForbidden {
			return fmt.Sprintf("the message %q", foreign.Clip(refusalText(r), 160))
		}
	}
	return "HTTP status " + statusesOf(planning)
}

// statusesOf lists the statuses, each once, in their order.
func statusesOf(planning []*exchange.Reply) string {
	var out []string
	for _, r := range planning {
		if status := strconv.Itoa(r.Status); !slices.Contains(out, status) {
			out = append(out, status)
		}
	}
	return strings.Join(out, " or ")
}

// explainRefusal names the credentials that were sent: the fix differs.
func (s *Discovery) explainRefusal(p *conformance.Problem, r *exchange.Reply) {
	switch {
	case s.Target.Token == "" && len(s.Target.Headers) > 0:
		p.Message = "no token was sent, the headers that were given are not enough, and " + p.Message
		p.Fix = "give the token of the connection with --token-env NAME (NAME is the environment variable that holds it), or correct --header"
	case s.Target.Token == "":
		p.Message = "no token was sent, and " + p.Message
		p.Fix = "run 'export DESTKIT_TOKEN=…' with the token of the connection, or give --token-env NAME (NAME is the environment variable that holds it)"
	default:
		p.Message += ": the token that was given is refused"
		p.Fix = "look at the variable that --token-env names: the token is sent as Authorization: Bearer TOKEN"
	}
	if scheme, _, _ := strings.Cut(strings.TrimSpace(r.Header.Get("WWW-Authenticate")), " "); scheme != "" && !strings.EqualFold(scheme, "bearer") {
		p.Fix += fmt.Sprintf("; the endpoint asks for %q, and the service sends Bearer only", foreign.Clip(scheme, 40))
	}
	if s.URL.RawQuery != "" {
		p.Fix += "; or look at the secret in the URL"
	}
}

// explainPage distinguishes a web server, a gateway with nothing behind it and an application that
// fails before it reaches the call.
func (s *Discovery) explainPage(p *conformance.Problem, planning []*exchange.Reply) {
	status := planning[0].Status
	what := "a web page (HTML)"
	if !bytes.Contains(bytes.ToLower(planning[0].Body[:min(len(planning[0].Body), 1<<10)]), []byte("html")) {
		what = "a page of markup"
	}
	p.Kind = "web-page"
	p.Message = fmt.Sprintf("every call is answered with HTTP status %s and %s, not with JSON", statusesOf(planning), what)
	if len(planning[0].Redirected) > 0 {
		p.Message += ", behind a redirect"
	}
	switch {
	case status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout:
		p.Fix = "a gateway answers in the place of the endpoint: does the endpoint behind it run?"
	case status >= 500:
		p.Fix = fixOfFault(status)
	default:
		p.Fix = "is the path right? This is a web server or a page to sign in at, not the endpoint"
	}
}

// markup is how HTML and XML begin, whatever their label: some endpoints label JSON as HTML.
var markup = regexp.MustCompile(`^\x{FEFF}?[ \t\r\n]*<[!?a-zA-Z]`)
