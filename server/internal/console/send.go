package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/server/api"
)

// sendPage is the form of a request of the API, empty or as another one was.
type sendPage struct {
	Organizations        []organization
	Workspace            int64
	Method, Target, Body string
	Hidden               bool // the body has places where a secret was
}

// sendMethods are those of the API.
var sendMethods = []string{"GET", "POST", "PATCH", "DELETE"}

// Methods are the choices of the form.
func (sendPage) Methods() []string { return sendMethods }

func (s *site) sendForm(r *console.Request) (any, error) {
	all, err := s.organizations(r.Context())
	if err != nil {
		return nil, err
	}
	p := sendPage{Organizations: all, Method: r.Query("method"), Target: r.Query("target")}
	p.Workspace, _ = strconv.ParseInt(r.Query("workspace"), 10, 64) // 0: the first one
	if p.Target == "" {
		p.Target = api.BasePath + "/syncs"
	}
	id := r.Query("from")
	if id == "" {
		return p, nil
	}
	e, err := entryOf(r.Context(), s, "/journal/requests", url.Values{"id": {id}}, func(e *requestEntry) bool { return e.ID == id }, "request", id)
	if err != nil {
		return nil, err
	}
	if text, err := json.MarshalIndent(e.Request, "", "  "); err == nil && string(text) != "null" {
		p.Body = string(text)
		p.Hidden = strings.Contains(p.Body, "[hidden]")
	}
	return p, nil
}

// send makes the request as the workspace, and shows its result.
func (s *site) send(r *console.Request) (string, error) {
	method, target := strings.ToUpper(r.Form("method")), r.Form("target")
	if !slices.Contains(sendMethods, method) {
		return "", console.Refuse(http.StatusBadRequest, "method: must be one of %s", strings.Join(sendMethods, ", "))
	}
	if !strings.HasPrefix(target, api.BasePath) {
		return "", console.Refuse(http.StatusBadRequest, "path: must begin with %s", api.BasePath)
	}
	id, given, err := r.Number("workspace")
	if err == nil && !given {
		err = console.Refuse(http.StatusBadRequest, "workspace: choose the workspace that calls")
	}
	if err != nil {
		return "", err
	}
	status, request, err := s.Send(r.Context(), id, method, target, []byte(r.HTTP.PostForm.Get("body")))
	if err != nil {
		return "", err
	}
	if request == "" {
		r.Done(fmt.Sprintf("%s %s: the connection was dropped without a response.", method, target))
		return "/requests", nil
	}
	r.Done(fmt.Sprintf("%s %s was answered with %d.", method, target, status))
	return "/requests/" + request, nil
}
