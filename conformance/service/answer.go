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
	body         any    // marshalled; json.RawMessage and []byte as they are; nil: none
	as           identity
	token        string // another token, in place of as
	header       http.Header
	control      bool          // below the control URL instead
	outside      bool          // below what stands before /api/v1 instead
	within       time.Duration // in place of callTimeout
}

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

// short says what came back, for a finding.
func (a *answer) short() string {
	if !a.OK() {
		return fmt.Sprintf("%s %s: no answer (%v)", a.request.method, a.request.path, a.Err)
	}
	return fmt.Sprintf("%s %s: HTTP %d %s", a.request.method, a.request.path, a.Status, foreign.Clip(a.Body, longest))
}

// callTimeout bounds a call of the API; moving the clock runs syncs, and may take
// longer.
const (
	callTimeout  = 30 * time.Second
	clockTimeout = 2 * time.Minute
)

// send makes one call, whatever comes back. Its error is a fault of the judge or
// the end of the run.
func (r *run) send(ctx context.Context, check string, q request) (*answer, error) {
	call := wire.Call{Check: check, RPC: q.method + " " + q.path, HTTPMethod: q.method, Timeout: cmp.Or(q.within, callTimeout)}
	switch body := q.body.(type) {
	case nil:
	case []byte:
		call.Body = body
	case json.RawMessage:
		call.Body = body
	default:
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode body of %s %s: %w", q.method, q.path, err)
		}
		call.Body = raw
	}
	call.Header = http.Header{"Accept": {"application/json"}, "Keep-Alive": nil, "Authorization": nil}
	if call.Body == nil {
		call.Header["Content-Type"] = nil
	}
	call.URL = r.target.BaseURL + q.path
	if q.outside {
		call.URL = strings.TrimSuffix(r.target.BaseURL, "/api/v1") + q.path
	}
	if token := r.tokenFor(q); token != "" {
		call.Header["Authorization"] = []string{"Bearer " + token}
	}
	if q.control {
		call.URL, call.Timeout = r.target.ControlURL+q.path, clockTimeout
	}
	maps.Copy(call.Header, q.header)
	reply := r.client.Do(ctx, call)
	if ctx.Err() != nil {
		return nil, engine.NotRun("--timeout", "the run ended before the answer of %s %s", q.method, q.path)
	}
	a := &answer{Reply: reply, request: q}
	if reply.OK() {
		a.json, _ = reply.JSON()
		return a, nil
	}
	// What never came to its end is no answer: neither its status nor its headers
	// show anything.
	lost := *reply
	lost.Status, lost.Header = 0, http.Header{}
	a.Reply = &lost
	return a, nil
}

func (r *run) tokenFor(q request) string {
	switch {
	case q.token != "":
		return q.token
	case q.control:
		return r.target.ControlToken
	case q.as == asWorkspace:
		return r.key
	case q.as == asOrganization:
		return r.target.PersonalAccessToken
	}
	return ""
}
