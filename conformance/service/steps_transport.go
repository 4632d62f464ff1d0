package service

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/internal/quantity"
)

// transportSteps look at the calls as HTTP requests (spec 4.2).
func transportSteps() []engine.Step {
	return []engine.Step{
		step(`^(every|no) call of the service has the header "([^"]*)"(?: with "([^"]*)")?$`, func(sc *scenario) any { return sc.callsHaveHeader }),
		step(`^a client connects a destination that answers in the encoding "gzip"$`, func(sc *scenario) any { return sc.connectsPacked }),
		step(`^a client connects a destination that answers with a redirect of status "(\d{3})"$`, func(sc *scenario) any { return sc.connectsRedirect }),
	}
}

// callsHaveHeader looks for a header, and for one of its values where one is
// given.
func (sc *scenario) callsHaveHeader(which, name, value string) error {
	return sc.eachCall(anyMethod, func(c *endpoint.Call) {
		got := c.HTTP.Header.Values(name)
		switch {
		case which == "no" && len(got) > 0:
			sc.brokenCall("no header "+name, strings.Join(got, ", "), c)
		case which == "no":
		case len(got) == 0:
			sc.brokenCall("the header "+name, c.Method+" without it", c)
		case value != "" && !slices.Equal(got, []string{value}):
			sc.brokenCall(name+": "+value, strings.Join(got, ", "), c)
		}
	})
}

// callsGoToURL compares the target of every request, byte by byte.
func (sc *scenario) callsGoToURL() error {
	want := strings.TrimPrefix(sc.dest.url, sc.dest.origin)
	return sc.eachCall(anyMethod, func(c *endpoint.Call) {
		if c.HTTP.RequestURI != want {
			sc.brokenCall("POST "+want, c.HTTP.Method+" "+c.HTTP.RequestURI, c)
		}
	})
}

// connectionsAreKept counts the connections that carried more than one call.
func (sc *scenario) connectionsAreKept() error {
	calls, err := sc.received()
	if err != nil {
		return err
	}
	if len(calls) < 2 {
		return engine.Outcome(conformance.Inconclusive, "", "only one call came")
	}
	peers := map[string]int{}
	for _, c := range calls {
		peers[c.HTTP.RemoteAddr]++
	}
	if len(peers) == len(calls) {
		sc.brokenCall("some of the calls on the same connection", fmt.Sprintf("%s on %s", quantity.Count(len(calls), "call"), quantity.Count(len(peers), "connection")), calls...)
	}
	return sc.HeldBy("%s on %s", quantity.Count(len(calls), "call"), quantity.Count(len(peers), "connection"))
}

// connectsPacked makes a connection to a destination every answer of which is compressed.
func (sc *scenario) connectsPacked() error {
	return sc.triesConnecting(connecting{script: func(*endpoint.Call) *endpoint.Reply {
		return &endpoint.Reply{Edit: func(body []byte, header http.Header) []byte {
			header.Set("Content-Encoding", "gzip")
			var out bytes.Buffer
			w := gzip.NewWriter(&out)
			_, _ = w.Write(body) // a buffer takes everything
			_ = w.Close()
			return out.Bytes()
		}}
	}})
}

// connectsRedirect makes a connection to a destination that leads to another one of the
// same origin.
func (sc *scenario) connectsRedirect(status int) error {
	other, err := sc.place(connecting{})
	if err != nil {
		return err
	}
	sc.redirected = other.Endpoint
	return sc.triesConnecting(connecting{script: func(*endpoint.Call) *endpoint.Reply {
		return &endpoint.Reply{Status: status, Header: http.Header{"Location": {other.url}}}
	}})
}
