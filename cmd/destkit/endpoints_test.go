package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim"
)

// startEndpoint serves one of the small endpoints that the transcripts need.
func startEndpoint(kind string) (url string, stop func(), err error) {
	switch kind {
	case "closed": // nothing listens there any more
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		url := "http://" + ln.Addr().String()
		return url, func() {}, ln.Close()
	case "hangs-up", "page": // accepts and closes without a byte, or behind a page without a head, as Python does when it is greeted by TLS
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				if kind == "page" {
					_, _ = conn.Read(make([]byte, 4<<10))
					_, _ = io.WriteString(conn, "<!DOCTYPE HTML>\n<html><head><title>Error response</title></head></html>\n")
				}
				conn.Close()
			}
		}()
		return "http://" + ln.Addr().String(), func() { ln.Close() }, nil
	}
	if kind == "holding" {
		return startHolder()
	}
	handler, stopHandler, err := endpointHandler(kind)
	if err != nil {
		return "", nil, err
	}
	server := httptest.NewServer(handler)
	return server.URL, func() { server.CloseClientConnections(); stopHandler(); server.Close() }, nil
}

// fixed answers every request alike.
func fixed(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// unhealthy obeys the protocol and reports that it cannot work.
func unhealthy() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			Method string          `json:"method"`
			ID     json.RawMessage `json:"id"`
		}
		w.Header().Set("Content-Type", "application/json")
		answer := `"error":{"code":-32000,"message":"the CRM is down"}`
		switch err := json.NewDecoder(r.Body).Decode(&call); {
		case err != nil:
			call.ID, answer = json.RawMessage("null"), `"error":{"code":-32700,"message":"not JSON"}`
		case call.Method == "test_connection":
			answer = `"result":{"success":false,"error_message":"the CRM is down"}`
		}
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(call.ID)+`,`+answer+`}`)
	})
}

// answers gives every call the same result.
func answers(result string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			call.ID = json.RawMessage("null")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(call.ID)+`,"result":`+result+`}`)
	})
}

func endpointHandler(kind string) (http.Handler, func(), error) {
	switch kind {
	case "proxy": // the page of a proxy in front of nothing
		return fixed(502, "text/html", "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"), func() {}, nil
	case "silent": // reads the request and closes
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), func() {}, nil
	case "text":
		return fixed(200, "text/plain", "it works!"), func() {}, nil
	case "guarded": // refuses every caller
		return fixed(401, "application/json", `{"message":"who are you?"}`), func() {}, nil
	case "not-found":
		return http.NotFoundHandler(), func() {}, nil
	case "odd-names": // objects whose names are more than names to a shell or a screen
		return answers(`{"objects":[{"object_api_name":"$(touch evil)","label":"A"},{"object_api_name":"con\u001b[31mtact","label":"B"},` +
			`{"object_api_name":"contact","label":"\u001b[2JC\n:1"}]}`), func() {}, nil
	case "unhealthy":
		return unhealthy(), func() {}, nil
	case "slow-hook":
		release := make(chan struct{})
		var once sync.Once
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}), func() { once.Do(func() { close(release) }) }, nil
	case "lying-hook": // claims that every record is there, also those never sent
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, ids, _ := bytes.Cut(body, []byte(`"identifiers":[`))
			ids, _, _ = bytes.Cut(ids, []byte("]"))
			var records []string
			for id := range bytes.SplitSeq(ids, []byte(",")) {
				records = append(records, `{"identifier":`+string(id)+`,"count":1,"fields":{}}`)
			}
			_, _ = io.WriteString(w, `{"records":[`+strings.Join(records, ",")+`],"complete":true}`)
		}), func() {}, nil
	}
	return nil, nil, errors.New("unknown kind of endpoint " + kind)
}

// holder passes everything on to a simulator and holds the first batch that
// carries records until the client has gone or release is closed.
type holder struct {
	next    http.Handler
	reached chan struct{}
	release chan struct{}
	once    sync.Once
}

func (h *holder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte(`"sync_batch"`)) && bytes.Contains(body, []byte("zz-conf-")) {
		first := false
		h.once.Do(func() { first = true })
		if first {
			h.next.ServeHTTP(w, r) // the records stay written
			close(h.reached)
			select {
			case <-r.Context().Done():
			case <-h.release:
			}
			return
		}
	}
	h.next.ServeHTTP(w, r)
}

// holders are all endpoints of the kind "holding", by their URL.
var holders sync.Map

// startHolder serves a simulator behind a holder.
func startHolder() (url string, stop func(), err error) {
	sim, err := destsim.New(destsim.Config{})
	if err != nil {
		return "", nil, err
	}
	h := &holder{next: sim, reached: make(chan struct{}), release: make(chan struct{})}
	server := httptest.NewServer(h)
	holders.Store(server.URL, h)
	return server.URL, func() {
		close(h.release)
		server.CloseClientConnections()
		server.Close()
		_ = sim.Close()
	}, nil
}
