package destsim

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// naive is a client that knows nothing of a judge: it writes down what it gets.
type naive struct {
	t    *testing.T
	sim  *Sim
	url  string
	http *http.Client
}

// send gives the status, the headers that a client would look at, and the body;
// or in words what happened instead.
func (n *naive) send(verb, path, body string, headers ...string) string {
	n.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequest(verb, n.url+path, reader)
	require.NoError(n.t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		switch headers[i] {
		case "Transfer-Encoding":
			r.Body, r.ContentLength = io.NopCloser(struct{ io.Reader }{strings.NewReader(body)}), -1
		default:
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	if len(r.Header["Content-Type"]) > 1 {
		r.Header.Del("Content-Type")
		r.Header.Set("Content-Type", headers[slices.Index(headers, "Content-Type")+1])
	}
	// A request that may be repeated would be, behind our back, when the
	// connection is closed without an answer.
	r.GetBody = nil
	resp, err := n.http.Do(r)
	if err != nil {
		if errors.Is(err, io.EOF) || strings.Contains(err.Error(), "closed") || strings.Contains(err.Error(), "reset") {
			return "no response"
		}
		return err.Error()
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	var b strings.Builder
	b.WriteString(resp.Status[:3])
	for _, name := range []string{"Content-Type", "Content-Encoding", "Location", "Age", "X-Cache", "Www-Authenticate"} {
		value := resp.Header.Get(name)
		if name == "Content-Type" && value == "application/json" {
			continue
		}
		if value != "" || name == "Content-Type" {
			b.WriteString(" [" + name + ": " + value + "]")
		}
	}
	b.WriteString(" " + string(got))
	if err != nil {
		b.WriteString(" " + err.Error())
	}
	return b.String()
}

// post sends a body as the service does.
func (n *naive) post(body string, headers ...string) string {
	return n.send(http.MethodPost, "/rpc", body, headers...)
}

// call makes one call with the id "a1".
func (n *naive) call(method, params string, headers ...string) string {
	return n.post(requestBody(method, params, "a1"), headers...)
}

func requestBody(method, params, id string) string {
	return string(rpc.EncodeRequest(nil, method, []byte(params), id))
}

// probe is one thing to do with a destination.
type probe func(n *naive) string

// probing serves a new simulator and does one thing with it.
func probing(t *testing.T, config Config, violation string, do probe) string {
	t.Helper()
	if violation != "" {
		config.Violate = []string{violation}
	}
	s := newSim(t, config)
	server := httptest.NewServer(s)
	defer server.Close()
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	return do(&naive{t, s, server.URL, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
}

func contactBatch(s *Sim) string {
	return planOf(s, "contact", "upsert", "email", `{"email":"a@example.com","last_name":"A"}`)
}
