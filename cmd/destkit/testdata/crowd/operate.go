package crowd

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/destkit/destkit/openapi"
)

// basePath is where the API stands.
const basePath = "/api/v1"

// operation is any of the document. Those that make what others need come more often.
func (c *client) operation() *openapi.Operation {
	if c.chance(35) {
		return c.named(c.text("createDestination", "createDestination", "createSource", "createSource", "createSync", "createSync", "createSync",
			"updateSync", "triggerSync", "createDataset", "createModel", "createTopic", "createFilterSegment", "createWebhook",
			"createInvitation", "createWorkspace", "deleteDestination", "deleteSync"))
	}
	return c.operations[c.random.IntN(len(c.operations))]
}

func (c *client) named(id string) *openapi.Operation {
	for _, op := range c.operations {
		if op.ID == id {
			return op
		}
	}
	panic("the document has no operation " + id)
}

// harmless is an operation that deletes nothing.
func (c *client) harmless() *openapi.Operation {
	if c.chance(45) {
		return c.named(c.text("updateSync", "updateSync", "triggerSync", "triggerSync", "fetchSync", "listSyncRuns", "fetchSyncRun", "cancelSyncRun",
			"listSyncs", "updateDestination", "refreshDestinationObjects"))
	}
	for {
		op := c.operations[c.random.IntN(len(c.operations))]
		if op.Method == http.MethodGet && op.Auth != "organization" {
			return op
		}
	}
}

// operate calls one operation, as it is meant or not.
func (c *client) operate(t *tenant, op *openapi.Operation) {
	at := t.values(c, op.Path)
	path := op.Path
	for name, value := range at {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	r := &request{operation: op.ID, method: op.Method, path: basePath + path + c.query(op), token: t.token(c, op)}
	if op.HasBody {
		r.body = c.body(t, op, at)
		if t != c.kept && c.chance(7) {
			r.body = c.spoiled(r.body)
		}
	}
	if text := c.call(r); text != nil {
		t.learn(op, at, text)
	}
}

// query asks for pages of all sizes, and for other things that may be read from it.
func (c *client) query(op *openapi.Operation) string {
	if op.Method != http.MethodGet || c.chance(40) {
		return ""
	}
	q := url.Values{}
	switch {
	case strings.HasPrefix(op.ID, "list"):
		q.Set("page", c.text("0", "1", "1", "2", "1000000", "9223372036854775807", "-1", "x"))
		q.Set("per_page", c.text("1", "25", "100", "100", "1000000", "0", "-5"))
		q.Set("order", c.text("asc", "desc", "both"))
	case strings.HasSuffix(op.ID, "Status") || strings.HasSuffix(op.ID, "Refresh"):
		q.Set("refresh_key", c.text("1", "2", "x", "9223372036854775807"))
	case op.ID == "fetchSyncRunRecords":
		q.Set("limit", c.text("1", "100", "1000000", "0"))
	case op.ID == "fetchTableColumns" || op.ID == "fetchNamedTableRefresh":
		q.Set("table_name", c.text("rows", "nothing", "%"))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// request is one call.
type request struct {
	operation, method, path, token string
	body                           []byte
	discard                        bool // the answer is large
}

// call makes a request, counts it, and gives the body of a success.
func (c *client) call(r *request) []byte {
	ctx, early, cancel := c.leave(c.ctx, r)
	defer cancel()
	made, err := http.NewRequestWithContext(ctx, r.method, c.config.Root+r.path, bytes.NewReader(r.body))
	if err != nil {
		c.tally.lost(r.operation, err)
		return nil
	}
	if r.body != nil {
		made.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		made.Header.Set("Authorization", "Bearer "+r.token)
	}
	began := time.Now()
	answer, err := c.http.Do(made)
	if err != nil {
		c.gone(ctx, early, r, err)
		return nil
	}
	defer answer.Body.Close()
	into := &bytes.Buffer{}
	if r.discard {
		_, err = io.Copy(io.Discard, answer.Body)
	} else {
		_, err = into.ReadFrom(io.LimitReader(answer.Body, 16<<20))
	}
	if err != nil {
		c.gone(ctx, early, r, err)
		return nil
	}
	c.tally.answered(r, answer.StatusCode, time.Since(began), into.Bytes())
	if answer.StatusCode >= 300 {
		return nil
	}
	return into.Bytes()
}

// gone counts a call without an answer: its caller has left, or none came.
func (c *client) gone(ctx context.Context, early bool, r *request, err error) {
	if early && ctx.Err() != nil || c.ctx.Err() != nil {
		c.tally.left(r.operation)
		return
	}
	c.tally.lost(r.operation, err)
}
