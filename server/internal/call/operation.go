package call

import (
	"net/http"
	"strings"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/internal/problem"
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
