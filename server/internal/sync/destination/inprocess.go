package destination

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/destkit/destkit/destsim/rpc"
)

// inProcess carries calls to a handler without a network.
type inProcess struct {
	limit   int64
	handler func() (http.Handler, error)
}

// errAborted is what a caller sees when a handler ends a call in the middle.
var errAborted = errors.New("the emulated destination ended the call without a reply")

// RoundTrip runs the handler and gives up waiting when the context ends.
func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	handler, err := t.handler()
	if err != nil {
		return nil, err
	}
	type reply struct {
		w   *recorder
		err error
	}
	done := make(chan reply, 1)
	go func() {
		w := &recorder{header: http.Header{}, limit: t.limit}
		done <- reply{w, w.run(handler, r)}
	}()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case got := <-done:
		if got.err != nil {
			return nil, got.err
		}
		return got.w.response(r), nil
	}
}

// recorder is the writer of one reply; it keeps at most limit bytes.
type recorder struct {
	header http.Header
	sent   http.Header // as it was when the status was written
	status int
	body   bytes.Buffer
	limit  int64
}

// run calls the handler as a server would; a panic is an aborted call.
func (w *recorder) run(handler http.Handler, r *http.Request) (err error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer in.Body.Close()
	defer func() {
		if p := recover(); p != nil {
			err = errAborted
			if p != http.ErrAbortHandler {
				err = fmt.Errorf("%w: it panicked", errAborted)
			}
		}
	}()
	handler.ServeHTTP(w, in)
	w.WriteHeader(http.StatusOK) // unless one was written
	if int64(w.body.Len()) > w.limit {
		return rpc.ErrReplyTooLarge
	}
	return nil
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// Flush does nothing: the reply is handed over as a whole.
func (w *recorder) Flush() {}

// WriteHeader keeps the first status and the headers of that moment, as a
// server does.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

// Write refuses more than the limit, so that a simulator configured to answer
// without end cannot fill the memory.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if int64(w.body.Len()) > w.limit {
		return 0, rpc.ErrReplyTooLarge
	}
	return w.body.Write(p)
}

// response is what the client sees.
func (w *recorder) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, Request: r,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()),
	}
}
