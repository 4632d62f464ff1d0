package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// errorText is an error of JSON-RPC in words: code and message.
var errorText = regexp.MustCompile(`^fails with the error (-?\d+) "([^"]*)"$`)

// testThat answers test_connection in the way that the words say.
func testThat(words string) (func(*endpoint.Call) *endpoint.Reply, error) {
	result := func(result any) *endpoint.Reply { return &endpoint.Reply{Edit: withResult(result)} }
	var by *endpoint.Reply
	switch said, says := between(words, `says "`, `"`); {
	case words == "passes":
		return nil, nil
	case says:
		by = result(map[string]any{"success": false, "error_message": said})
	case words == `lacks "success"`:
		by = result(map[string]any{})
	case words == "is answered with HTTP 500":
		by = &endpoint.Reply{Status: http.StatusInternalServerError, Body: []byte("out of order")}
	case words == "is answered with a page":
		by = &endpoint.Reply{Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<html><body>Welcome</body></html>")}
	case words == "gets no answer":
		by = &endpoint.Reply{Cut: true}
	case errorText.MatchString(words):
		m := errorText.FindStringSubmatch(words)
		by = &endpoint.Reply{Edit: withError(json.RawMessage(m[1]), m[2])}
	default:
		return nil, fmt.Errorf("no test %q", words)
	}
	return func(c *endpoint.Call) *endpoint.Reply {
		if c.Method == rpc.MethodTestConnection {
			return by
		}
		return nil
	}, nil
}

// between is what stands between two texts that hold the whole.
func between(s, before, after string) (string, bool) {
	if len(s) < len(before)+len(after) || s[:len(before)] != before || s[len(s)-len(after):] != after {
		return "", false
	}
	return s[len(before) : len(s)-len(after)], true
}

// withResult puts another result into an answer of the simulator.
func withResult(result any) func([]byte, http.Header) []byte {
	return func(body []byte, _ http.Header) []byte {
		return jsonvalue.Encode(map[string]any{"jsonrpc": "2.0", "id": answeredID(body), "result": result})
	}
}

// withError makes an error of it.
func withError(code json.RawMessage, message string) func([]byte, http.Header) []byte {
	return func(body []byte, _ http.Header) []byte {
		return jsonvalue.Encode(map[string]any{"jsonrpc": "2.0", "id": answeredID(body), "error": map[string]any{"code": code, "message": message}})
	}
}

func answeredID(body []byte) json.RawMessage {
	n, err := wire.Parse(body)
	if err != nil || n.Get("id") == nil {
		return json.RawMessage("null")
	}
	return n.Get("id").Raw
}

func (sc *scenario) testChanges(verb, rest string) error {
	script, err := testThat(verb + rest)
	if err != nil {
		return err
	}
	sc.dest.SetScript(script)
	return nil
}

// stepFailed looks for the message of a failed step (spec 7.1.3).
func (sc *scenario) stepFailed(message string) error {
	looks, err := sc.looked("destination")
	if err != nil {
		return err
	}
	for _, v := range looks {
		found := false
		for _, s := range sc.shown("test step") {
			said := jsonvalue.Text(s.member("error.message"))
			if s.of == v && said != "" && (message == "" || regexp.MustCompile(regexp.QuoteMeta(message)).MatchString(said)) {
				found = true
			}
		}
		if !found {
			sc.brokenView(v, "last_test_results", "has a step with an error.message that says "+quoted(message), jsonvalue.Raw(v.member("last_test_results")))
		}
	}
	return sc.heldBy(len(looks), "look")
}

// quoted is what a message has to say; any will do where none is named.
func quoted(message string) string {
	if message == "" {
		return "why"
	}
	return strconv.Quote(message)
}

// latestIsTest reports whether the connection was tested.
func (sc *scenario) latestIsTest() error {
	calls, err := sc.received()
	if err != nil {
		return err
	}
	first := sc.answered.callsBefore
	for _, c := range calls[first:] {
		if c.Method == rpc.MethodTestConnection {
			return sc.HeldBy("call %d", c.Number)
		}
	}
	sc.brokenCall("a call of test_connection", fmt.Sprintf("%s of other methods", quantity.Count(len(calls)-first, "call")), calls[len(calls)-1])
	return sc.Held()
}
