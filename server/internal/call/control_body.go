package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
)

// MaxControlBody bounds the bodies of control calls but those of snapshots.
const MaxControlBody = 64 << 20

// Text reads the body up to a limit in bytes.
func (c *Control) Text(limit int64) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(c.W, c.R.Body, limit))
	return text, Unreadable(err)
}

// Unreadable is the error of an incomplete body.
func Unreadable(err error) error {
	var large *http.MaxBytesError
	if err == nil || errors.As(err, &large) {
		return err
	}
	return problem.Refuse(http.StatusBadRequest, "the body ended before its announced length")
}

// Body decodes the body into v, a pointer to a struct. Unknown keys are
// refused, all of them together, with the key that was probably meant: a typing
// error in a test must not pass for something that was done. An empty body
// leaves v as it is.
func (c *Control) Body(v any) error {
	text, err := c.Text(MaxControlBody)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return DecodeBody(text, v)
}

// DecodeBody fills v, a pointer, from JSON. Errors give line and column, or the field.
func DecodeBody(text []byte, v any) error {
	// Syntax first and apart from v: only then the offset is one in the text.
	if err := json.Unmarshal(text, new(any)); err != nil {
		if line, column, reason := rawjson.Malformed(text); reason != "" {
			return problem.Refuse(http.StatusBadRequest, "the body is no JSON: line %d, column %d: %s", line, column, reason)
		}
		return problem.Refuse(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	var problems []api.Problem
	for _, u := range rawjson.UnknownKeys(text, reflect.TypeOf(v)) {
		problems = append(problems, api.Problem{Field: foreign.Clip(u.Place, 200), Message: "is not known" + suggest.Phrase(u.Key, u.Known)})
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	err := json.Unmarshal(text, v)
	var mistyped *json.UnmarshalTypeError
	var f *problem.Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &mistyped):
		return problem.InvalidField(mistyped.Field, "%s", rawjson.Mistyped(mistyped))
	case err != nil:
		return problem.Refuse(http.StatusBadRequest, "the body does not fit: %v", err)
	}
	return nil
}

// Query gives the parameters and refuses unknown ones: a filter with a typing
// error would let everything through.
func (c *Control) Query(known ...string) (url.Values, error) {
	values, err := url.ParseQuery(c.R.URL.RawQuery)
	if err != nil {
		return nil, problem.Refuse(http.StatusBadRequest, "the query cannot be read: %v", err)
	}
	var problems []api.Problem
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			problems = append(problems, api.Problem{Field: foreign.Clip(name, 60), Message: "is not known" + suggest.Phrase(name, known)})
		}
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	return values, nil
}

// Integer reads an optional parameter within bounds.
func Integer(values url.Values, name string, missing, least, most int64) (int64, error) {
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

// WithoutBody refuses a call that has a body before anything is done.
func WithoutBody(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var n int
		var err error
		if r.Body != nil && r.Body != http.NoBody {
			Patiently(w, r, func() { n, err = io.ReadFull(r.Body, make([]byte, 1)) })
		}
		switch {
		case n > 0:
			WriteControl(w, 0, nil, problem.Refuse(http.StatusBadRequest, "%s %s takes no body; leave it out", r.Method, r.URL.Path))
		case err != nil && !errors.Is(err, io.EOF):
			WriteControl(w, 0, nil, Unreadable(err))
		default:
			handle(w, r)
		}
	}
}
