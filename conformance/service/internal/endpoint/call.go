package endpoint

import (
	"bytes"
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
)

// Call is one request. Fields above the gap are set before a twist runs; those of the answer are known once done.
type Call struct {
	Number   int // from 1, in the order of arrival
	Came     time.Time
	HTTP     *http.Request // its body is read
	body     []byte
	endpoint *Endpoint
	content
	origin

	Status  int
	header  http.Header
	Answer  []byte
	Ended   time.Time
	Aborted bool // no answer, or half of one
	Done    bool
}

// content is the content of the body of a call.
type content struct {
	JSON       *wire.Node // nil when the body is no JSON
	Method, ID string     // of JSON-RPC
	records    int        // of a lean call
}

// origin is what is known of the connection of a recorded call.
type origin struct {
	opened  time.Time    // when it was there
	ended   *atomic.Bool // wire.Sight.Ended
	Reused  bool         // it had carried another call
	closing bool         // the response announced it
	given   bool         // the request announced it
	Left    bool         // the caller did not wait for the response
}

// read parses the body.
func (c *Call) read() {
	c.JSON, _ = wire.Parse(c.body)
	c.Method, c.ID = jsonvalue.Text(c.JSON.Get("method")), jsonvalue.Text(c.JSON.Get("id"))
}

// Recorded is a call that another party has seen; its response is known by its status and its header.
func (p *Endpoint) Recorded(x *wire.Sight, status int, answer http.Header) *Call {
	target := wire.HideQuery(x.Target)
	path, query, _ := strings.Cut(target, "?")
	c := &Call{
		Number: x.Number, Came: x.Started, Ended: x.Started.Add(x.Total), body: x.RequestBody, Status: status, header: answer,
		Done: true, Aborted: status == 0, endpoint: p, origin: origin{opened: x.Opened, ended: x.Ended, closing: closes(x, answer), Reused: x.Reused},
		HTTP: &http.Request{
			Method: x.Method, RequestURI: target, URL: &url.URL{Path: path, RawQuery: query},
			Proto: "HTTP/1.1", RemoteAddr: x.Peer, Header: http.Header{},
		},
	}
	if x.CallerLeft > 0 {
		c.Left, c.Ended = true, x.Started.Add(x.CallerLeft)
	}
	if c.opened.IsZero() || c.Reused {
		c.opened = c.Came
	}
	for _, h := range x.RequestHeader {
		c.HTTP.Header.Add(h.Name, h.Value)
	}
	c.given = x.Ended != nil && strings.Contains(connectionOf(c.HTTP.Header), "close")
	c.read()
	return c
}

// Kept reports whether the caller of a recorded call could have kept its connection, which the endpoint has not ended by
// itself. False where it is not known, and where the caller left: only a closed connection ends a call early.
func (c *Call) Kept() bool {
	return !c.Left && (c.given || c.ended != nil && !c.ended.Load() && !c.closing)
}

// connectionOf is the Connection of a header.
func connectionOf(h http.Header) string {
	return strings.ToLower(strings.Join(h.Values("Connection"), ","))
}

// closes reports whether a response announces that its connection ends with it.
func closes(x *wire.Sight, answer http.Header) bool {
	says := connectionOf(answer)
	if x.Proto == "HTTP/1.0" || bytes.HasPrefix(x.Raw, []byte("HTTP/1.0")) {
		return !strings.Contains(says, "keep-alive")
	}
	return strings.Contains(says, "close")
}

// Header is a header of the answer.
func (c *Call) Header(name string) string { return c.header.Get(name) }

// Lean is the call without its body, which only its number of records is left of.
func (c *Call) Lean() *Call {
	lean := *c
	lean.records, lean.JSON, lean.body, lean.Answer = len(c.Records()), nil, nil, nil
	return &lean
}

// Param goes down into the params of the call.
func (c *Call) Param(path ...string) *wire.Node {
	return c.JSON.Get(append([]string{"params"}, path...)...)
}

