// Package problem builds the API's error answers: status, a sentence for the client, the
// problems of its payload. It knows the errors of the parts below, and keeps possible
// secrets out of the sentence.
package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Failure is a call that does not succeed: HTTP status, a sentence for the
// client, and the problems of its payload.
type Failure struct {
	Code     int
	Message  string
	Problems []api.Problem
	Cause    error  // for the log; never shown
	Allow    string // the header
	Retry    string // Retry-After
}

// Error is the sentence for the client; the cause stays out of it, as it may
// hold a secret.
func (f *Failure) Error() string { return f.Message }
func (f *Failure) Unwrap() error { return f.Cause }

// Refuse is a failure with a message.
func Refuse(code int, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid is a 400 that reports all problems together.
func Invalid(problems []api.Problem) *Failure {
	message := "the request is invalid"
	if len(problems) > 0 {
		message = problems[0].String()
	}
	if more := len(problems) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	return &Failure{Code: http.StatusBadRequest, Message: message, Problems: problems}
}

// Whole is a message for replies without a list of Problems: it names all of
// them, each with its field.
func (f *Failure) Whole() string {
	if len(f.Problems) < 2 {
		return f.Message
	}
	texts := make([]string, len(f.Problems))
	for i, p := range f.Problems {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}

// InvalidField is a 400 about one field.
func InvalidField(field, format string, args ...any) *Failure {
	return Invalid([]api.Problem{{Field: field, Message: fmt.Sprintf(format, args...)}})
}

// ConflictField is a 409 about one field.
func ConflictField(field, format string, args ...any) *Failure {
	p := api.Problem{Field: field, Message: fmt.Sprintf(format, args...)}
	return &Failure{Code: http.StatusConflict, Message: p.String(), Problems: []api.Problem{p}}
}

// Of turns any error into what the client may know of it.
func Of(err error) *Failure {
	var f *Failure
	var duplicate *store.DuplicateError
	var inUse *store.InUseError
	var tooLarge *http.MaxBytesError
	var none *descriptors.ExhaustedError
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, store.ErrNotFound):
		return Refuse(http.StatusNotFound, "there is no such resource")
	case errors.Is(err, store.ErrConflict):
		return Refuse(http.StatusConflict, "the resource was changed by another request at the same time; read it and try again")
	case errors.Is(err, store.ErrGone), errors.Is(err, destination.ErrRemoved):
		return Refuse(http.StatusConflict, "something that the request refers to was deleted by another request at the same time; look what is there and try again")
	case errors.As(err, &duplicate):
		return ConflictField(duplicate.Field, "%q is taken; choose another %s", duplicate.Value, duplicate.Field)
	case errors.As(err, &inUse):
		return Refuse(http.StatusConflict, "the %s is in use by %d %s; change or delete them first", inUse.Kind, inUse.Count, inUse.By)
	case errors.As(err, &tooLarge):
		return Refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &none):
		return &Failure{Code: http.StatusServiceUnavailable, Message: none.Error(), Cause: err}
	case store.Full(err):
		// Emulated destinations and warehouses have separate databases, and
		// snapshots have files.
		return &Failure{Code: http.StatusInsufficientStorage, Message: "the service's disk is full; nothing was changed", Cause: err}
	case errors.Is(err, ledger.ErrDamaged):
		return &Failure{Code: http.StatusInternalServerError, Message: "a file of the ledger is damaged; the next run of its sync says what is lost", Cause: err}
	case errors.Is(err, store.ErrDamaged):
		return &Failure{Code: http.StatusInternalServerError, Message: "the service's database is damaged; start it from a backup", Cause: err}
	case errors.Is(err, store.ErrDisk):
		return &Failure{Code: http.StatusInternalServerError, Message: "the disk of the service's database fails; what was acknowledged is kept: see to the disk, then look what is there and try again", Cause: err}
	case errors.Is(err, store.ErrWrongKey):
		return &Failure{Code: http.StatusServiceUnavailable, Message: "the master key of the service was changed; start this process again with the new one", Cause: err}
	case errors.Is(err, store.ErrClosed):
		return &Failure{Code: http.StatusServiceUnavailable, Message: "the service is stopping", Cause: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Failure{Code: http.StatusServiceUnavailable, Message: "the request ended before its answer was ready", Cause: err}
	}
	return &Failure{Code: http.StatusInternalServerError, Message: "the service failed; its log has the request id", Cause: err}
}
