package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// failure is a call that does not succeed: HTTP status, a sentence for the
// client, and the problems of its payload.
type failure struct {
	code     int
	message  string
	problems []api.Problem
	cause    error // for the log; never shown
	allow    string
	retry    string // Retry-After
}

// Error is the sentence for the client; the cause stays out of it, as it may
// hold a secret.
func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.cause }

// refuse is a failure with a message.
func refuse(code int, format string, args ...any) *failure {
	return &failure{code: code, message: fmt.Sprintf(format, args...)}
}

// invalid is a 400 that reports all problems together.
func invalid(problems []api.Problem) *failure {
	message := "the request is invalid"
	if len(problems) > 0 {
		message = problems[0].String()
	}
	if more := len(problems) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	return &failure{code: http.StatusBadRequest, message: message, problems: problems}
}

// whole is a message for replies without a list of problems: it names all of
// them, each with its field.
func (f *failure) whole() string {
	if len(f.problems) < 2 {
		return f.message
	}
	texts := make([]string, len(f.problems))
	for i, p := range f.problems {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}

// invalidField is a 400 about one field.
func invalidField(field, format string, args ...any) *failure {
	return invalid([]api.Problem{{Field: field, Message: fmt.Sprintf(format, args...)}})
}

// conflictField is a 409 about one field.
func conflictField(field, format string, args ...any) *failure {
	p := api.Problem{Field: field, Message: fmt.Sprintf(format, args...)}
	return &failure{code: http.StatusConflict, message: p.String(), problems: []api.Problem{p}}
}

// failureOf turns any error into what the client may know of it.
func failureOf(err error) *failure {
	var f *failure
	var duplicate *store.DuplicateError
	var inUse *store.InUseError
	var tooLarge *http.MaxBytesError
	var none *descriptors.ExhaustedError
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, store.ErrNotFound):
		return refuse(http.StatusNotFound, "there is no such resource")
	case errors.Is(err, store.ErrConflict):
		return refuse(http.StatusConflict, "the resource was changed by another request at the same time; read it and try again")
	case errors.Is(err, store.ErrGone):
		return refuse(http.StatusConflict, "something that the request refers to was deleted by another request at the same time; look what is there and try again")
	case errors.As(err, &duplicate):
		return conflictField(duplicate.Field, "%q is taken; choose another %s", duplicate.Value, duplicate.Field)
	case errors.As(err, &inUse):
		return refuse(http.StatusConflict, "the %s is in use by %d %s; change or delete them first", inUse.Kind, inUse.Count, inUse.By)
	case errors.As(err, &tooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &none):
		return &failure{code: http.StatusServiceUnavailable, message: none.Error(), cause: err}
	case store.Full(err):
		// Emulated destinations and warehouses have databases of their own, and
		// snapshots have files.
		return &failure{code: http.StatusInsufficientStorage, message: "the service's disk is full; nothing was changed", cause: err}
	case errors.Is(err, ledger.ErrDamaged):
		return &failure{code: http.StatusInternalServerError, message: "a file of the ledger is damaged; the next run of its sync says what is lost", cause: err}
	case errors.Is(err, store.ErrDamaged):
		return &failure{code: http.StatusInternalServerError, message: "the service's database is damaged; start it from a backup", cause: err}
	case errors.Is(err, store.ErrNewer):
		return &failure{code: http.StatusServiceUnavailable, message: "a newer version of the service has changed the database; this process works no more: replace it by one of that version", cause: err}
	case errors.Is(err, store.ErrWrongKey):
		return &failure{code: http.StatusServiceUnavailable, message: "the master key of the service was changed; start this process again with the new one", cause: err}
	case errors.Is(err, store.ErrCrowded):
		return &failure{code: http.StatusServiceUnavailable, message: "the service's database has no connection free; try again in a moment", cause: err}
	case errors.Is(err, store.ErrUnavailable):
		return &failure{code: http.StatusServiceUnavailable, message: "the service's database is not available; try again in a moment", cause: err}
	case errors.Is(err, store.ErrClosed):
		return &failure{code: http.StatusServiceUnavailable, message: "the service is stopping, or the fork has ended", cause: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &failure{code: http.StatusServiceUnavailable, message: "the request ended before its answer was ready", cause: err}
	}
	return &failure{code: http.StatusInternalServerError, message: "the service failed; its log has the request id", cause: err}
}

// failure is the body of a failure as the dialect writes it.
func (s switches) failure(f *failure) any {
	var status any = api.StatusError
	if f.code == http.StatusNotFound {
		status = api.StatusNotFound
	}
	switch f.code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		if s.ErrorStatusInteger {
			status = f.code
		}
	}
	if s.ErrorProblems {
		shown := struct {
			Status  any    `json:"status"`
			Message string `json:"message,omitempty"`
		}{status, f.whole()}
		if f.code == http.StatusUnauthorized || f.code == http.StatusNotFound {
			shown.Message = ""
		}
		return shown
	}
	problems := f.problems
	if problems == nil {
		problems = []api.Problem{}
	}
	return struct {
		Status  any           `json:"status"`
		Message string        `json:"message"`
		Errors  []api.Problem `json:"errors"`
	}{status, f.message, problems}
}
