package violation

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// apiRequest is a request of the API as a violation sees it: r is the request
// itself, with headers and URL to be changed, body what it carries.
type apiRequest struct {
	r    *http.Request
	body []byte
}

// is tells method and path; in the pattern * stands for one segment:
// "PATCH /syncs/*".
func (q *apiRequest) is(pattern string) bool { return matchesCall(q.r, pattern) }

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

// query changes the query of the request.
func (q *apiRequest) query(edit func(map[string][]string)) {
	values := q.r.URL.Query()
	edit(values)
	q.r.URL.RawQuery = values.Encode()
}

// edit changes the body where it is a JSON object; numbers keep their digits.
func (q *apiRequest) edit(change func(map[string]any)) { q.body = editJSON(q.body, change) }

// apiAnswer is what the API answers.
type apiAnswer struct {
	r      *http.Request
	status int
	header http.Header
	body   []byte
}

func (a *apiAnswer) is(pattern string) bool { return matchesCall(a.r, pattern) }

// edit changes the body where it is a JSON object.
func (a *apiAnswer) edit(change func(map[string]any)) { a.body = editJSON(a.body, change) }

// data changes the member data of the body: once where it is an object, for each
// element where it is a list.
func (a *apiAnswer) data(change func(map[string]any)) {
	a.edit(func(body map[string]any) {
		switch data := body["data"].(type) {
		case map[string]any:
			change(data)
		case []any:
			for _, one := range data {
				if object, ok := one.(map[string]any); ok {
					change(object)
				}
			}
		}
	})
}

func editJSON(body []byte, change func(map[string]any)) []byte {
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

// ServeHTTP lets next answer a request, with the violations around it. maxBody bounds
// what the request carries, in bytes.
func (b Broken) ServeHTTP(w http.ResponseWriter, r *http.Request, next http.Handler, maxBody int64) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody+1))
	if err != nil {
		return
	}
	original := r.Clone(r.Context())
	q := &apiRequest{r: r, body: body}
	for _, s := range b {
		if s.ask != nil {
			s.ask(q)
		}
	}
	q.r.Body, q.r.ContentLength = newBody(q.body)
	recorded := httptest.NewRecorder()
	next.ServeHTTP(recorded, q.r)
	a := &apiAnswer{r: original, status: recorded.Code, header: recorded.Header().Clone(), body: recorded.Body.Bytes()}
	for _, s := range b {
		if s.tell != nil {
			s.tell(a)
		}
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// newBody is what a request carries, with its length.
func newBody(body []byte) (io.ReadCloser, int64) {
	return io.NopCloser(bytes.NewReader(body)), int64(len(body))
}