// Records are those of a sync_batch.
func (c *Call) Records() []*wire.Node { return jsonvalue.Items(c.Param("records")) }

// Exchange is a call in the form of a report.
func (c *Call) Exchange(check string, number int) conformance.Exchange {
	secrets := c.endpoint.Owner.secrets
	x := conformance.Exchange{
		ID: number, Check: check, RPC: secrets.String(c.Method), RPCID: secrets.String(c.ID), Started: c.Came.UTC(), Incoming: true,
		DurationMS: float64(c.Ended.Sub(c.Came).Microseconds()) / 1000,
		Request: wire.Message{
			Method: c.HTTP.Method, URL: wire.HideQuery(secrets.String(c.HTTP.URL.RequestURI())), Header: headerLines(c.HTTP.Header, secrets),
			Body: wire.RequestBody(secrets, c.body),
		},
	}
	if c.Aborted || !c.Done {
		x.Kind, x.Error = string(wire.KindCut), "the destination gave no answer"
	} else {
		x.Response = &wire.Response{Proto: c.HTTP.Proto, Status: c.Status, Header: headerLines(c.header, secrets), Body: wire.ResponseBody(secrets, c.Answer)}
	}
	return x
}

// headerLines are headers by name; the order of the wire is not known.
func headerLines(h http.Header, secrets *wire.Redactor) []wire.Header {
	out := []wire.Header{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			out = append(out, wire.Header{Name: name, Value: value})
		}
	}
	return wire.HideHeader(secrets, out)
}

// CountCall counts calls.
func CountCall(*Call) int { return 1 }

// CountRecords counts the records of a batch.
func CountRecords(c *Call) int { return len(c.Records()) + c.records }

// Densest is the window that begins with a call and brings most.
func Densest(all []*Call, weight func(*Call) int, window time.Duration) (most int, within []*Call) {
	calls := slices.SortedFunc(slices.Values(all), func(a, b *Call) int { return a.Came.Compare(b.Came) })
	sum, first := 0, 0
	for i, c := range calls {
		sum += weight(c)
		for c.Came.Sub(calls[first].Came) >= window {
			sum -= weight(calls[first])
			first++
		}
		if sum > most {
			most, within = sum, calls[first:i+1]
		}
	}
	return most, within
}

// Beside are the calls that were under way when c came, itself included.
func Beside(calls []*Call, c *Call) []*Call {
	return lists.Where(calls, func(o *Call) bool { return o == c || !o.Came.After(c.Came) && o.underWay(c.Came) })
}

// underWay reports whether a call that came before that moment surely had not ended.
func (c *Call) underWay(at time.Time) bool {
	if c.Left {
		at = at.Add(time.Second) // its end can be seen so much later than the next call of its caller, on another connection
	}
	return !c.Done || c.Ended.After(at)
}

// MostAtOnce is how many of the calls were under way at once, and which.
func MostAtOnce(calls []*Call) (most int, which []*Call) {
	for _, c := range calls {
		if now := Beside(calls, c); len(now) > most {
			most, which = len(now), now
		}
	}
	return most, which
}

// Connections is how many the calls need, where each takes one from its opening until so long after the call.
func Connections(calls []*Call, after time.Duration) int {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, c := range calls {
		changes = append(changes, change{c.opened, 1}, change{c.Ended.Add(after), -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), a.by-b.by) })
	now, most := 0, 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}

// RateLimitHeader names the limit of a connection, as the judge writes it.
const RateLimitHeader = "X-RateLimit-Limit"

// Since are the calls that came after an answer with this limit.
func Since(calls []*Call, limit string) []*Call {
	i := slices.IndexFunc(calls, func(c *Call) bool {
		var written map[string][]string = c.header // in the case in which it was written
		return c.Done && slices.Contains(written[RateLimitHeader], limit)
	})
	if i < 0 {
		return nil
	}
	return lists.Where(calls, func(c *Call) bool { return c.Came.After(calls[i].Ended) })
}
