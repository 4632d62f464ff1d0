package destsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/rawjson"
)

// decodeControl refuses unknown members: a typing error in a test must not
// pass for a change that was made.
func decodeControl(r *http.Request, arg any) error {
	body, err := readControl(r)
	if err != nil {
		return err
	}
	if unknown := rawjson.UnknownKeys(body, reflect.TypeOf(arg)); len(unknown) > 0 {
		u := unknown[0]
		return fmt.Errorf("%s: unknown field%s", clip(u.Place), didYouMean(u.Key, u.Known))
	}
	return fill(body, arg)
}

// readControl reads the body of a control call: one JSON value.
func readControl(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, controlBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	if len(body) > controlBody {
		return nil, fmt.Errorf("the body is longer than %d MiB", controlBody>>20)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errors.New("the body is empty: send a JSON object")
	}
	switch i, fault := rawjson.SkipText(body); fault {
	case rawjson.FaultNone:
		return body, nil
	case rawjson.FaultEnd:
		return nil, errors.New("the body is not JSON: it ends too early")
	case rawjson.FaultTrailing:
		return nil, errors.New("the body is more than one JSON value")
	default:
		before := body[:i]
		return nil, fmt.Errorf("the body is not JSON: line %d, column %d: %s", bytes.Count(before, []byte("\n"))+1, i-bytes.LastIndexByte(before, '\n'), rawjson.ErrorAt(i, fault).Reason)
	}
}

// fill puts a body into arg, a pointer.
func fill(body []byte, arg any) error {
	err := json.Unmarshal(body, arg)
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		place := mistyped.Field
		if place == "" {
			place = "the body"
		}
		return fmt.Errorf("%s: %s", place, rawjson.Mistyped(mistyped))
	}
	return err
}

// unknownWord refuses a word that is not one of the known, and lists them.
func unknownWord(what, word string, known []string) error {
	if word == "" {
		return fmt.Errorf("is missing (one of %s)", strings.Join(known, ", "))
	}
	hint := didYouMean(word, known)
	if hint == "" {
		hint = fmt.Sprintf(" (one of %s)", strings.Join(known, ", "))
	}
	return fmt.Errorf("unknown %s %q%s", what, clip(word), hint)
}

// onlyParameters refuses parameters of a query that an endpoint does not take: an
// ignored one would let a test believe in a filter.
func onlyParameters(query url.Values, known ...string) error {
	for name := range query {
		if name != "control_token" && !slices.Contains(known, name) {
			return fmt.Errorf("%s: unknown parameter%s", clip(name), didYouMean(name, known))
		}
	}
	return nil
}

// The kinds of values in a query.

func numberParameter(value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("must be a whole number, not %q", clip(value))
	}
	return n, nil
}

// flagOf is the only parameter of a query, true or false.
func flagOf(query url.Values, name string) (bool, error) {
	err, value := onlyParameters(query, name), query.Get(name)
	if err == nil && !slices.Contains([]string{"", "true", "false"}, value) {
		err = fmt.Errorf("%s: must be true or false, not %q", name, clip(value))
	}
	return value == "true", err
}

func timeParameter(value string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return t, fmt.Errorf("must be a time such as 2026-11-20T20:47:41Z, not %q", clip(value))
	}
	return t, nil
}

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

// statusOnly takes an answer that is not sent.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }
