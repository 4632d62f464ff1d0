// Package hook calls the author's hooks: the read-back hook that shows the
// records of a destination, and its siblings that clean up, restart, alter a
// schema, break a downstream system or rotate a token. It owns the three
// transports (a Go function, a URL, a command), their bounds and the shape of
// the replies. It refuses to know checks, verdicts and redaction: its errors
// carry the hook's output, and the caller redacts its records.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// DefaultTimeout bounds one call when the caller gives no timeout.
const DefaultTimeout = 10 * time.Second

// MaxReply is the largest reply of a hook in bytes, 16 MiB.
const MaxReply = 16 << 20

// Spec says where a hook is. URL gets a POST with a JSON body; Command is
// started without a shell, Command[0] looked up in PATH, and gets the JSON
// object on standard input. Exactly one of the two is set.
type Spec struct {
	URL     string   `yaml:"url"`
	Command []string `yaml:"command"`
}

// Set reports whether the hook exists.
func (s Spec) Set() bool { return s.URL != "" || len(s.Command) > 0 }

// Call calls a sibling hook once with {"hook": name, …in} and returns the
// members of its reply. The reply must be one JSON object with "ok": true, or
// nothing at all: a command such as "docker compose restart" reports success by
// its exit status. "ok": false is a KindRefused error with the hook's own
// message. client may be nil (http.DefaultClient) and is used for URLs only;
// timeout is DefaultTimeout when not positive. Every error is an *Error.
func Call(ctx context.Context, s Spec, client *http.Client, timeout time.Duration, name string, in map[string]any) (map[string]json.RawMessage, error) {
	body := make(map[string]any, len(in)+1)
	maps.Copy(body, in)
	body["hook"] = name
	got, err := s.exchange(ctx, client, timeout, name, body)
	if err != nil {
		return nil, err
	}
	members := got.members
	if members == nil && got.items != nil {
		return nil, shape(name, "reply", "is an array, not an object")
	}
	if members == nil {
		return map[string]json.RawMessage{}, nil
	}
	raw, found := members["ok"]
	if !found {
		return nil, shape(name, "ok", "is missing")
	}
	ok, err := decodeBool(raw)
	if err != nil {
		return nil, shape(name, "ok", err.Error())
	}
	if !ok {
		return nil, &Error{Kind: KindRefused, Hook: name, Message: "answered ok: false", Detail: refusal(members)}
	}
	return members, nil
}

// refusal finds the words with which a hook explains its ok: false.
func refusal(members map[string]json.RawMessage) string {
	for _, key := range []string{"message", "error", "error_message"} {
		raw, found := members[key]
		if !found {
			continue
		}
		if text, err := decodeString(raw); err == nil {
			return bounded(text)
		}
		return bounded(string(raw))
	}
	return ""
}

// exchange sends one object and takes the reply apart. Only the read-back has to
// say something: its answer is empty for no other hook.
func (s Spec) exchange(ctx context.Context, client *http.Client, timeout time.Duration, name string, in any) (answer, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return answer{}, &Error{Kind: KindSetup, Hook: name, Message: "encode request", Err: err}
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	reply, err := s.send(ctx, client, timeout, name, body)
	if err != nil {
		return answer{}, err
	}
	if name != readbackName && len(bytes.TrimSpace(reply)) == 0 {
		return answer{}, nil
	}
	return decodeReply(name, reply)
}

// send carries the bytes over the transport of the spec.
func (s Spec) send(ctx context.Context, client *http.Client, timeout time.Duration, name string, body []byte) ([]byte, error) {
	switch {
	case s.URL != "" && len(s.Command) > 0:
		return nil, &Error{Kind: KindSetup, Hook: name, Message: "both a url and a command are set"}
	case s.URL != "":
		return post(ctx, client, timeout, name, s.URL, body)
	case len(s.Command) > 0:
		return run(ctx, timeout, name, s.Command, body)
	}
	return nil, &Error{Kind: KindSetup, Hook: name, Message: "neither a url nor a command is set"}
}

// interrupted distinguishes a timeout of this call from an end of the caller's context.
func interrupted(parent context.Context, name string, timeout time.Duration, detail string) *Error {
	if err := parent.Err(); err != nil {
		return &Error{Kind: KindCanceled, Hook: name, Message: "was interrupted", Detail: detail, Err: err}
	}
	return &Error{
		Kind: KindTimeout, Hook: name, Detail: detail, Err: context.DeadlineExceeded,
		Message: fmt.Sprintf("gave no complete answer within %s", timeout),
		Fix:     "make it faster, or give it longer with timeout: in --hooks FILE",
	}
}
