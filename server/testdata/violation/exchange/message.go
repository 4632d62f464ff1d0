// Package exchange has the messages that violations see and change: requests and answers of
// the API, calls to destinations with their replies, and the values in their bodies.
//
// It leaves to package violation which rule is broken by a change.
package exchange

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Request is a request of the API as a violation sees it.
type Request struct {
	HTTP *http.Request // headers and URL may be changed
	Body []byte        // may be changed
}

// Is tells method and path; in the pattern * stands for one segment:
// "PATCH /syncs/*".
func (q *Request) Is(pattern string) bool { return matchesCall(q.HTTP, pattern) }

func matchesCall(r *http.Request, pattern string) bool {
	method, path, _ := strings.Cut(pattern, " ")
	if method != "*" && r.Method != method {
		return false
	}
	have := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, api.BasePath), "/"), "/")
	want := strings.Split(strings.Trim(path, "/"), "/")
	if len(have) != len(want) {
		return false
	}
	for i := range want {
		if want[i] != "*" && want[i] != have[i] {
			return false
		}
	}
	return true
}

// Query changes the query of the request.
func (q *Request) Query(edit func(map[string][]string)) {
	values := q.HTTP.URL.Query()
	edit(values)
	q.HTTP.URL.RawQuery = values.Encode()
}

// Edit changes the body where it is a JSON object; numbers keep their digits.
func (q *Request) Edit(change func(map[string]any)) { q.Body = EditJSON(q.Body, change) }

// Answer is what the API answers.
type Answer struct {
	HTTP   *http.Request // that it answers
	Status int
	Header http.Header
	Body   []byte
}

// Is is that of the request.
func (a *Answer) Is(pattern string) bool { return matchesCall(a.HTTP, pattern) }

// IsAny reports whether the answer is of one of the calls of a list.
func (a *Answer) IsAny(patterns string) bool {
	for pattern := range strings.SplitSeq(patterns, ", ") {
		if a.Is(pattern) {
			return true
		}
	}
	return false
}

// Edit changes the body where it is a JSON object.
func (a *Answer) Edit(change func(map[string]any)) { a.Body = EditJSON(a.Body, change) }

// Data changes the member data of the body: once where it is an object, for each
// element where it is a list.
func (a *Answer) Data(change func(map[string]any)) {
	a.Edit(func(body map[string]any) {
		switch data := body["data"].(type) {
		case map[string]any:
			change(data)
		case []any:
			EachObject(data, change)
		}
	})
}

// EditJSON changes a body where it is a JSON object; numbers keep their digits.
func EditJSON(body []byte, change func(map[string]any)) []byte {
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&object) != nil || object == nil {
		return body
	}
	change(object)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(object) != nil {
		return body
	}
	return bytes.TrimSpace(out.Bytes())
}

// NewBody is what a request carries, with its length.
func NewBody(body []byte) (io.ReadCloser, int64) {
	return io.NopCloser(bytes.NewReader(body)), int64(len(body))
}
