package call

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// ControlPath is the root of everything that an emulation needs besides the API.
const ControlPath = "/_control"

// ControlRoute is one route of the control API with the line that GET /_control
// shows for it.
type ControlRoute struct {
	Method string         `json:"method"`
	Path   string         `json:"path"`
	Does   string         `json:"does"`
	Handle ControlHandler `json:"-"`
}

// ControlHandler answers a control call. The answer is a 200 with the value as
// JSON, a controlReply for another status, or nil when the handler has written
// everything itself.
type ControlHandler func(*Control) (any, error)

// ControlReply is an answer with its own status.
type ControlReply struct {
	Code int
	Body any
}

// Control is one call of the control API.
type Control struct {
	W http.ResponseWriter
	R *http.Request
}

// Survive turns a panic of a handler into an error: a test gets an answer that
// points to the log.
func Survive(handle ControlHandler, c *Control) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return handle(c)
}

// WriteControl writes a value, or an error in the one shape of all control
// errors, which is that of the API's spec dialect.
func WriteControl(w http.ResponseWriter, code int, value any, err error) {
	if err != nil {
		f := problem.Of(err)
		code, value = f.Code, Switches{}.Failure(f)
		if f.Retry != "" {
			w.Header().Set("Retry-After", f.Retry)
		}
	}
	text, err := rawjson.Encode(value)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(`{"status":"error","message":"the answer cannot be written","errors":[]}`+"\n")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store") // answers hold tokens
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// Done is the answer of a handler without a result.
var Done = map[string]string{"status": "success"}

// Gone reports that a thing of the path does not exist.
func Gone(kind string, id any) error {
	return problem.Refuse(http.StatusNotFound, "there is no %s %v", kind, fmt.Sprint(id))
}

// Named finds what the path of a control call names by its id, of whichever owner.
func Named[T any](c *Control, tx *store.Tx, table *store.Table[T], kind string) (*T, error) {
	return Known(tx, table, kind, IDOf(c))
}

// Known is Named by an id from elsewhere.
func Known[T any](tx *store.Tx, table *store.Table[T], kind string, id int64) (*T, error) {
	found, err := table.Any(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, Gone(kind, id)
	}
	return found, err
}

// IDOf is the id of the path; ids that are no number do not exist.
func IDOf(c *Control) int64 { return (&Call{R: c.R}).ID("id") }

// Route is a route of the control API: its method, its path below ControlPath, its
// description, and its handler.
func Route(method, path, does string, handle ControlHandler) ControlRoute {
	return ControlRoute{Method: method, Path: path, Does: does, Handle: handle}
}

// Status answers a control call with another status than 200.
func Status(code int, body any) ControlReply { return ControlReply{Code: code, Body: body} }
