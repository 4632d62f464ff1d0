package loadgen

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// planningError says in words what a planning call met: before a load there is
// one error and no table of kinds.
func (e *endpoint) planningError(err error) error {
	var status *rpc.StatusError
	if errors.As(err, &status) {
		if status.Status == 401 || status.Status == 403 {
			return fmt.Errorf("the endpoint refuses the token (HTTP %d): is --token-env right?", status.Status)
		}
		return fmt.Errorf("%s: %s", called(err), e.redact(statusText(status.Status, []byte(status.Body))))
	}
	if words := e.lineWords(err); words != "" {
		return fmt.Errorf("%s: %s", called(err), e.redact(words))
	}
	return errors.New(e.redact(err.Error()))
}

// lineWords sorts what went wrong before there was a whole reply; "" for the rest,
// which is about the reply and says so.
func (e *endpoint) lineWords(err error) string {
	text := err.Error()
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial" && !timedOut(err):
		return dialFailure(err).Message
	case timedOut(err):
		return fmt.Sprintf("no whole reply in %s (--planning-timeout)", e.transport.PlanningTimeout)
	case strings.Contains(text, "HTTP response to HTTPS client"):
		return "the port does not speak TLS: is the URL to be http://?"
	case strings.Contains(text, "tls: "), strings.Contains(text, "x509: "):
		return tlsFailure(err).Message
	case strings.Contains(text, "malformed HTTP"):
		return "the reply is not HTTP: is the port right?"
	case strings.Contains(text, ": send request: "):
		return callFailure(err, false).Message
	}
	return ""
}

// called is the part of an error of a call that says which it was.
func called(err error) string {
	what, _, _ := strings.Cut(err.Error(), ": ")
	return what
}
