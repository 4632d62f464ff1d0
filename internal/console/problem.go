package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Problem is why a page cannot be shown or a form was refused.
type Problem struct {
	Code    int
	Message string
	Fields  []FieldProblem
}

// FieldProblem is one problem of a request.
type FieldProblem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (p *Problem) Error() string { return p.Message }

// Heading is the status in words.
func (p *Problem) Heading() string {
	switch p.Code {
	case http.StatusNotFound:
		return "Not here"
	case http.StatusForbidden, http.StatusUnauthorized:
		return "Not open"
	}
	if p.Code >= http.StatusInternalServerError {
		return "Something failed"
	}
	return "Refused"
}

// Refuse is a problem of the client.
func Refuse(code int, format string, args ...any) *Problem {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...)}
}

func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	return &Problem{Code: http.StatusInternalServerError, Message: err.Error()}
}

// Caller makes calls within the process to a handler that answers JSON: the routes of
// /_control, already past their guard.
type Caller struct{ Handler http.Handler }

// Reply is what a call got.
type Reply struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Do sends body (nil: none; []byte and string as they are; everything else as JSON) and
// decodes a good reply into the value that into points to, unless that is nil. A refusal is a *Problem.
func (c Caller) Do(ctx context.Context, method, path string, body, into any) error {
	var from io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		from = bytes.NewReader(b)
	case string:
		from = strings.NewReader(b)
	case io.Reader:
		from = b
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		from = bytes.NewReader(text)
	}
	got, err := c.Raw(ctx, method, path, from)
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(got.Body, into); err != nil {
		return fmt.Errorf("%s %s: read the reply: %w", method, path, err)
	}
	return nil
}

// Raw makes a call and returns the answer; a failure is a *Problem.
func (c Caller) Raw(ctx context.Context, method, path string, body io.Reader) (*Reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://console.localhost"+path, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	r.RequestURI, r.RemoteAddr = path, "console" // no network address: nothing of the network
	if from, ok := ctx.Value(called{}).(*http.Request); ok {
		r.Host, r.TLS = from.Host, from.TLS
	}
	if body == nil {
		r.Body = http.NoBody
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	w := &recorder{header: http.Header{}}
	c.Handler.ServeHTTP(w, r)
	w.code = cmp.Or(w.code, http.StatusOK)
	if w.code >= http.StatusBadRequest {
		return nil, refusal(w.code, w.body.Bytes())
	}
	return &Reply{Code: w.code, Header: w.header, Body: w.body.Bytes()}, nil
}

// refusal reads an error in the shapes of the service and of the simulator.
func refusal(code int, body []byte) *Problem {
	var told struct {
		Message string         `json:"message"`
		Error   string         `json:"error"`
		Errors  []FieldProblem `json:"errors"`
	}
	_ = json.Unmarshal(body, &told) // an answer that is no JSON has no message
	p := &Problem{Code: code, Message: told.Message, Fields: told.Errors}
	p.Message = cmp.Or(p.Message, told.Error)
	p.Message = cmp.Or(p.Message, http.StatusText(code))
	if len(p.Fields) == 1 && strings.Contains(p.Message, p.Fields[0].Message) {
		p.Fields = nil // the message includes it
	}
	return p
}

// recorder keeps a reply in memory.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }
func (w *recorder) WriteHeader(code int) {
	w.code = cmp.Or(w.code, code)
}
func (w *recorder) Write(text []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(text)
}
