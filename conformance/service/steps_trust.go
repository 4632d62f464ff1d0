package service

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
)

// trustSteps are for CERT: certificates and tokens of destinations (spec 5.2).
func trustSteps() []engine.Step {
	return []engine.Step{
		step(`^a destination with a good certificate that the service accepts$`, (*scenario).goodIsAccepted),
		step(`^a client connects a destination with a certificate that is (good|self-signed|for another name)$`, (*scenario).connectsWith),
		step(`^the certificate of the destination expires$`, (*scenario).certificateExpires),
		step(`^(that|the other) destination is (not )?called$`, (*scenario).destinationIsCalled),
		step(`^the connection is refused$`, (*scenario).connectionRefused),
	}
}

// trusted gives the authority of the run, which the service knows. Only a
// stand-in takes one.
func (sc *scenario) trusted() *endpoint.Authority {
	sc.trust.mu.Lock()
	defer sc.trust.mu.Unlock()
	if sc.trust.authority != nil {
		return sc.trust.authority
	}
	a, err := endpoint.NewAuthority()
	stop(err)
	sc.control("POST", "/trust", a.PEM())
	sc.trust.authority = a
	return a
}

// connectsWith connects a destination behind a listener of its own, whose certificate is
// signed by the authority of the run.
func (sc *scenario) connectsWith(how string) {
	by := sc.trusted()
	w := &endpoint.Shown{}
	// The address is known only when it listens; until then no one comes.
	first, err := by.Issue("localhost", endpoint.Properties{})
	stop(err)
	address, closeListener, err := sc.opts.Listen(w.TLSConfig(first), sc.endpoints)
	if err != nil {
		stop(fmt.Errorf("listen with TLS: %w", err))
	}
	sc.endings = append(sc.endings, func(context.Context) error { closeListener(); return nil })
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		stop(engine.NotRun("--simulator-url", "needs a TLS listener that the service can reach directly, without --simulator-url"))
	}
	host := u.Hostname()
	if how == "for another name" {
		host = "another.example"
	}
	shown, err := by.Issue(host, endpoint.Properties{SelfSigned: how == "self-signed"})
	stop(err)
	w.Show(shown)
	d := sc.place(connecting{})
	// Every call needs a handshake of its own, and so meets what is shown then.
	d.SetScript(func(*endpoint.Call) *endpoint.Reply {
		return &endpoint.Reply{Edit: func(body []byte, header http.Header) []byte {
			header.Set("Connection", "close")
			return body
		}}
	})
	d.origin = originOf(address)
	d.url = strings.TrimRight(address, "/") + "/" + d.name
	sc.certificate = w
	sc.triesConnectionTo(d, nil)
}

// goodIsAccepted makes sure that a refusal means something: the same authority
// has signed a certificate that the service takes.
func (sc *scenario) goodIsAccepted() {
	sc.connectsWith("good")
	if t := sc.tests[len(sc.tests)-1]; !t.passed() {
		undecided("the service does not accept a good certificate either: %s", t.message())
	}
}

// certificateExpires shows another certificate from now on.
func (sc *scenario) certificateExpires() {
	by := sc.trusted()
	u, err := url.Parse(sc.dest.url)
	if err != nil {
		stop(fmt.Errorf("read address: %w", err))
	}
	expired, err := by.Issue(u.Hostname(), endpoint.Properties{Expired: true})
	stop(err)
	sc.certificate.Show(expired)
	sc.listens()
}

// destinationIsCalled looks at what came to the destination that was connected
// last, or to the one that this sends calls on to, and at what the service says.
func (sc *scenario) destinationIsCalled(which, not string) error {
	t, called, from := sc.tests[len(sc.tests)-1], sc.dest.Endpoint, sc.skippedCalls
	if which == "the other" {
		sc.received()
		called, from = sc.redirected, 0
	}
	calls := called.Seen("")
	calls = calls[min(from, len(calls)):]
	switch {
	case not == "" && (len(calls) == 0 || !t.passed()):
		sc.broken("the connection test has passed", t.message(), t.a)
	case not != "" && len(calls) > 0:
		sc.brokenCall("no call", calls[0].Method, calls...)
	case not != "" && from == 0 && t.passed():
		sc.broken("a failed connection test", t.a.short(), t.a)
	}
	return sc.heldBy(len(calls), "call")
}

func (sc *scenario) connectionRefused() error {
	if sc.last().Status < 400 {
		sc.broken("the connection is refused", sc.last().short(), sc.last())
	}
	return sc.HeldBy("HTTP %d", sc.last().Status)
}
