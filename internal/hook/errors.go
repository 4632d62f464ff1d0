package hook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is the way in which a hook failed.
type Kind string

// The kinds of failure.
const (
	KindSetup       Kind = "setup"        // no transport, command not found, bad URL
	KindTimeout     Kind = "timeout"      // no complete answer in time
	KindCanceled    Kind = "canceled"     // the caller's context ended
	KindUnreachable Kind = "unreachable"  // the URL did not answer
	KindStatus      Kind = "http-status"  // the URL answered something but 2xx
	KindExit        Kind = "exit"         // the command ended with another status than 0
	KindTooLarge    Kind = "too-large"    // over MaxReply
	KindNotJSON     Kind = "not-json"     // the reply is not one JSON value in UTF-8
	KindShape       Kind = "shape"        // a member is missing or of a wrong type, see Path
	KindRefused     Kind = "refused"      // ok: false
	KindUnasked     Kind = "unasked"      // a record that was not requested
	KindIncomplete  Kind = "not-complete" // complete: false
)

// Error is a failed call of a hook. It is never a finding about the endpoint:
// a hook that fails or contradicts itself makes a check a HARNESS_ERROR.
type Error struct {
	Kind Kind
	Hook string // its name: readback, restart, …
	// Path of the member in the reply for KindShape and KindUnasked, such as
	// records[3].count.
	Path string
	// Message describes the failure, in words that follow "hook NAME".
	Message string
	// Detail is what the hook itself said: the last lines of standard error,
	// the start of a body, its own message. At most 2 KiB, not redacted.
	Detail string
	Err    error
	// Fix is what the author of the hook can do about it, "" when the message
	// suffices.
	Fix string
}

// Error gives the whole story in one text, the fix included.
func (e *Error) Error() string {
	if e.Fix == "" {
		return e.What()
	}
	return e.What() + "; " + e.Fix
}

// What is the description without the fix.
func (e *Error) What() string {
	var b strings.Builder
	fmt.Fprintf(&b, "call hook %s: ", e.Hook)
	if e.Path != "" {
		fmt.Fprintf(&b, "%s ", e.Path)
	}
	b.WriteString(e.Message)
	if e.Err != nil && e.Kind != KindTimeout {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	return b.String()
}

// Unwrap gives the cause, for example context.Canceled.
func (e *Error) Unwrap() error { return e.Err }

// KindOf gives the kind of a hook's failure, "" for any other error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

func shape(name, path, message string) *Error {
	return &Error{Kind: KindShape, Hook: name, Path: path, Message: message, Fix: wanted(name)}
}

// wanted is the answer that a hook should give.
func wanted(name string) string {
	if name == readbackName {
		return `it should answer {"records": [{"identifier": …, "count": 1, "fields": {…}}], "complete": true}, with one entry for each key that is stored`
	}
	return `it should answer {"ok": true}, or {"ok": false, "message": "…"} when it could not do it`
}

const maxDetail = 2 << 10

// bounded keeps the start of what a hook said, as readable text.
func bounded(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= maxDetail {
		return text
	}
	cut := maxDetail
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// Reach reports what keeps the hook from being called at all: a command that
// is no executable, a URL on which nothing accepts a connection. It does not
// call the hook, which may change the destination. name is that of the hook;
// client may be nil. Every error is an *Error.
func (s Spec) Reach(ctx context.Context, client *http.Client, timeout time.Duration, name string) error {
	switch {
	case s.URL != "" && len(s.Command) > 0:
		return &Error{Kind: KindSetup, Hook: name, Message: "both a url and a command are set", Fix: "give one of the two"}
	case len(s.Command) > 0:
		if _, err := exec.LookPath(s.Command[0]); err != nil {
			return &Error{Kind: KindSetup, Hook: name, Message: "cannot be started", Err: err,
				Fix: "give the path of the program, and make it executable"}
		}
		return nil
	case s.URL == "":
		return &Error{Kind: KindSetup, Hook: name, Message: "neither a url nor a command is set"}
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := connect(limited, client, s.URL); err != nil {
		broken := unreachable(limited, ctx, name, hostOf(s.URL), timeout, err)
		broken.Fix = cmp.Or(broken.Fix, "start it, or look at the host and the port of its URL")
		return broken
	}
	return nil
}

// connect opens a connection in the way of the client and closes it again. The
// URL may hold a secret, so no error carries it.
func connect(ctx context.Context, client *http.Client, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return withoutURL(err)
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme])
	port = cmp.Or(port, "80")
	dial, cfg := (&net.Dialer{}).DialContext, &tls.Config{}
	if client != nil {
		if t, ok := client.Transport.(*http.Transport); ok {
			if t.DialContext != nil {
				dial = t.DialContext
			}
			if t.TLSClientConfig != nil {
				cfg = t.TLSClientConfig.Clone()
			}
		}
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if u.Scheme != "https" {
		return nil
	}
	cfg.ServerName = cmp.Or(cfg.ServerName, u.Hostname())
	return tls.Client(conn, cfg).HandshakeContext(ctx)
}

// hostOf is host and port of a URL, as far as it can be read.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
