package line

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// replicas are the processes of one destination. With more than one of them
// consecutive calls of a check go to each in turn, so that nothing which one of
// them keeps for itself helps the next call (spec 4.2, statelessness rules 1 to
// 3). Every check is judged that way; only what is about one connection or one
// address stays with the URL itself: kept-alive connections, certificates,
// redirects, other URLs and the plain-http probe.
type replicas struct {
	Names []string       // as they may be shown
	Lines []*wire.Client // the first is that of the URL
	turns sync.Map       // check: *atomic.Int64
}

// next chooses the replica of a call, from 0.
func (r *replicas) next(check string, req *Request) int {
	if req.replica > 0 {
		return req.replica
	}
	if len(r.Lines) < 2 || req.Conn != nil || req.Plain || req.URL != "" {
		return 0
	}
	turn, _ := r.turns.LoadOrStore(check, new(atomic.Int64))
	return int((turn.(*atomic.Int64).Add(1) - 1) % int64(len(r.Lines)))
}

// callsNamed bounds the calls that a finding names one by one.
const callsNamed = 12

// Describe says to which replica each call of a check went, for a finding.
func (r *replicas) Describe(replies []*exchange.Reply) string {
	if len(r.Lines) < 2 || len(replies) == 0 {
		return ""
	}
	calls := make([][]string, len(r.Lines))
	for i, reply := range replies {
		calls[reply.Replica] = append(calls[reply.Replica], strconv.Itoa(i+1))
	}
	var parts []string
	for i, numbers := range calls {
		if len(numbers) == 0 {
			continue
		}
		word := "call " + numbers[0]
		switch {
		case len(replies) > callsNamed:
			word = strconv.Itoa(len(numbers))
		case len(numbers) > 1:
			word = "calls " + strings.Join(numbers, ", ")
		}
		parts = append(parts, word+" to "+r.Names[i])
	}
	if len(replies) > callsNamed {
		parts[0] = "of its calls " + parts[0]
	}
	return "this check sent " + strings.Join(parts, ", ")
}

// Shown is the name of the one replica whose replies show a finding.
func (r *replicas) Shown(where []*exchange.Reply) string {
	one := -1
	for _, reply := range where {
		switch {
		case reply == nil:
		case one >= 0 && one != reply.Replica:
			return ""
		default:
			one = reply.Replica
		}
	}
	if len(r.Lines) < 2 || one < 0 {
		return ""
	}
	return r.Names[one]
}

// parseEndpoint holds the rules for the URL of an endpoint; what names it. No
// error repeats it, since it may carry a secret.
func parseEndpoint(what, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, Usage("the URL of the %s does not parse: check the escapes, the port and the brackets", what)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, Usage("the URL of the %s must start with https:// (or http:// in development)", what)
	}
	if u.Hostname() == "" {
		return nil, Usage("the URL of the %s has no host: destkit conform https://HOST/PATH", what)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, Usage("the URL of the %s has the port %q: use 1 to 65535", what, p)
		}
	}
	return u, nil
}

// resolveReplicas checks the further URLs: the token goes there, too.
func (s *Session) resolveReplicas() ([]*url.URL, error) {
	if len(s.Target.Replicas) > 0 && s.Target.Handler != nil {
		return nil, Usage("replicas need URLs: a handler in this process is one process")
	}
	all := []*url.URL{s.URL}
	for i, raw := range s.Target.Replicas {
		what := fmt.Sprintf("replica %d", i+1)
		u, err := parseEndpoint(what, raw)
		if err != nil {
			return nil, err
		}
		if u.Scheme != s.URL.Scheme {
			return nil, Usage("the URL of the %s is %s and that of the endpoint %s: one destination is reached in one way", what, u.Scheme, s.URL.Scheme)
		}
		if slices.ContainsFunc(all, func(o *url.URL) bool { return sameEndpoint(o, u) }) {
			return nil, Usage("the URL of the %s is given twice: name each process once", what)
		}
		all = append(all, u)
	}
	return all, nil
}

// sameEndpoint compares what a call is sent to.
func sameEndpoint(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	}
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b) &&
		cmp.Or(a.EscapedPath(), "/") == cmp.Or(b.EscapedPath(), "/") && a.RawQuery == b.RawQuery
}

// connectReplicas opens a client for each further URL with the options of the
// first.
func (s *Session) connectReplicas(first *wire.Client, o wire.Options) error {
	s.Replicas.Lines = []*wire.Client{first}
	for _, u := range s.Target.Replicas {
		o.URL = u
		client, err := wire.New(o)
		if err != nil {
			return Usage("%s", s.Redactor.String(err.Error()))
		}
		s.Replicas.Lines = append(s.Replicas.Lines, client)
	}
	for i, u := range append([]string{s.Target.URL}, s.Target.Replicas...) {
		name := s.Redactor.String(u)
		if i > 0 && slices.Contains(s.Replicas.Names, name) {
			name += fmt.Sprintf(" (replica %d)", i) // what tells them apart is a secret
		}
		s.Replicas.Names = append(s.Replicas.Names, name)
	}
	return nil
}

// Silent asks each further process, and says which one does not answer, and why;
// "" when all do. With one that is not there nothing can be said of the others:
// the calls of every check would be lost in turn.
func (s *Session) Silent(ctx context.Context) (string, error) {
	for i := 1; i < len(s.Replicas.Lines); i++ {
		req := Request{Method: rpc.MethodTestConnection, replica: i}
		r, err := s.Send(ctx, "", req)
		if err == nil && !r.Ended() {
			r, err = s.Send(ctx, "", req) // one lost connection is no proof
		}
		if err != nil {
			return "", err
		}
		if !r.Ended() {
			what, _ := s.WhyUnreached(r, "replica", s.Replicas.Names[i])
			return s.Redactor.String(fmt.Sprintf("%s from the replica %s: %s", NoResponse(r), s.Replicas.Names[i], what)), nil
		}
	}
	return "", nil
}

// Calls counts what was sent.
func (r *replicas) Calls() (n int) {
	for _, c := range r.Lines {
		n += c.Calls()
	}
	return n
}
