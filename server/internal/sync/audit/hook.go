package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Hook is a read-back hook (docs/judge.md): it gets identifiers by POST and
// returns the records stored under them.
type Hook struct {
	URL    string
	Header http.Header
	Client *http.Client
	// Object is its object_api_name, Identifier the field_api_name of the active
	// identifier.
	Object, Identifier string
	Timeout            time.Duration // of one call; 30 s when zero
}

// maxReply bounds the answer to one look-up.
const maxReply = 64 << 20

// HookError means that a hook could not be used. It never holds the URL or
// a header, which may be secret.
type HookError struct{ Message string }

func (e *HookError) Error() string { return "read back: the hook " + e.Message }

func hookError(format string, args ...any) error { return &HookError{fmt.Sprintf(format, args...)} }

// hookReply is what a hook answers.
type hookReply struct {
	Records []struct {
		Identifier json.RawMessage            `json:"identifier"`
		Count      *int64                     `json:"count"`
		Fields     map[string]json.RawMessage `json:"fields"`
	} `json:"records"`
	Complete *bool `json:"complete"`
}

// Lookup is Destination.Lookup. An answer that could hide a record is an error.
func (h *Hook) Lookup(ctx context.Context, identifiers [][]byte) ([]Stored, error) {
	question := struct {
		Object      string            `json:"object"`
		Field       string            `json:"identifier_field"`
		Identifiers []json.RawMessage `json:"identifiers"`
	}{h.Object, h.Identifier, make([]json.RawMessage, len(identifiers))}
	for i, identifier := range identifiers {
		question.Identifiers[i] = identifier
	}
	text, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("read back: encode identifiers: %w", err)
	}
	answer, err := h.post(ctx, text)
	if err != nil {
		return nil, err
	}
	var reply hookReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, hookError("did not answer in its shape: %v", err)
	}
	if reply.Complete == nil || !*reply.Complete || reply.Records == nil {
		return nil, hookError(`must answer "records" and "complete": true: a key that it left out may be stored otherwise`)
	}
	return h.match(identifiers, &reply)
}

// match finds the identifier that each record was requested by: the value, or
// its text where that names one only.
func (h *Hook) match(identifiers [][]byte, reply *hookReply) ([]Stored, error) {
	byValue, byText := map[string]int{}, map[string]int{}
	for i, identifier := range identifiers {
		byValue[string(identifier)] = i
		if _, taken := byText[textOf(identifier)]; taken {
			i = -1
		}
		byText[textOf(identifier)] = i
	}
	found := make([]Stored, 0, len(reply.Records))
	seen := make([]bool, len(identifiers))
	for i := range reply.Records {
		r := &reply.Records[i]
		at, ok := byValue[string(mapping.AppendCanonical(nil, r.Identifier))]
		if !ok {
			at, ok = byText[textOf(r.Identifier)]
		}
		switch {
		case !ok || at < 0:
			return nil, hookError("answered records[%d].identifier, which was not asked for", i)
		case seen[at]:
			return nil, hookError("answered records[%d].identifier twice; copies are told by count", i)
		case r.Count == nil || *r.Count < 1 || r.Fields == nil:
			return nil, hookError("must answer a count of 1 or more and fields in records[%d]", i)
		}
		seen[at] = true
		found = append(found, Stored{Identifier: identifiers[at], Count: *r.Count, Fields: r.Fields})
	}
	return found, nil
}

// post makes the call. The URL may hold a secret, so no error carries it.
func (h *Hook) post(parent context.Context, body []byte) ([]byte, error) {
	timeout := cmp.Or(h.Timeout, 30*time.Second)
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, hookError("has a url that cannot be called")
	}
	for name, values := range h.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	r.Header.Set("Content-Type", "application/json")
	client := h.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, h.unreachable(parent, ctx, timeout, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return nil, h.unreachable(parent, ctx, timeout, err)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, hookError("answered HTTP status %d", resp.StatusCode)
	case len(answer) > maxReply:
		return nil, hookError("answered more than %d bytes", maxReply)
	}
	return answer, nil
}

func (h *Hook) unreachable(parent, bounded context.Context, timeout time.Duration, err error) error {
	if parent.Err() != nil {
		return fmt.Errorf("read back: %w", context.Cause(parent))
	}
	if bounded.Err() != nil {
		return hookError("did not answer within %s", timeout)
	}
	var named *url.Error
	if errors.As(err, &named) {
		err = named.Err
	}
	return hookError("could not be reached: %v", err)
}
