package engine

import (
	"errors"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// Foreign text enters a report in three places, and secrets are taken out of it
// there: an exchange when it is recorded (wire), the result of a check when its
// scenario ends (Findings.result), and the report as a whole before it is handed out
// (hide), which also has what the run itself noted down. Nothing after that knows
// any secret.

// hide takes the secrets out of what is handed out: a report, a plan, what is left
// of a run, what was sent again.
func hide(secrets *wire.Redactor, out any) {
	if secrets != nil {
		secrets.Value(out)
	}
}

// HideError takes the secrets of the run out of an error.
func (s *Suite) HideError(err error) error {
	if err == nil || s.Secrets == nil {
		return err
	}
	text := err.Error()
	shown := s.Secrets.String(text)
	if shown == text {
		return err
	}
	var mistake *conformance.UsageError
	if errors.As(err, &mistake) {
		return &conformance.UsageError{Message: shown}
	}
	return &hiddenError{shown, err}
}

// hiddenError is an error whose text holds no secret.
type hiddenError struct {
	text  string
	cause error
}

func (e *hiddenError) Error() string        { return e.text }
func (e *hiddenError) Is(target error) bool { return errors.Is(e.cause, target) }
