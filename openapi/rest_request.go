package openapi

import (
	"bytes"
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
)

const (
	contentJSON = "application/json"
	placeBody   = "body"
	placeQuery  = "query"

	// maxProblems bounds how many problems of a kind are listed, so that a body of
	// nothing but mistakes has no reply larger than itself.
	maxProblems = 100
)

// CheckRequest holds a request against the document and gives everything that
// is wrong with it, in the order path, query, header, body; none when it is
// good. path has the values of the path's parameters without escapes; body is the
// whole body, which is not looked at where the operation has none.
//
// per_page above 100 and page 0 are good: the service interprets them (spec 8).
// Unknown problems concern fields and parameters that the document does not have;
// the live dialect ignores them.
func (o *Operation) CheckRequest(r *http.Request, path map[string]string, body []byte) []RESTProblem {
	problems := o.checkPath(path)
	if raw := r.URL.RawQuery; raw != "" || len(o.query) > 0 {
		problems = append(problems, o.checkQuery(raw)...)
	}
	if o.HasBody {
		problems = append(problems, o.checkBody(r.Header.Get("Content-Type"), body)...)
	}
	return problems
}

func (o *Operation) checkBody(contentType string, body []byte) (problems []RESTProblem) {
	if len(bytes.Trim(body, " \t\r\n")) == 0 {
		if o.BodyRequired {
			problems = append(problems, RESTProblem{Place: placeBody, Message: "is required: send a JSON object", Missing: true})
		}
		return problems
	}
	// Clients add parameters such as charset and version.
	if kind, _, err := mime.ParseMediaType(contentType); contentType != "" && (err != nil || kind != contentJSON) {
		problems = append(problems, RESTProblem{
			Place: "header.Content-Type", Field: "Content-Type", Message: "must be " + contentJSON + ", the only form of a body", Malformed: true,
		})
	}
	value, repeated, err := decodeJSON(body, true)
	if err != nil {
		return append(problems, malformed(body, err))
	}
	for _, e := range repeated {
		line, column := rawjson.Place(body, e.offset)
		problems = append(problems, RESTProblem{
			Place: placeBody, Field: e.field, Malformed: true,
			Message: fmt.Sprintf("stands more than once in its object, again at line %d, column %d", line, column),
		})
	}
	return append(problems, bodyProblems(o.body, value)...)
}

func malformed(body []byte, err error) RESTProblem {
	p := RESTProblem{Place: placeBody, Malformed: true, Message: "is malformed JSON: " + err.Error()}
	if e, ok := err.(*syntaxError); ok {
		line, column := rawjson.Place(body, e.offset)
		p.Message = fmt.Sprintf("is malformed JSON at line %d, column %d: %s", line, column, e.message)
	}
	return p
}

// bodyProblems validates a decoded body and puts what kin finds into our words.
func bodyProblems(schema *openapi3.Schema, body any) []RESTProblem {
	f := finder{body: body}
	f.visit(schema, body, nil)
	f.requireInSpec(schema)
	// Errors in sent fields come before missing ones: of "opration is unknown"
	// and "operation is required" the first is more helpful.
	slices.SortStableFunc(f.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.place.compare(b.place))
	})
	var problems []RESTProblem
	more := map[bool]int{}
	kept := map[bool]int{}
	for _, found := range f.found {
		unknown := found.problem.Unknown
		if kept[unknown]++; kept[unknown] > maxProblems {
			more[unknown]++
			continue
		}
		problems = append(problems, found.problem)
	}
	for _, unknown := range []bool{false, true} {
		if n := more[unknown]; n > 0 {
			problems = append(problems, RESTProblem{Place: placeBody, Unknown: unknown, Message: fmt.Sprintf("has %d more problems like these", n)})
		}
	}
	return problems
}

func rank(f finding) int {
	if f.problem.Missing {
		return 1
	}
	return 0
}

// oneOf lists the possible values.
func oneOf(values []string) string {
	if len(values) == 1 {
		return "must be " + values[0]
	}
	return "must be one of " + strings.Join(values, ", ")
}

// quoted is a value for a message, cut when it is long.
func quoted(value string) string { return fmt.Sprintf("%q", foreign.Clip(value, maxShown)) }

// CheckResponse holds a reply of the operation against the document: its
// status, its type, the headers that are required, and its body with every
// field. The error names the operation, the status and each place in the body
// with the expectation there.
func (o *Operation) CheckResponse(status int, header http.Header, body []byte) error {
	response := o.responses[strconv.Itoa(status)]
	if response == nil && status >= 500 && status <= 599 {
		response = o.responses["5XX"]
	}
	if response == nil {
		return fmt.Errorf("check response of %s: the document has no status %d, only %v", o.ID, status, o.Statuses)
	}
	var wrong []string
	if kind, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || kind != contentJSON {
		wrong = append(wrong, "header Content-Type must be "+contentJSON)
	}
	for name, ref := range response.Headers {
		if ref.Value.Required && header.Get(name) == "" {
			wrong = append(wrong, "header "+name+" is required")
		}
	}
	wrong = append(wrong, responseBody(response.Content.Get(contentJSON).Schema.Value, body)...)
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("check response %d of %s: %s", status, o.ID, strings.Join(wrong, "; "))
}

// responseBody checks a body as requests are checked, but a number may have any
// form: clients of all kinds read the service's replies.
func responseBody(schema *openapi3.Schema, body []byte) (wrong []string) {
	value, repeated, err := decodeJSON(body, false)
	if err != nil {
		return []string{malformed(body, err).String()}
	}
	for _, e := range repeated {
		wrong = append(wrong, e.field+" stands more than once")
	}
	for _, p := range bodyProblems(schema, value) {
		wrong = append(wrong, p.String())
	}
	return wrong
}
