package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/strictjson"
)

// maxControlBody bounds the bodies of control calls but those of snapshots.
const maxControlBody = 64 << 20

// text reads the body up to a limit in bytes.
func (c *controlCall) text(limit int64) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	return text, unreadable(err)
}

// unreadable is what is wrong with a body that did not come to its end.
func unreadable(err error) error {
	var large *http.MaxBytesError
	if err == nil || errors.As(err, &large) {
		return err
	}
	return problem.Refuse(http.StatusBadRequest, "the body ended before its announced length")
}

// body decodes the body into v, a pointer to a struct. Unknown keys are
// refused, all of them together, with the key that was probably meant: a typing
// error in a test must not pass for something that was done. An empty body
// leaves v as it is.
func (c *controlCall) body(v any) error {
	text, err := c.text(maxControlBody)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return strictjson.Decode(text, v)
}

// query gives the parameters and refuses unknown ones: a filter with a typing
// error would let everything through.
func (c *controlCall) query(known ...string) (url.Values, error) {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, problem.Refuse(http.StatusBadRequest, "the query cannot be read: %v", err)
	}
	var problems []api.Problem
	for _, name := range strictjson.SortedKeys(values) {
		if !slices.Contains(known, name) {
			problems = append(problems, api.Problem{Field: foreign.Clip(name, 60), Message: "is not known" + suggest.Phrase(name, known)})
		}
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	return values, nil
}

// integer reads an optional parameter within bounds.
func integer(values url.Values, name string, missing, least, most int64) (int64, error) {
	text := values.Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, problem.InvalidField(name, "must be an integer from %d to %d", least, most)
	}
	return n, nil
}

// takesBody are the routes of the control API that read a body. All others refuse
// one: what is sent there was meant for something else.
var takesBody = map[string]bool{
	"POST /audit": true, "POST /clock": true, "POST /connectors": true, "POST /faults": true, "POST /fork": true,
	"POST /invitations/{id}/claim": true, "POST /journal": true, "POST /organizations": true, "POST /restore": true,
	"POST /seed": true, "POST /sources/{id}/execute": true, "POST /syncs/{id}/plan": true, "POST /topics/{id}/messages": true,
	"PATCH /topics/{id}": true, "POST /triggers/dbt_cloud": true, "POST /triggers/fivetran": true, "POST /trust": true,
	"PATCH /users/{id}": true, "POST /workspace_invitations/{id}/claim": true,
}

// withoutBody refuses a call that has a body before anything is done.
func withoutBody(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var n int
		var err error
		if r.Body != nil && r.Body != http.NoBody {
			patiently(w, r, func() { n, err = io.ReadFull(r.Body, make([]byte, 1)) })
		}
		switch {
		case n > 0:
			writeControl(w, 0, nil, problem.Refuse(http.StatusBadRequest, "%s %s takes no body; leave it out", r.Method, r.URL.Path))
		case err != nil && !errors.Is(err, io.EOF):
			writeControl(w, 0, nil, unreadable(err))
		default:
			handle(w, r)
		}
	}
}
