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

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// replicas are the processes of one destination. Consecutive calls of a check go to each in turn,
// so that nothing which one of them keeps for itself helps the next call (spec 4.2, statelessness
// rules 1 to 3). Only calls about one connection or one address stay with the URL itself:
// kept-alive connections, certificates, redirects and the plain-http probe.
type replicas struct {
	Names []string       // as they may be shown
	Lines []*wire.Client // the first is that of the URL
	urls  []*url.URL
	turns sync.Map // check: *atomic.Int64
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

// Describe names the replica that each call of a check went to, for a finding.
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
		word := quantity.Noun(len(numbers), "call") + " " + strings.Join(numbers, ", ")
		if len(replies) > callsNamed {
			word = strconv.Itoa(len(numbers))
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
	where = lists.Where(where, func(reply *exchange.Reply) bool { return reply != nil })
	if len(r.Lines) < 2 || len(where) == 0 {
		return ""
	}
	one := where[0].Replica
	if slices.ContainsFunc(where, func(reply *exchange.Reply) bool { return reply.Replica != one }) {
		return ""
	}
	return r.Names[one]
}

// parseEndpoint checks the URL of what; no error repeats it, since it may carry a secret.
func parseEndpoint(what, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, conformance.Usage("the URL of the %s does not parse: check the escapes, the port and the brackets", what)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, conformance.Usage("the URL of the %s must start with https:// (or http:// in development)", what)
	case u.Hostname() == "":
		return nil, conformance.Usage("the URL of the %s has no host: destkit conform https://HOST/PATH", what)
	}
	if n, err := strconv.Atoi(cmp.Or(u.Port(), "1")); err != nil || n < 1 || n > 65535 {
		return nil, conformance.Usage("the URL of the %s has the port %q: use 1 to 65535", what, u.Port())
	}
	return u, nil
}

// resolveReplicas checks the further URLs: the token goes there, too.
func (s *Session) resolveReplicas() error {
	if len(s.Target.Replicas) > 0 && s.Target.Handler != nil {
		return conformance.Usage("replicas need URLs: a handler in this process is one process")
	}
	all := []*url.URL{s.URL}
	for i, raw := range s.Target.Replicas {
		what := fmt.Sprintf("replica %d", i+1)
		u, err := parseEndpoint(what, raw)
		switch {
		case err != nil:
			return err
		case u.Scheme != s.URL.Scheme:
			return conformance.Usage("the URL of the %s is %s and that of the endpoint %s: one destination is reached in one way", what, u.Scheme, s.URL.Scheme)
		case slices.ContainsFunc(all, func(o *url.URL) bool { return sameEndpoint(o, u) }):
			return conformance.Usage("the URL of the %s is given twice: name each process once", what)
		}
		all = append(all, u)
	}
	s.Replicas.urls = all
	return nil
}

// sameEndpoint reports whether two URLs lead to the same endpoint.
func sameEndpoint(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	}
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b) &&
		cmp.Or(a.EscapedPath(), "/") == cmp.Or(b.EscapedPath(), "/") && a.RawQuery == b.RawQuery
}

// connectAll opens a client for each URL with the same options.
func (s *Session) connectAll(o wire.Options) error {
	all := append([]string{s.Target.URL}, s.Target.Replicas...)
	for _, o.URL = range all {
		client, err := wire.New(o)
		if err != nil {
			return conformance.Usage("%s", s.Redactor.String(err.Error()))
		}
		s.Replicas.Lines = append(s.Replicas.Lines, client)
	}
	s.Client = s.Replicas.Lines[0]
	for i, u := range all { // when the redactor knows the secrets of all
		name := s.Redactor.String(u)
		if i > 0 && slices.Contains(s.Replicas.Names, name) {
			name += fmt.Sprintf(" (replica %d)", i) // what distinguishes them is a secret
		}
		s.Replicas.Names = append(s.Replicas.Names, name)
	}
	return nil
}

// Silent calls each further process, and returns which one does not answer, and why; "" when all
// do. The calls of every check to a missing one would be lost in turn.
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
