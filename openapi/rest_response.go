package openapi

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// CheckResponse holds a reply of the operation against the document: its
// status, its type, the headers that are required, and its body with every
// field. The error names the operation, the status and each place in the body
// with what is expected there.
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
// form: what the service writes is read by clients of all kinds.
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
