package golang

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// server serves every endpoint at its path: /m/NAME/rpc is the endpoint
// with the mistake or habit NAME, /m/NAME+OTHER/rpc has two, /m/none/rpc none.
// The same path has /m/NAME/readback, for the tests alone.
type server struct {
	token     string
	mu        sync.Mutex
	endpoints map[string]*endpoint
}

// Start serves the endpoints on a free port until the caller closes it.
func Start(token string) *httptest.Server {
	s := httptest.NewUnstartedServer(&server{token: token, endpoints: map[string]*endpoint{}})
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // panics are among the mistakes
	s.Start()
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, what, ok := cutLast(strings.TrimPrefix(r.URL.Path, "/m/"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	e := s.endpoint(at)
	if what != "readback" {
		e.serve(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_ = json.NewEncoder(w).Encode(e.store.readback(body))
}

func (s *server) endpoint(at string) *endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endpoints[at] == nil {
		names, _, _ := strings.Cut(at, "/")
		s.endpoints[at] = newEndpoint(s.token, strings.Split(names, "+"))
	}
	return s.endpoints[at]
}

func cutLast(path string) (before, after string, ok bool) {
	i := strings.LastIndex(path, "/")
	if i < 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}
