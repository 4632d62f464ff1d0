// Package proxy sits between a caller of a custom destination and its endpoint: it
// passes every byte on, records what went by and lets a passive judge look at it.
//
// A connection of the caller has one connection to the endpoint, and everything on
// it is passed on as it came: order and case of headers, chunks, trailers, a wrong
// length, a reset. Only the Host header is changed. The proxy repeats nothing and
// waits for nothing by itself. Recording and judging run in parallel: they never
// hold a call, and exchanges beyond their capacity are counted as not judged.
//
// Judging is left to conformance, reports to conformance/report, and listening to
// the program.
package proxy

import (
	"cmp"
	"errors"

	"github.com/destkit/destkit/conformance"
)

// Seen is one exchange that went by.
type Seen struct {
	Sight *conformance.Sight
	// Local is the status that the proxy has answered by itself, 0 when the endpoint
	// has answered or the connection has ended.
	Local int
	// Lost is why the exchange cannot be judged; "" when it can.
	Lost string
}

// capture is the kept part of one direction of an exchange.
type capture struct {
	b     []byte
	lost  string
	began bool
}

func (c *capture) empty() bool { return !c.began }

// add keeps bytes, within the bounds of the proxy.
func (c *capture) add(p *Proxy, b []byte) {
	c.began = c.began || len(b) > 0
	switch {
	case p.cfg.Observer == nil || c.lost != "":
		return
	case len(c.b)+len(b) > p.cfg.MaxBody:
		c.lost = "a body is longer than --max-body"
	case p.held.Add(int64(len(b))) > mostHeld:
		p.held.Add(-int64(len(b)))
		c.lost = "the judge does not keep up"
	default:
		c.b = append(c.b, b...)
		return
	}
	p.held.Add(-int64(len(c.b)))
	c.b = nil
}

// finished hands an exchange over to be judged; it never waits.
func (p *Proxy) finished(x *exchange) {
	p.passed.Add(1)
	if p.cfg.Observer == nil {
		return
	}
	select {
	case p.queue <- x:
	default:
		p.notJudged.Add(1)
		p.forget(x)
	}
}

func (p *Proxy) forget(x *exchange) {
	p.held.Add(-int64(len(x.request.b) + len(x.response.b)))
}

// observe hands exchanges to the observer.
func (p *Proxy) observe() {
	defer close(p.drained)
	for x := range p.queue {
		seen := &Seen{Sight: &x.sight, Local: x.local, Lost: x.request.lost}
		seen.Lost = cmp.Or(seen.Lost, x.response.lost)
		if seen.Lost != "" {
			p.notJudged.Add(1)
		}
		x.sight.RequestBody = x.request.b
		if len(x.response.b) > 0 {
			x.sight.Raw = x.response.b
		}
		if x.local > 0 && x.sight.Err == nil {
			x.sight.Err = errors.New("the proxy has answered by itself")
		}
		held := len(x.request.b) + len(x.response.b)
		p.cfg.Observer.Observe(seen)
		p.held.Add(-int64(held))
	}
}
