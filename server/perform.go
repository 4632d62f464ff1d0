package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/strictjson"
)

// perform runs an operation of the API as somebody, past authentication, faults and
// journal: those belong to clients. It gives the reply as JSON.
func (s *Server) perform(ctx context.Context, who call.Principal, id string, path map[string]int64, body any) (json.RawMessage, error) {
	return s.performWith(ctx, who, id, path, nil, body)
}

// performWith is perform with parameters of the query.
func (s *Server) performWith(ctx context.Context, who call.Principal, id string, path map[string]int64, query url.Values, body any) (json.RawMessage, error) {
	// By its id in the document, so that what comes is checked as a request would be.
	op := s.ready[id]
	if op == nil {
		return nil, fmt.Errorf("perform %s: there is no such operation", id)
	}
	var text []byte
	if body != nil {
		var err error
		if text, err = strictjson.Encode(body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, op.Method, BasePath+op.Path, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("perform %s: %w", id, err)
	}
	r.URL.RawQuery = query.Encode()
	if text != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range path {
		r.SetPathValue(name, fmt.Sprint(value))
	}
	c := &call.Call{Shared: s.shared, Ctx: ctx, R: r, Op: op, Who: who, Began: s.clock.Now()}
	c.Body = text
	if err := c.Read(); err != nil {
		return nil, err
	}
	if len(c.Warnings) > 0 { // a typing error is refused in every dialect
		return nil, problem.Refuse(http.StatusBadRequest, "%s", strings.Join(c.Warnings, "; "))
	}
	got, err := op.Handle(c)
	if err != nil {
		return nil, err
	}
	if got.Raw != nil {
		return got.Raw, nil
	}
	return strictjson.Encode(got.Body)
}
