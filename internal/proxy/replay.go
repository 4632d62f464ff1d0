package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/unreached"
)

// Replay sends the calls of a recording to another version of an endpoint and compares
// the answers by their meaning.
type Replay struct {
	// URL of the endpoint, and what sends to it.
	URL    string
	Client *http.Client
	// Header is that of the connection: credentials are in no recording.
	Header http.Header
	// Write permits batches with records into Objects.
	Write   bool
	Objects []string
	// MaxBody bounds a response, in bytes.
	MaxBody int64
	// Secrets are in no difference, on either side; nil: nothing.
	Secrets *foreign.Redactor
}

// ReplayReport is the result of a replay.
type ReplayReport struct {
	Sent      int `json:"sent"`
	Same      int `json:"same"`
	Different int `json:"different"`
	// Unanswered were sent and got no complete response.
	Unanswered int `json:"unanswered"`
	// Unreached is why no call got a response, and what to do; "" where one did.
	Unreached string `json:"unreached,omitempty"`
	// NotSent counts the reasons for which calls were not sent.
	NotSent map[string]int `json:"not_sent"`
	// Groups are differences of one kind, the most frequent first.
	Groups []*DifferenceGroup `json:"groups"`
}

// DifferenceGroup are differences at one place of the answers to one method.
type DifferenceGroup struct {
	Method string `json:"method"`
	Object string `json:"object,omitempty"`
	// Place is a path such as result.record_results[].success.
	Place string `json:"place"`
	Count int    `json:"count"`
	// Number, Was and Is are those of the first: its number in the recording, what was
	// recorded, what came now.
	Number int    `json:"number"`
	Was    string `json:"was"`
	Is     string `json:"is"`
}

// readingMethods write nothing.
var readingMethods = []string{"test_connection", "list_objects", "list_fields", "supported_operations", "get_sync_speed"}

// maxShown is how much of a value a difference shows, in bytes.
const maxShown = 160

// Run replays a recording; its errors are those of the recording and of ctx.
func (r *Replay) Run(ctx context.Context, recording io.Reader) (*ReplayReport, Skipped, error) {
	out := &ReplayReport{NotSent: map[string]int{}, Groups: []*DifferenceGroup{}}
	groups := map[string]*DifferenceGroup{}
	skipped, err := ReadRecording(recording, func(x *conformance.Sight) error {
		call, why := r.permitted(x)
		if why != "" {
			out.NotSent[why]++
			return nil
		}
		status, body, err := r.send(ctx, x)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		out.Sent++
		if err != nil {
			out.Unanswered++
			if cause := unreached.Of(err, "endpoint", "the host of the URL"); out.Sent == 1 && cause.What != "" {
				out.Unreached = cause.What + ": " + cause.Fix
			}
			return nil
		}
		out.Unreached = ""
		differences := compareAnswers(x.Status, r.Secrets.Bytes(x.Body), status, r.Secrets.Bytes(body))
		if len(differences) == 0 {
			out.Same++
			return nil
		}
		out.Different++
		seen := map[string]bool{}
		for _, d := range differences {
			key := call.method + "\x00" + call.object + "\x00" + d.place
			g := groups[key]
			if g == nil {
				g = &DifferenceGroup{Method: r.Secrets.String(call.method), Object: r.Secrets.String(call.object), Place: d.place, Number: x.Number, Was: d.was, Is: d.is}
				groups[key] = g
				out.Groups = append(out.Groups, g)
			}
			if !seen[key] {
				g.Count++
			}
			seen[key] = true
		}
		return nil
	})
	slices.SortStableFunc(out.Groups, func(a, b *DifferenceGroup) int { return cmp.Compare(b.Count, a.Count) })
	return out, skipped, err
}

// call is the call of a request, read from its body.
type call struct {
	method, object string
}

// permitted reads what a request does from its body, and returns why it is not sent.
func (r *Replay) permitted(x *conformance.Sight) (c call, why string) {
	if x.Status == 0 {
		return c, "it has no answer to compare with"
	}
	if x.Method != http.MethodPost {
		return c, "its HTTP method is not POST"
	}
	if bytes.Contains(x.RequestBody, []byte("$DESTKIT_")) {
		return c, "a secret was taken out of its body"
	}
	if repeatsMember(x.RequestBody) {
		return c, "a member occurs twice in its body, so that two readers may take it for two calls"
	}
	var body struct {
		Method *string
		Params struct {
			Object struct {
				Name string `json:"object_api_name"`
			}
			Plan struct {
				Object struct {
					Name string `json:"object_api_name"`
				}
			} `json:"sync_plan"`
		}
	}
	if json.Unmarshal(x.RequestBody, &body) != nil || body.Method == nil {
		return c, "its body is no call of the protocol"
	}
	c = call{method: *body.Method, object: body.Params.Object.Name}
	switch {
	case slices.Contains(readingMethods, c.method):
		return c, ""
	case c.method != "sync_batch":
		return c, "its method is none of the protocol"
	}
	c.object = body.Params.Plan.Object.Name
	switch {
	case !r.Write:
		return c, "it calls sync_batch, which writes records: add --write --object NAME to send it"
	case !slices.Contains(r.Objects, c.object):
		return c, fmt.Sprintf("it writes into %q: name it with --object", shortText(c.object))
	}
	return c, ""
}

// repeatsMember reports whether a member occurs twice in its object, in any case of its
// letters, at any depth; a body that is no JSON repeats none.
func repeatsMember(body []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	type level struct {
		names map[string]bool // nil in an array
		value bool            // a value comes next
	}
	var stack []*level
	for {
		t, err := dec.Token()
		if err != nil {
			return false
		}
		var top *level
		if len(stack) > 0 {
			top = stack[len(stack)-1]
		}
		if name, ok := t.(string); ok && top != nil && top.names != nil && !top.value {
			low := strings.ToLower(name)
			if top.names[low] {
				return true
			}
			top.names[low], top.value = true, true
			continue
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if top != nil {
				top.value = false
			}
			l := &level{}
			if t == json.Delim('{') {
				l.names = map[string]bool{}
			}
			stack = append(stack, l)
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		default:
			if top != nil {
				top.value = false
			}
		}
	}
}

// send sends the body of a call, and reads the whole answer.
func (r *Replay) send(ctx context.Context, x *conformance.Sight) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(x.RequestBody))
	if err != nil {
		return 0, nil, err
	}
	maps.Copy(req.Header, r.Header)
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.Client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, r.MaxBody+1))
	if err == nil && int64(len(body)) > r.MaxBody {
		err = fmt.Errorf("the response has more than %d bytes", r.MaxBody)
	}
	return resp.StatusCode, body, err
}
