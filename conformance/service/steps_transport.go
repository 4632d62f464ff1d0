package service

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
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
		step(`^(?:a client connects )?a destination that answers (with the header|in the encoding|with a redirect of status) "([^"]*)"$`, func(sc *scenario) any { return sc.answersAlways }),
		step(`^(?:a client connects )?a destination whose (Auth Token|custom header|URL|end of the URL) is "([^"]*)"$`, func(sc *scenario) any { return sc.connectsWhose }),
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

// connectsWhose makes a connection with something special about it.
func (sc *scenario) connectsWhose(what, value string) error {
	c := connecting{}
	switch what {
	case "Auth Token":
		c.credentials = map[string]any{"auth_token": value}
	case "custom header":
		name, text, _ := strings.Cut(value, ": ")
		c.credentials = map[string]any{"custom_headers": map[string]any{name: map[string]any{"value": text, "is_secret": false}}}
	case "end of the URL":
		c.suffix = value
	default:
		d, err := sc.place(c)
		if err != nil {
			return err
		}
		d.url, d.origin = value, originOf(value)
		return sc.triesConnectionTo(d, nil)
	}
	return sc.triesConnecting(c)
}

// answersAlways makes a connection to a destination every answer of which is
// special; a redirect leads to another destination of the same origin.
func (sc *scenario) answersAlways(what, value string) error {
	if what == "with a redirect of status" {
		return sc.withRedirect(value)
	}
	return sc.triesConnecting(connecting{script: func(*endpoint.Call) *endpoint.Reply {
		return &endpoint.Reply{Edit: func(body []byte, header http.Header) []byte {
			if what == "in the encoding" {
				header.Set("Content-Encoding", value)
				return compressed(value, body)
			}
			name, text, _ := strings.Cut(value, ": ")
			header.Set(name, text)
			return body
		}}
	}})
}

// compressed is a body in a Content-Encoding; "deflate" names the zlib format
// (RFC 9110 8.4.1.2).
func compressed(encoding string, body []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if encoding == "deflate" {
		w = zlib.NewWriter(&out)
	}
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func (sc *scenario) withRedirect(status string) error {
	code, err := strconv.Atoi(status)
	if err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	other, err := sc.place(connecting{})
	if err != nil {
		return err
	}
	sc.extraEndpoints["other"] = other.Endpoint
	return sc.triesConnecting(connecting{script: func(*endpoint.Call) *endpoint.Reply {
		return &endpoint.Reply{Status: code, Header: http.Header{"Location": {other.url}}}
	}})
}
