package destsim

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

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

// hook turns a hook on.
func (n *naive) hook(name string) {
	n.t.Helper()
	require.Contains(n.t, n.send(http.MethodPost, "/_control/hooks/"+name, `{"action":"begin"}`), "200")
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

// tamper says for one violation which probes see it and what they see: a part
// of the answer of the broken destination. All other probes see no difference.
type tamper struct {
	id   string
	sees map[string]string
}

// testTampers puts every probe to every violation.
func testTampers(t *testing.T, config Config, probes map[string]probe, table []tamper) {
	t.Helper()
	config.Delays.Hang = time.Millisecond
	clean := map[string]string{}
	for name, do := range probes {
		clean[name] = probing(t, config, "", do)
	}
	for _, row := range table {
		t.Run(row.id, func(t *testing.T) {
			require.NotEmpty(t, row.sees)
			for name := range row.sees {
				require.Contains(t, probes, name)
			}
			for name, do := range probes {
				got := probing(t, config, row.id, do)
				if want, is := row.sees[name]; is {
					require.Contains(t, got, want, name)
					require.NotEqual(t, clean[name], got, name)
					require.NotContains(t, clean[name], want, name)
				} else {
					require.Equal(t, clean[name], got, name)
				}
			}
		})
	}
}

// testAllTampered holds the tables and the list of violations together.
func testAllTampered(t *testing.T, all []violation, tables ...[]tamper) {
	t.Helper()
	var have, shown []string
	for _, v := range all {
		have = append(have, v.ID)
		require.NotEmpty(t, v.Changes)
	}
	for _, table := range tables {
		for _, row := range table {
			shown = append(shown, row.id)
		}
	}
	require.ElementsMatch(t, have, shown)
}

// calls are the probes that every area takes: one per method, and what a
// client may do wrong.
func calls() map[string]probe {
	object := `{"object":{"object_api_name":"contact","label":"Contact"}}`
	simple := func(method, params string) probe {
		return func(n *naive) string { return n.call(method, params) }
	}
	body := func(text string) probe { return func(n *naive) string { return n.post(text) } }
	return map[string]probe{
		"test_connection":      simple("test_connection", `{}`),
		"list_objects":         simple("list_objects", `{}`),
		"list_fields":          simple("list_fields", object),
		"supported_operations": simple("supported_operations", object),
		"get_sync_speed":       simple("get_sync_speed", `{"sync_plan":{}}`),
		"sync_batch":           func(n *naive) string { return n.call("sync_batch", contactBatch(n.sim)) },
		"unknown method":       simple("no_such_method", `{}`),
		"method in capitals":   simple("List_Objects", `{}`),
		"method with a space":  simple("list_objects ", `{}`),
		"fields of no object":  simple("list_fields", `{}`),
		"fields of a number":   simple("list_fields", `{"object":7}`),
		"fields of unknown":    simple("list_fields", `{"object":{"object_api_name":"x","label":"X"}}`),
		"operations of none":   simple("supported_operations", `{}`),
		"connection params":    simple("test_connection", `{"x":1}`),
		"objects params":       simple("list_objects", `{"x":1}`),
		"objects and more":     body(`{"jsonrpc":"2.0","method":"list_objects","params":{},"id":"a1","x":1}`),
		"objects reordered":    body(`{"id":"a1","params":{},"method":"list_objects","jsonrpc":"2.0"}`),
		"objects spaced":       body(`{ "jsonrpc" : "2.0", "method" : "list_objects", "params" : { } , "id" : "a1" }`),
		"objects escaped":      body(`{"jsonrpc":"2.0","method":"list\u005fobjects","params":{},"id":"a1"}`),
		"speed reordered":      body(`{"id":"a1","params":{},"method":"get_sync_speed","jsonrpc":"2.0"}`),
		"body cut":             body(`{"jsonrpc":"2.0","method":"test_connection","params":{`),
		"body not JSON":        body(`hello`),
		"no method":            body(`{"jsonrpc":"2.0","params":{},"id":"a1"}`),
		"method a number":      body(`{"jsonrpc":"2.0","method":7,"params":{},"id":"a1"}`),
		"no version":           body(`{"method":"test_connection","params":{},"id":"a1"}`),
		"array":                body(`[{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"a1"}]`),
		"GET":                  func(n *naive) string { return n.send("GET", "/rpc", "") },
		"health":               func(n *naive) string { return n.send("GET", "/healthz", "") },
	}
}

func contactBatch(s *Sim) string {
	return planOf(s, "contact", "upsert", "email", `{"email":"a@example.com","last_name":"A"}`)
}

// times repeats a call on one connection and joins the answers by lines.
func times(count int, method, params string) probe {
	return func(n *naive) string {
		var b bytes.Buffer
		for range count {
			b.WriteString(n.call(method, params) + "\n")
		}
		return b.String()
	}
}
