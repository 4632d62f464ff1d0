package loadgen

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// explainPlanning says in words what a planning call met: before a load there is
// one error and no table of kinds.
func explainPlanning(e *wire.Endpoint, err error) error {
	var status *rpc.StatusError
	if errors.As(err, &status) {
		if refused := status.Status == 401 || status.Status == 403; refused && !tokenSent(e) {
			return fmt.Errorf("no token was sent, and the endpoint answers HTTP %d: %s", status.Status, giveToken)
		} else if refused {
			return fmt.Errorf("the endpoint refuses the token (HTTP %d): is --token-env right?", status.Status)
		}
		if status.Status == 400 && speaksOfTLS(status.Body) {
			return fmt.Errorf("%s: %s", called(err), wire.TLSPort)
		}
		return fmt.Errorf("%s: %s", called(err), e.Redact(wire.StatusText(status.Status, []byte(status.Body))))
	}
	if words := lineWords(e, err); words != "" {
		return fmt.Errorf("%s: %s", called(err), e.Redact(words))
	}
	var refused *rpc.Error
	if errors.As(err, &refused) && !tokenSent(e) && authentication.MatchString(refused.Message) {
		return fmt.Errorf("%s; no token was sent: %s", e.Redact(err.Error()), giveToken)
	}
	return errors.New(e.Redact(err.Error()))
}

// giveToken is what to do where the endpoint wants a token.
const giveToken = "run 'export DESTKIT_TOKEN=…', or give --token-env NAME (NAME is the environment variable that holds it)"

// authentication is how messages speak of a caller who is not known.
var authentication = regexp.MustCompile(`(?i)authenticat|authori[sz]|credential|token|api[ _-]?key|forbidden|denied`)

// tokenSent reports whether the requests carry a token.
func tokenSent(e *wire.Endpoint) bool { return e.Header.Get("Authorization") != "" }

// speaksOfTLS recognises the page by which servers refuse plain http on a port of
// TLS: that of Go and that of nginx.
func speaksOfTLS(body string) bool {
	lower := strings.ToLower(body)
	return strings.Contains(lower, "http request to an https server") || strings.Contains(lower, "plain http request was sent to https port")
}

// lineWords sorts what went wrong before there was a whole reply; "" for the rest,
// which is about the reply and says so.
func lineWords(e *wire.Endpoint, err error) string {
	text := err.Error()
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial" && !wire.TimedOut(err):
		return wire.Dial(err).Message
	case wire.TimedOut(err):
		return fmt.Sprintf("no whole reply in %s (--planning-timeout)", e.Transport.PlanningTimeout)
	case strings.Contains(text, "HTTP response to HTTPS client"):
		return wire.PlainPort
	case strings.Contains(text, "tls: "), strings.Contains(text, "x509: "):
		return wire.TLS(err).Message
	case strings.Contains(text, `malformed HTTP response "\x15\x03`): // an alert of TLS
		return wire.TLSPort
	case strings.Contains(text, "malformed HTTP"):
		return "the reply is not HTTP: is the port right?"
	case strings.Contains(text, ": send request: "):
		return wire.Call(err, false).Message
	}
	return ""
}

// called is the part of an error of a call that says which it was.
func called(err error) string {
	what, _, _ := strings.Cut(err.Error(), ": ")
	return what
}
