package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
)

// record writes the body that the load generator sends for some work into a
// file, for the peers: it looks over the shoulder of one request.
func (w *workshop) record(s *simulator, what work) (file string, err error) {
	target, err := url.Parse(s.url)
	if err != nil {
		return "", fmt.Errorf("record a request: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("record a request: %w", err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport = s.http.Transport
	var mu sync.Mutex
	var seen []byte
	// The planning calls go through as well; kept is the last batch.
	front := &http.Server{Handler: http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			http.Error(reply, err.Error(), http.StatusBadGateway)
			return
		}
		if bytes.Contains(body, []byte(`"method":"sync_batch"`)) {
			mu.Lock()
			seen = body
			mu.Unlock()
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(reply, request)
	})}
	go func() { _ = front.Serve(listener) }()
	defer front.Close()
	// Plain http also where the simulator speaks TLS: the body is the same.
	if _, err := w.load("http://"+listener.Addr().String(), "", what, "--closed", "--connections", "1", "--count", "1"); err != nil {
		return "", fmt.Errorf("record a request: %w", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 {
		return "", fmt.Errorf("record a request: no batch of %s was seen", what.name)
	}
	file = filepath.Join(w.folder, what.name+".body.json")
	if err := os.WriteFile(file, seen, 0o600); err != nil {
		return "", fmt.Errorf("record a request: %w", err)
	}
	w.say("%s: a request of %s bytes", what.name, grouped(int64(len(seen))))
	return file, nil
}
