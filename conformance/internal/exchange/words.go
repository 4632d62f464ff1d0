package exchange

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/unreached"
)

// Failure describes what kept a complete reply from coming.
func (r *Reply) Failure() string {
	reset := errors.Is(r.Err, syscall.ECONNRESET) || errors.Is(r.Err, syscall.EPIPE)
	switch {
	case r.Kind == wire.KindTimeout:
		return fmt.Sprintf("no complete reply within %s", Round(r.Total))
	case r.Kind == wire.KindClosed:
		return "the server closed the connection without responding"
	case r.Kind == wire.KindReset && reset:
		return "the server reset the connection without responding"
	case r.Kind == wire.KindTruncated && errors.Is(r.Err, io.ErrUnexpectedEOF):
		return "the response was truncated: the connection ended in the middle of it"
	case r.Kind == wire.KindTruncated && reset:
		return "the response was truncated: the server reset the connection in the middle of it"
	case r.Err != nil && r.Received == 0 && r.Kind != wire.KindCanceled:
		return InWords(r.Err, "the endpoint")
	case r.Err != nil:
		return r.Err.Error()
	case r.OK():
		return fmt.Sprintf("HTTP status %d", r.Status)
	}
	return string(r.Kind)
}

// InWords explains in plain words why a call to a host, or its connection, failed.
func InWords(err error, host string) string {
	if cause := unreached.Of(err, "endpoint", host); cause.What != "" {
		return cause.What
	}
	return err.Error()
}

// Round gives a duration as it is shown.
func Round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// Symptom names the method and the shape of what came back, the same for all replies of one
// defect. An ordinary record result has none.
func (r *Reply) Symptom() string {
	shape := ""
	// A null id of an error is that of a request that could not be read.
	if r.OtherID() && (!r.Member("id").Is(wire.Null) || r.Member("result") != nil) {
		return "another id"
	}
	switch {
	case !r.Ended():
		shape = string(r.Kind)
	case r.Doc() == nil:
		shape = fmt.Sprintf("HTTP %d without JSON", r.Status)
	case r.IsError():
		shape = fmt.Sprintf("HTTP %d error %s", r.Status, r.ErrorCode())
	case r.Result() == nil:
		kinds := lists.Of(r.Doc().Members, func(m wire.Member) string { return fmt.Sprintf("%s %v", m.Name, m.Value.Kind) })
		shape = fmt.Sprintf("HTTP %d %s", r.Status, strings.Join(kinds, " "))
	case r.Method == rpc.MethodSyncBatch && !r.Result().Get("record_results").Is(wire.Array):
		shape = "no record_results"
	case r.Method == rpc.MethodSyncBatch:
		return ""
	default:
		return r.methodName() + " " + r.Object + ": result"
	}
	return r.methodName() + ": " + shape
}

// methodName is the method, the same for all that do not exist.
func (r *Reply) methodName() string {
	if (r.Method != "" || bytes.Contains(r.Request, []byte(`"method":""`))) && !slices.Contains(rpc.Methods(), r.Method) {
		return "an unknown method"
	}
	return r.Method
}

// What describes the call for a finding: `list_fields of "contact"`.
func (r *Reply) What() string {
	if r.Object != "" {
		return fmt.Sprintf("%s of %q", r.Method, r.Object)
	}
	return cmp.Or(r.Method, "the call")
}

// Short shows the reply in a line.
func (r *Reply) Short() string {
	if !r.OK() {
		return r.Failure()
	}
	// Only the beginning is shown, however long the body is.
	text := strings.ToValidUTF8(string(r.Body[:min(len(r.Body), utf8.UTFMax*(shownCharacters+1))]), "\ufffd")
	if text == "" {
		return fmt.Sprintf("HTTP %d with an empty body", r.Status)
	}
	if r.Status != http.StatusOK {
		return fmt.Sprintf("HTTP %d %s", r.Status, foreign.Clip(text, shownCharacters-20))
	}
	return foreign.Clip(text, shownCharacters)
}

// shownCharacters is how many characters of a reply a finding shows.
const shownCharacters = 260
