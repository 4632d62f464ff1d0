package call

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
)

// Performer runs operations of the API past authentication, faults and journal: those
// belong to clients. Seeds, links and the console are made with it.
type Performer struct {
	Shared *Shared
	Now    func() time.Time
	// Operation finds one by its id in the document; nil: there is none.
	Operation func(id string) *Operation
}

// Perform runs an operation for a caller, with the parameters of its path and its query,
// and gives the reply as JSON. Errors are those that a client would get.
func (p *Performer) Perform(ctx context.Context, who Principal, id string, path map[string]int64, query url.Values, body any) (json.RawMessage, error) {
	// By its id in the document, so that the input is checked as a request would be.
	op := p.Operation(id)
	if op == nil {
		return nil, fmt.Errorf("perform %s: there is no such operation", id)
	}
	var text []byte
	if body != nil {
		var err error
		if text, err = rawjson.Encode(body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, op.Method, api.BasePath+op.Path, bytes.NewReader(text))
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
	c := &Call{Shared: p.Shared, Ctx: ctx, R: r, Op: op, Who: who, Began: p.Now()}
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
	return rawjson.Encode(got.Body)
}
