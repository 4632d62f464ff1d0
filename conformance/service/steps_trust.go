package service

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
)

// trustSteps are for CERT: certificates and tokens of destinations (spec 5.2).
func trustSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client connects a destination with a good certificate$`, func(p *play) any {
			return func() error { return p.connectsWith(certificate{}) }
		}),
		step(`^a destination with a good certificate that the service accepts$`, func(p *play) any { return p.goodIsAccepted }),
		step(`^a client connects a destination with a certificate that (is self-signed|is for another name|has expired|is not yet valid|comes without its intermediate|is of an unknown authority)$`,
			func(p *play) any { return p.connectsWithBad }),
		step(`^the certificate of the destination expires$`, func(p *play) any { return p.certificateExpires }),
		step(`^nothing is sent to that destination$`, func(p *play) any { return p.nothingIsSent }),
		step(`^that destination is called$`, func(p *play) any { return p.destinationIsCalled }),
		step(`^a client connects a destination at "([^"]*)"$`, func(p *play) any { return p.connectsAddress }),
		step(`^the connection is refused$`, func(p *play) any { return p.connectionRefused }),
		step(`^a destination with the Auth Token "([^"]*)"$`, func(p *play) any {
			return func(token string) error {
				return p.triesConnecting(connecting{credentials: map[string]any{"auth_token": token}})
			}
		}),
		step(`^the Auth Token becomes "([^"]*)"$`, func(p *play) any { return p.tokenBecomes }),
		step(`^a client connects a destination whose URL ends in "([^"]*)"$`, func(p *play) any {
			return func(suffix string) error { return p.triesConnecting(connecting{suffix: suffix}) }
		}),
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

// nothingIsSent looks at what came to the destination that was connected last,
// and at what the service says of it.
func (p *play) nothingIsSent() error {
	calls := p.dest.seen("")
	for _, c := range calls[min(p.deaf, len(calls)):] {
		p.brokenCall("no call", c.method, c)
	}
	if t := p.tests[len(p.tests)-1]; p.deaf == 0 && t.passed() {
		p.broken("a failed connection test", t.a.short(), t.a)
	}
	p.Proof("no call")
	return p.Held()
}

// destinationIsCalled is for where it is the certificate that decides.
func (p *play) destinationIsCalled() error {
	t := p.tests[len(p.tests)-1]
	if len(t.d.seen("")) == 0 || !t.passed() {
		p.broken("the connection test has passed", t.message(), t.a)
	}
	p.Proof("%d calls", len(t.d.seen("")))
	return p.Held()
}

func (p *play) connectsAddress(address string) error {
	d, err := p.place(connecting{})
	if err != nil {
		return err
	}
	d.url, d.origin = address, originOf(address)
	return p.triesConnectionTo(d, nil)
}

func (p *play) connectionRefused() error {
	t := p.tests[len(p.tests)-1]
	if t.a.Status < 400 {
		p.broken("the connection is refused", t.a.short(), t.a)
	}
	p.Proof("HTTP %d", t.a.Status)
	return p.Held()
}

// tokenBecomes changes the token, and listens to what comes with the new one.
func (p *play) tokenBecomes(token string) error {
	p.listens()
	_, err := p.must(request{method: "PATCH", path: "/destinations/" + strconv.FormatInt(p.dest.id, 10),
		body: map[string]any{"service_connection": map[string]any{"credentials": map[string]any{"auth_token": token}}}})
	return err
}
