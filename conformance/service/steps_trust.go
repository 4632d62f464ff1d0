package service

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
)

// trustSteps are for CERT: certificates and tokens of destinations (spec 5.2).
func trustSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a destination with a good certificate that the service accepts$`, func(p *play) any { return p.goodIsAccepted }),
		step(`^a client connects a destination with a certificate that (is good|is self-signed|is for another name|has expired|is not yet valid|comes without its intermediate|is of an unknown authority)$`,
			func(p *play) any { return p.connectsWithBad }),
		step(`^the certificate of the destination expires$`, func(p *play) any { return p.certificateExpires }),
		step(`^(that|the other) destination is (not )?called$`, func(p *play) any { return p.destinationIsCalled }),
		step(`^the connection is refused$`, func(p *play) any { return p.connectionRefused }),
	}
}

// trusted gives the authority of the run, which the service was told of. Only a
// stand-in can be told.
func (p *play) trusted() (*authority, error) {
	p.trust.mu.Lock()
	defer p.trust.mu.Unlock()
	if p.trust.authority != nil {
		return p.trust.authority, nil
	}
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	if _, err := p.control("POST", "/trust", a.pem()); err != nil {
		return nil, err
	}
	p.trust.authority = a
	return a, nil
}

// standsWith puts a destination behind a listener of its own, whose certificate is
// signed by an authority.
func (p *play) standsWith(by *authority, c certificate) (*destination, *wardrobe, error) {
	w := &wardrobe{}
	// The address is known only when it listens; until then nobody comes.
	first, err := by.issue("localhost", certificate{})
	if err != nil {
		return nil, nil, err
	}
	address, stop, err := p.opts.Listen(w.config(first), p.stage)
	if err != nil {
		return nil, nil, fmt.Errorf("listen with TLS: %w", err)
	}
	p.endings = append(p.endings, func(context.Context) error { stop(); return nil })
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return nil, nil, conformance.Outcome(conformance.NotRun, "--simulator-url", "needs a TLS listener that the service can reach directly, without --simulator-url")
	}
	shown, err := by.issue(u.Hostname(), c)
	if err != nil {
		return nil, nil, err
	}
	w.wears(shown)
	d, err := p.place(connecting{})
	if err != nil {
		return nil, nil, err
	}
	// Every call needs a handshake of its own, and so meets what is shown then.
	d.plays(func(*call) *reply {
		return &reply{edit: func(body []byte, header http.Header) []byte {
			header.Set("Connection", "close")
			return body
		}}
	})
	d.origin = originOf(address)
	d.url = strings.TrimRight(address, "/") + "/" + d.name
	return d, w, nil
}

func (p *play) connectsWith(c certificate) error {
	by, err := p.trusted()
	if err != nil {
		return err
	}
	d, w, err := p.standsWith(by, c)
	if err != nil {
		return err
	}
	p.worn = w
	return p.triesConnectionTo(d, nil)
}

// goodIsAccepted makes sure that a refusal means something: the same authority
// has signed a certificate that the service takes.
func (p *play) goodIsAccepted() error {
	if err := p.connectsWith(certificate{}); err != nil {
		return err
	}
	if t := p.tests[len(p.tests)-1]; !t.passed() {
		return conformance.Outcome(conformance.Inconclusive, "", "the service does not accept a good certificate either: %s", t.message())
	}
	return nil
}

func (p *play) connectsWithBad(how string) error {
	c := certificate{}
	switch how {
	case "is self-signed":
		c.selfSigned = true
	case "is for another name":
		c.name = "another.example"
	case "has expired":
		c.begins, c.lasts = -2*day, -time.Hour
	case "is not yet valid":
		c.begins, c.lasts = time.Hour, 2*day
	case "comes without its intermediate":
		c.alone = true
	case "is of an unknown authority":
		by, err := newAuthority()
		if err != nil {
			return err
		}
		d, _, err := p.standsWith(by, c)
		if err != nil {
			return err
		}
		return p.triesConnectionTo(d, nil)
	}
	return p.connectsWith(c)
}

// certificateExpires shows another certificate from now on.
func (p *play) certificateExpires() error {
	by, err := p.trusted()
	if err != nil {
		return err
	}
	u, err := url.Parse(p.dest.url)
	if err != nil {
		return fmt.Errorf("read address: %w", err)
	}
	expired, err := by.issue(u.Hostname(), certificate{begins: -2 * day, lasts: -time.Hour})
	if err != nil {
		return err
	}
	p.worn.wears(expired)
	p.listens()
	return nil
}

// destinationIsCalled looks at what came to the destination that was connected
// last, or to the one that this sends calls on to, and at what the service says.
func (p *play) destinationIsCalled(which, not string) error {
	t, part, from := p.tests[len(p.tests)-1], p.dest.part, p.deaf
	if which == "the other" {
		if _, err := p.heard(); err != nil {
			return err
		}
		part, from = p.parts["other"], 0
	}
	calls := part.seen("")
	calls = calls[min(from, len(calls)):]
	switch {
	case not == "" && (len(calls) == 0 || !t.passed()):
		p.broken("the connection test has passed", t.message(), t.a)
	case not != "" && len(calls) > 0:
		p.brokenCall("no call", calls[0].method, calls...)
	case not != "" && from == 0 && t.passed():
		p.broken("a failed connection test", t.a.short(), t.a)
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

func (p *play) connectionRefused() error {
	t := p.tests[len(p.tests)-1]
	if t.a.Status < 400 {
		p.broken("the connection is refused", t.a.short(), t.a)
	}
	p.Proof("HTTP %d", t.a.Status)
	return p.Held()
}
