package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
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
}

// ReplayReport is what came of a replay.
type ReplayReport struct {
	Sent      int `json:"sent"`
	Same      int `json:"same"`
	Different int `json:"different"`
	// Unanswered were sent and got no complete response.
	Unanswered int `json:"unanswered"`
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
			return nil
		}
		differences := compareAnswers(x.Status, x.Body, status, body)
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
				g = &DifferenceGroup{Method: call.method, Object: call.object, Place: d.place, Number: x.Number, Was: d.was, Is: d.is}
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

// call is what a request asks for, read from its body.
type call struct {
	method, object string
	records        int
}

// permitted reads what a request does from its body, and says why it is not sent.
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
		return c, "a member stands twice in its body, so that two readers may take it for two calls"
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
			Records []json.RawMessage
		}
	}
	if json.Unmarshal(x.RequestBody, &body) != nil || body.Method == nil {
		return c, "its body is no call of the protocol"
	}
	c = call{method: *body.Method, object: body.Params.Object.Name, records: len(body.Params.Records)}
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

// repeatsMember reports whether a member stands twice in its object, in any case of its
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

type difference struct{ place, was, is string }

// compareAnswers says in which places two answers to one call mean something else.
// Members of objects have no order, and neither have results, objects, fields and
// operations; what differs from call to call (times, ids of their own, the words of a
// message) means nothing.
func compareAnswers(wasStatus int, was []byte, isStatus int, is []byte) []difference {
	var out []difference
	if wasStatus != isStatus {
		out = append(out, difference{"the HTTP status", fmt.Sprint(wasStatus), fmt.Sprint(isStatus)})
	}
	a, errA := parseAny(was)
	b, errB := parseAny(is)
	switch {
	case errA != nil && errB != nil:
		return out // both are no JSON, which the judge reports
	case errA != nil || errB != nil:
		return append(out, difference{"the body", bodyWords(was, errA), bodyWords(is, errB)})
	}
	compareValues("", a, b, &out)
	return out
}

func bodyWords(b []byte, err error) string {
	if err != nil {
		return "no JSON: " + shortText(string(b))
	}
	return "JSON"
}

func parseAny(b []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return v, nil
}

// unordered are the lists whose elements have a name of their own.
var unordered = map[string]string{
	"result.record_results": "identifier", "result.objects": "object_api_name", "result.fields": "field_api_name", "result.operations": "",
}

// mostDifferences are told of one answer.
const mostDifferences = 50

func compareValues(place string, was, is any, out *[]difference) {
	if len(*out) >= mostDifferences {
		return
	}
	differ := func() { *out = append(*out, difference{place, shownValue(was), shownValue(is)}) }
	switch a := was.(type) {
	case map[string]any:
		b, ok := is.(map[string]any)
		if !ok {
			differ()
			return
		}
		names := maps.Clone(a)
		maps.Copy(names, b)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			below := strings.TrimPrefix(place+"."+name, ".")
			x, had := a[name]
			y, has := b[name]
			switch {
			case had && has:
				compareValues(below, x, y, out)
			case had:
				*out = append(*out, difference{below, shownValue(x), "absent"})
			default:
				*out = append(*out, difference{below, "absent", shownValue(y)})
			}
		}
	case []any:
		b, ok := is.([]any)
		if !ok {
			differ()
			return
		}
		compareLists(place, a, b, out)
	case json.Number:
		if b, ok := is.(json.Number); !ok || !sameNumber(a.String(), b.String()) {
			differ()
		}
	case string:
		b, ok := is.(string)
		if !ok || a != b && !meaningless(place, a, b) {
			differ()
		}
	default:
		if was != is {
			differ()
		}
	}
}

// compareLists matches elements by their names where they have some.
func compareLists(place string, was, is []any, out *[]difference) {
	key, named := unordered[place]
	if !named {
		if len(was) != len(is) {
			*out = append(*out, difference{place, fmt.Sprintf("%d elements", len(was)), fmt.Sprintf("%d elements", len(is))})
			return
		}
		for i := range was {
			compareValues(place+"[]", was[i], is[i], out)
		}
		return
	}
	nameOf := func(v any) string {
		if m, ok := v.(map[string]any); ok && key != "" {
			v = m[key]
		}
		text, _ := json.Marshal(v)
		return string(text)
	}
	now := map[string][]any{}
	for _, v := range is {
		now[nameOf(v)] = append(now[nameOf(v)], v)
	}
	for _, v := range was {
		name := nameOf(v)
		if len(now[name]) == 0 {
			*out = append(*out, difference{place + "[]", shortText(name), "absent"})
			continue
		}
		compareValues(place+"[]", v, now[name][0], out)
		now[name] = now[name][1:]
	}
	for _, v := range is {
		if name := nameOf(v); len(now[name]) > 0 {
			*out = append(*out, difference{place + "[]", "absent", shortText(name)})
			now[name] = now[name][1:]
		}
	}
}

// Values that differ from call to call by their nature.
var (
	instant = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?$`)
	ownID   = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	// echoed are values that were sent, and so must come back as they are.
	echoed = []string{"id", "result.record_results[].identifier"}
)

// meaningless reports whether two different texts say the same: the words of messages,
// times, and ids that the endpoint makes.
func meaningless(place, a, b string) bool {
	if slices.Contains(echoed, place) {
		return false
	}
	if strings.HasSuffix(place, "message") || strings.HasPrefix(place, "error.data") {
		return (strings.TrimSpace(a) == "") == (strings.TrimSpace(b) == "")
	}
	return instant.MatchString(a) && instant.MatchString(b) || ownID.MatchString(a) && ownID.MatchString(b)
}

// sameNumber compares numbers by their value.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) > 100 || len(b) > 100 || strings.ContainsAny(a+b, "eE") && len(a+b) > 60 {
		return false
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

func shownValue(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return shortText(string(text))
}

func shortText(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + " …"
}
