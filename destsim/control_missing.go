package destsim

import (
	"fmt"
	"net/http"
	"strings"
)

// worded answers in JSON where a mux itself would answer with plain text: no such path, or
// another method.
func worded(mux *http.ServeMux, endpoints []endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		seen := &statusOnly{header: http.Header{}}
		own.ServeHTTP(seen, r)
		switch seen.status {
		case http.StatusMethodNotAllowed:
			allow := seen.header.Get("Allow")
			w.Header().Set("Allow", allow)
			reply(w, seen.status, controlError{fmt.Sprintf("%s does not take %s, only %s", clip(r.URL.Path), clip(r.Method), allow)})
		case http.StatusNotFound:
			reply(w, seen.status, controlError{noEndpoint(r.URL.Path, endpoints)})
		default: // the mux knows the path by another spelling
			own.ServeHTTP(w, r)
		}
	})
}

// noEndpoint is about a path that does not exist.
func noEndpoint(path string, endpoints []endpoint) string {
	var known []string
	for _, e := range endpoints {
		if name, found := strings.CutPrefix(e.Path, "/_control/"); found && !strings.Contains(name, "{") {
			known = append(known, name)
		}
	}
	hint := didYouMean(strings.TrimPrefix(path, "/_control/"), known)
	return fmt.Sprintf("no endpoint %q%s; GET /_control lists all", clip(path), hint)
}

// statusOnly is told an answer that is not sent.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }
