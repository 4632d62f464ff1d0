package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/internal/sync/destination"
)

// The values of sync_run.error_code. Which ones exist is not published but for
// one that never fits; these are ours.
const (
	CodeCanceled      = "CANCELED"       // by a user
	CodeEmptySource   = "EMPTY_SOURCE"   // a mirror would remove everything
	CodeConfiguration = "CONFIGURATION"  // the sync does not fit its source or destination
	CodeSource        = "SOURCE_ERROR"   // the source could not be read
	CodeState         = "STATE_ERROR"    // the ledger could not be read or written
	CodeSpeed         = "SYNC_SPEED"     // get_sync_speed gave numbers that cannot be used
	CodeUnreachable   = "UNREACHABLE"    // no connection to the destination
	CodeUnauthorized  = "UNAUTHORIZED"   // 401 or 403
	CodeTimeout       = "TIMEOUT"        // the destination did not answer in time
	CodeThrottled     = "THROTTLED"      // 429 for longer than Backoff.Throttle
	CodeRPC           = "RPC_ERROR"      // an error object (spec 7.2.2)
	CodeStatus        = "HTTP_STATUS"    // a status other than 200
	CodeUnknown       = "UNKNOWN_ERROR"  // a reply without the right keys (spec 7.2.1)
	CodeNetwork       = "NETWORK_ERROR"  // the connection broke
	CodeInternal      = "INTERNAL_ERROR" // a fault of this program
)

// ErrStop as the cause of a cancelled context stops a run instead of ending it:
// Run with the same number goes on from there. It is what a service that shuts
// down gives.
var ErrStop = errors.New("the run is stopped and goes on later")

// Failure is why a run failed, in words for sync_run.error_code,
// error_message and error_detail (spec 2.9). It holds no secrets.
type Failure struct {
	Code, Message, Detail string
	// Transient means that the same run may well succeed a little later.
	Transient bool
	cause     error
}

// Error gives the message.
func (f *Failure) Error() string { return f.Message }

// Unwrap gives the error behind it.
func (f *Failure) Unwrap() error { return f.cause }

func failed(code string, cause error, format string, args ...any) *Failure {
	// A disk that is full, or locked, may be free a little later.
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...), Transient: code == CodeState, cause: cause}
}

// codes of the outcomes of calls.
var codes = map[string]string{
	destination.OutcomeRPCError: CodeRPC, destination.OutcomeRefused: CodeUnauthorized,
	destination.OutcomeStatus: CodeStatus, destination.OutcomeMalformed: CodeUnknown,
	destination.OutcomeTooLarge: CodeUnknown, destination.OutcomeDNS: CodeUnreachable, destination.OutcomeConnect: CodeUnreachable,
	destination.OutcomeTLS: CodeUnreachable, destination.OutcomeURL: CodeUnreachable, destination.OutcomeSecret: CodeUnauthorized,
	destination.OutcomeNetwork: CodeNetwork, destination.OutcomeTimeout: CodeTimeout,
}

// ofCall is the failure of a run that a call has ended.
func ofCall(err error) *Failure {
	var own *Failure
	if errors.As(err, &own) {
		return own
	}
	var call *destination.CallError
	if !errors.As(err, &call) {
		return failed(CodeInternal, err, "send records: %v", err)
	}
	code := codes[call.Outcome]
	if code == "" {
		code = CodeInternal
	}
	f := failed(code, err, "%s", call.Message)
	f.Detail = call.Error()
	f.Transient = code != CodeUnauthorized && call.Outcome != destination.OutcomeURL
	return f
}

// reaction is what follows a call that failed as a whole.
type reaction uint8

const (
	again    reaction = iota // then split: the content may be the reason
	waitFor                  // nothing is there: splitting would not help
	pause                    // 429: the connection rests, no attempt is spent
	giveUp                   // only a user can help
	canceled                 // by the caller
)

// react decides by the outcome of a call.
func react(ctx context.Context, err error) reaction {
	var call *destination.CallError
	if !errors.As(err, &call) {
		if ctx.Err() != nil {
			return canceled
		}
		return giveUp
	}
	switch {
	case call.Status == statusThrottled, call.Outcome == destination.OutcomeLimit:
		return pause
	case call.Outcome == destination.OutcomeCanceled:
		return canceled
	case call.Outcome == destination.OutcomeURL, call.Outcome == destination.OutcomeSecret:
		return giveUp
	}
	switch call.Outcome {
	case destination.OutcomeDNS, destination.OutcomeTLS, destination.OutcomeConnect, destination.OutcomeRefused:
		return waitFor
	}
	return again
}

const statusThrottled = 429
