package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/store"
)

// CloseConsole ends the live updates of open pages, which otherwise never end.
func (s *Server) CloseConsole() {
	if s.console != nil {
		s.console.Close()
	}
}

// insider calls the API from within the process, as a workspace.
type insider struct {
	performer *call.Performer
	lock      *statelock.Lock
	serve     http.HandlerFunc // as a client would be
}

// workspace is a workspace as if it had called with its key.
func (n *insider) workspace(ctx context.Context, id int64) (who call.Principal, err error) {
	err = n.performer.Shared.Store.View(ctx, func(tx *store.Tx) error {
		w, err := store.Workspaces.Any(tx, id)
		if err == nil {
			who = call.Principal{Workspace: w, OrganizationID: w.OrganizationID, WorkspaceID: w.ID}
		}
		return err
	})
	return who, err
}

// perform runs an operation of the API as a workspace, past the journal and
// the faults: those are for clients.
func (n *insider) perform(ctx context.Context, workspaceID int64, operation string, path map[string]int64, query url.Values, body any) (json.RawMessage, error) {
	hold := n.lock.Enter(ctx)
	defer hold.Leave()
	who, err := n.workspace(hold.Ctx, workspaceID)
	if err != nil {
		return nil, shownProblem(hold.Failure(err))
	}
	reply, err := n.performer.Perform(hold.Ctx, who, operation, path, query, body)
	return reply, shownProblem(hold.Failure(err))
}

// shownProblem is an error as a page shows it.
func shownProblem(err error) error {
	if err == nil {
		return nil
	}
	f := problem.Of(err)
	shown := console.Refuse(f.Code, "%s", f.Message)
	for _, p := range f.Problems {
		shown.Fields = append(shown.Fields, console.FieldProblem{Field: p.Field, Message: p.Message})
	}
	if len(shown.Fields) == 1 {
		shown.Fields = nil // the message includes it
	}
	return shown
}

// sentByConsole replaces a client's token; the journal hides it.
const sentByConsole = "Bearer sent-by-the-console"

// send makes a request of the API as a client with the key of the workspace
// would, journal and faults included.
func (n *insider) send(ctx context.Context, workspaceID int64, method, target string, body []byte) (code int, id string, err error) {
	who, err := n.workspace(ctx, workspaceID)
	if err != nil {
		return 0, "", shownProblem(err)
	}
	at, err := url.Parse(target)
	if err != nil || at.IsAbs() || at.Host != "" {
		return 0, "", console.Refuse(http.StatusBadRequest, "path: must be a path of the API, such as %s/syncs?page=1", api.BasePath)
	}
	r, err := http.NewRequestWithContext(call.WithPrincipal(ctx, who), method, "http://console.localhost"+at.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return 0, "", console.Refuse(http.StatusBadRequest, "the request cannot be made: %v", err)
	}
	r.Header.Set("Authorization", sentByConsole)
	r.RequestURI, r.RemoteAddr = at.RequestURI(), "console"
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	} else {
		r.Body = http.NoBody
	}
	w := &sentReply{header: http.Header{}}
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { // a fault has dropped the connection
				panic(p)
			}
		}()
		n.serve(w, r)
	}()
	return w.code, w.header.Get("X-Request-Id"), nil
}

// sentReply keeps the status of a reply; the journal has the rest.
type sentReply struct {
	header http.Header
	code   int
}

func (w *sentReply) Header() http.Header { return w.header }
func (w *sentReply) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
}
func (w *sentReply) Write(text []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return io.Discard.Write(text)
}
