package call

import (
	"net/http"
	"strings"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// Handler answers one call; an error becomes a failure.
type Handler func(*Call) (*Reply, error)

// Operation is one operation of the document with the handler that serves it.
type Operation struct {
	*openapi.Operation
	Handle Handler
}

// AllowedMethods are the methods that a path has, as the header Allow lists
// them; "" when there is no such path. The mux's catch-all is "/".
func AllowedMethods(mux *http.ServeMux, r *http.Request) string {
	var allowed []string
	for _, method := range []string{"DELETE", "GET", "PATCH", "POST", "PUT"} {
		if _, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); strings.HasPrefix(pattern, method+" ") {
			allowed = append(allowed, method)
		}
	}
	return strings.Join(allowed, ", ")
}

// WrongMethod is the 405 of a path that has other methods.
func WrongMethod(r *http.Request, allowed string) *problem.Failure {
	f := problem.Refuse(http.StatusMethodNotAllowed, "%s is not possible here; allowed are %s", r.Method, allowed)
	f.Allow = allowed
	return f
}

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

// PageOf answers one page of rows as show writes them (spec 2.1). read runs in
// one consistent view, so that the rows and their total belong together.
func PageOf[Row, Shown any](c *Call, read func(*store.Tx, store.Page) ([]Row, int64, error), show func(Row) Shown) (*Reply, error) {
	page := c.Page()
	shown := []Shown{} // never nil: an empty list is [] on the wire
	var total int64
	err := c.View(func(tx *store.Tx) error {
		rows, n, err := read(tx, page)
		for _, row := range rows {
			shown = append(shown, show(row))
		}
		total = n
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.List(page, total, shown)
}

// SlicePage is one page of a list that is not in the store. Its order is that
// of creation, so newest first is the end first (spec 8).
func SlicePage[T any](all []T, page store.Page) []T {
	ordered := make([]T, len(all))
	for i, v := range all {
		at := i
		if !page.Ascending {
			at = len(all) - 1 - i
		}
		ordered[at] = v
	}
	from := min((page.Number-1)*page.PerPage, int64(len(ordered)))
	if page.Number > int64(len(ordered))+1 { // the product may have overflowed
		from = int64(len(ordered))
	}
	return ordered[from:min(from+page.PerPage, int64(len(ordered)))]
}
