package call

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
)

// bodyTime is how long a body may take to arrive, in real time.
const bodyTime = 2 * time.Minute

// Patiently lets read take the body of a request. Where the connection knows
// deadlines, a body that does not arrive is given up; the handler's later
// work may take longer.
func Patiently(w http.ResponseWriter, r *http.Request, read func()) {
	if r.Body != nil && r.Body != http.NoBody {
		connection := http.NewResponseController(w)
		if connection.SetReadDeadline(time.Now().Add(bodyTime)) == nil {
			defer func() { _ = connection.SetReadDeadline(time.Time{}) }()
		}
	}
	read()
}

// Receive takes the body up to the limit. Its errors are reported only once
// the caller is known.
func (c *Call) Receive() {
	limit := c.Shared.MaxBody
	switch {
	case c.Op.Auth != "" && c.R.Header.Get("Authorization") == "":
		return // refused in any case, so nothing need be sent
	case c.R.ContentLength > limit && c.R.Header.Get("Expect") != "":
		// The client waits with its body. One that is sending already gets its
		// answer more surely when some of it is taken.
		c.unread = &http.MaxBytesError{Limit: limit}
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, c.R.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		c.unread = err
	case err != nil:
		c.unread = problem.Refuse(http.StatusBadRequest, "the body ended before its announced length")
	default:
		c.Body = body
	}
}

// MaxWarnings bounds the Warning headers of a reply: many clients take no more
// than a hundred headers.
const MaxWarnings = 20

// wholeBody is the field of a problem that is about none.
const wholeBody = "body"

// Read holds the request against the document.
func (c *Call) Read() error {
	if c.unread != nil {
		return c.unread
	}
	var kept []api.Problem
	for _, p := range c.problems() {
		switch {
		case p.Loose && c.Shared.Dialect.QueryBooleans && !p.OfBody():
			// published: the handlers read it with flag.
		case p.Unknown && c.Shared.Dialect.UnknownFields:
			c.Warnings = append(c.Warnings, "unknown field "+p.Field+" was ignored")
		case p.Missing && c.Shared.Dialect.PartialSyncUpdate && c.Op.ID == "updateSync" && p.TopLevel():
			// published: real clients send only what changes.
		default:
			field := p.Field
			if field == "" && p.OfBody() {
				field = wholeBody
			}
			kept = append(kept, api.Problem{Field: field, Message: p.Message})
		}
	}
	if more := len(c.Warnings) - MaxWarnings; more > 0 {
		c.Warnings = append(c.Warnings[:MaxWarnings], fmt.Sprintf("and %d more", more))
	}
	if len(kept) > 0 {
		return problem.Invalid(kept)
	}
	return nil
}

// problems is what the document has against the request. Ids as texts are put
// right where the dialect takes them; a request without any is looked at once.
func (c *Call) problems() []openapi.RESTProblem {
	problems := c.Op.CheckRequest(c.R, c.paths(), c.Body)
	loose := func(p openapi.RESTProblem) bool { return p.Loose && p.OfBody() }
	if !c.Shared.Dialect.IDsAsText || !slices.ContainsFunc(problems, loose) {
		return problems
	}
	c.sent, c.Body = c.Body, c.Op.NumberIDs(c.Body)
	return c.Op.CheckRequest(c.R, c.paths(), c.Body)
}

// paths are the values of the path's parameters.
func (c *Call) paths() map[string]string {
	values := map[string]string{}
	for rest := c.Op.Path; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return values
		}
		name, after, _ := strings.Cut(after, "}")
		values[name], rest = c.R.PathValue(name), after
	}
}
