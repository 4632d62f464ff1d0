package call

import (
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
)

// Failure is the body of a failure as the dialect writes it.
func (s Switches) Failure(f *problem.Failure) any {
	var status any = api.StatusError
	if f.Code == http.StatusNotFound {
		status = api.StatusNotFound
	}
	switch f.Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		if s.ErrorStatusInteger {
			status = f.Code
		}
	}
	if s.ErrorProblems {
		shown := struct {
			Status  any    `json:"status"`
			Message string `json:"message,omitempty"`
		}{status, f.Whole()}
		if f.Code == http.StatusUnauthorized || f.Code == http.StatusNotFound {
			shown.Message = ""
		}
		return shown
	}
	problems := f.Problems
	if problems == nil {
		problems = []api.Problem{}
	}
	return struct {
		Status  any           `json:"status"`
		Message string        `json:"message"`
		Errors  []api.Problem `json:"errors"`
	}{status, f.Message, problems}
}
