package service

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
)

// transportSteps look at the calls as HTTP requests (spec 4.2; facts A1).
func transportSteps() []conformance.Step {
	return []conformance.Step{
		step(`^(every|no) call of the service has the header "([^"]*)"(?: with "([^"]*)")?$`, func(p *play) any { return p.callsHaveHeader }),
		step(`^every call of the service goes to the URL of the connection$`, func(p *play) any { return p.callsGoToURL }),
		step(`^calls share connections of the network$`, func(p *play) any { return p.connectionsAreKept }),
		step(`^a destination with the custom header "([^"]*)" of "([^"]*)"$`, func(p *play) any { return p.withCustomHeader }),
		step(`^(?:a client connects )?a destination that answers with the header "([^:"]*): ([^"]*)"$`, func(p *play) any { return p.withAnswerHeader }),
		step(`^(?:a client connects )?a destination that answers compressed with "(gzip|deflate)"$`, func(p *play) any { return p.withCompression }),
		step(`^(?:a client connects )?a destination that sends every call on to another with status (\d+)$`, func(p *play) any { return p.withRedirect }),
		step(`^the other destination is not called$`, func(p *play) any { return p.otherIsSilent }),
	}
}

// callsHaveHeader looks for a header, and for one of its values where that is
// told.
func (p *play) callsHaveHeader(which, name, value string) error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	for _, c := range calls {
		got := c.http.Header.Values(name)
		switch {
		case which == "no" && len(got) > 0:
			p.brokenCall("no header "+name, strings.Join(got, ", "), c)
		case which == "no":
		case len(got) == 0:
			p.brokenCall("the header "+name, c.method+" without it", c)
		case value != "" && !slices.Equal(got, []string{value}):
			p.brokenCall(name+": "+value, strings.Join(got, ", "), c)
		}
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

// callsGoToURL compares the target of every request, byte by byte.
func (p *play) callsGoToURL() error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	want := strings.TrimPrefix(p.dest.url, p.dest.origin)
	for _, c := range calls {
		if c.http.RequestURI != want {
			p.brokenCall("POST "+want, c.http.Method+" "+c.http.RequestURI, c)
		}
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

// connectionsAreKept counts the connections that carried more than one call.
func (p *play) connectionsAreKept() error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	if len(calls) < 2 {
		return conformance.Outcome(conformance.Inconclusive, "", "only one call came")
	}
	peers := map[string]int{}
	for _, c := range calls {
		peers[c.http.RemoteAddr]++
	}
	if len(peers) == len(calls) {
		p.brokenCall("some of the calls on the same connection", fmt.Sprintf("%d calls on %d connections", len(calls), len(peers)), calls...)
	}
	p.Proof("%d calls on %d connections", len(calls), len(peers))
	return p.Held()
}

func (p *play) withCustomHeader(name, value string) error {
	err := p.triesConnecting(connecting{credentials: map[string]any{
		"custom_headers": map[string]any{name: map[string]any{"value": value, "is_secret": false}},
	}})
	return err
}

func (p *play) withAnswerHeader(name, value string) error {
	err := p.triesConnecting(connecting{script: func(*call) *reply {
		return &reply{edit: func(body []byte, header http.Header) []byte {
			header.Set(name, value)
			return body
		}}
	}})
	return err
}

func (p *play) withCompression(encoding string) error {
	err := p.triesConnecting(connecting{script: func(*call) *reply {
		return &reply{edit: func(body []byte, header http.Header) []byte {
			header.Set("Content-Encoding", encoding)
			return compressed(encoding, body)
		}}
	}})
	return err
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

// withRedirect makes a destination that points at another one of the same
// origin.
func (p *play) withRedirect(status int) error {
	other, err := p.place(connecting{})
	if err != nil {
		return err
	}
	p.parts["other"] = other.part
	err = p.triesConnecting(connecting{script: func(*call) *reply {
		return &reply{status: status, header: http.Header{"Location": {other.url}}}
	}})
	return err
}

func (p *play) otherIsSilent() error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	for _, c := range p.parts["other"].seen("") {
		p.brokenCall("no call", fmt.Sprintf("%s %s", c.http.Method, c.method), c)
	}
	p.Proof("%d calls of the first", len(calls))
	return p.Held()
}
