package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/foreign"
)

// Who calls: spec 5.1 knows two kinds of tokens.
type identity int

const (
	asWorkspace    identity = iota // the key of the run's workspace
	asOrganization                 // the personal access token
	asNobody                       // no Authorization header
)

// request is one call of the REST API.
type request struct {
	method, path string // below the base URL, with the query
	body         any    // marshalled; json.RawMessage as it is; nil: none
	as           identity
	token        string // another token, in place of as
	header       http.Header
	control      bool          // below the control URL instead
	outside      bool          // below the prefix before /api/v1 instead
	within       time.Duration // in place of callTimeout
}

func (q request) String() string { return q.method + " " + q.path }

// below is a path of the API with an id in it.
func below(kind string, id int64, rest string) string { return fmt.Sprintf("/%s/%d%s", kind, id, rest) }

// answer is what came back.
type answer struct {
	*wire.Reply
	request request
	json    *wire.Node // nil when the body is no JSON
}

// at goes down into the body; see wire.Node.Get.
func (a *answer) at(path ...string) *wire.Node { return a.json.Get(path...) }

// text is the string at a path, "" for anything else.
func (a *answer) text(path ...string) string { return jsonvalue.Text(a.at(path...)) }

// id is the integer at a path, 0 for anything else.
func (a *answer) id(path ...string) int64 {
	n, _ := a.at(path...).Int()
	return n
}

// longest is how much of a text a finding shows, in characters.
const longest = 300

// short describes what came back, for a finding.
func (a *answer) short() string {
	if !a.OK() {
		return fmt.Sprintf("%s: no answer (%v)", a.request, a.Err)
	}
	return fmt.Sprintf("%s: HTTP %d %s", a.request, a.Status, foreign.Clip(a.Body, longest))
}

// callTimeout bounds a call of the API; moving the clock runs syncs, and may take longer.
const callTimeout, clockTimeout = 30 * time.Second, 2 * time.Minute

// send makes one call, whatever comes back. Its error is the end of the run.
func (r *run) send(ctx context.Context, check string, q request) (*answer, error) {
	call := wire.Call{
		Check: check, RPC: q.String(), HTTPMethod: q.method, URL: r.target.BaseURL + q.path, Timeout: cmp.Or(q.within, callTimeout),
		Header: http.Header{"Accept": {"application/json"}, "Keep-Alive": nil, "Authorization": nil},
	}
	if text, is := q.body.(json.RawMessage); is { // verbatim, even if it is no JSON
		call.Body = text
	} else if q.body != nil {
		call.Body = jsonvalue.Encode(q.body)
	} else {
		call.Header["Content-Type"] = nil
	}
	switch {
	case q.outside:
		call.URL = strings.TrimSuffix(r.target.BaseURL, "/api/v1") + q.path
	case q.control:
		call.URL, call.Timeout = r.target.ControlURL+q.path, clockTimeout
	}
	if token := r.tokenFor(q); token != "" {
		call.Header["Authorization"] = []string{"Bearer " + token}
	}
	maps.Copy(call.Header, q.header)
	reply := r.client.Do(ctx, call)
	if ctx.Err() != nil {
		return nil, engine.NotRun("--timeout", "the run ended before the answer of %s", q)
	}
	a := &answer{Reply: reply, request: q}
	if reply.OK() {
		a.json, _ = reply.JSON()
		return a, nil
	}
	// An answer that never ended is no answer: neither its status nor its headers show anything.
	lost := *reply
	lost.Status, lost.Header = 0, http.Header{}
	a.Reply = &lost
	return a, nil
}

// accepted reports whether a call was carried out.
func accepted(a *answer) bool {
	return a.OK() && a.Status < http.StatusMultipleChoices && a.text("status") != "error"
}

// refused reports whether a service has seen the fault of a call, with any status (spec 7.1); its own fault is no refusal.
func refused(a *answer) bool {
	return a.OK() && a.Status < http.StatusInternalServerError &&
		(a.Status >= http.StatusBadRequest || a.text("status") == "error" || a.text("status") == "not_found")
}

func (r *run) tokenFor(q request) string {
	if q.control {
		return cmp.Or(q.token, r.target.ControlToken)
	}
	return cmp.Or(q.token, map[identity]string{asWorkspace: r.key, asOrganization: r.target.PersonalAccessToken}[q.as])
}
