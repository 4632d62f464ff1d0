package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/endpoint"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/secret"
	"github.com/destkit/destkit/internal/redact"
	"github.com/destkit/destkit/internal/unreached"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/api"
)

// restAnswer bounds the answer to one call.
const restAnswer = 64 << 20

// restFlags say which service a command talks to, and how it gets in.
type restFlags struct {
	url, roots string
	token      secret.Flag
	timeout    time.Duration
}

func (r *restFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&r.url, "url", "http://127.0.0.1:8080", "the service's `URL`, with or without "+server.BasePath)
	f.StringVar(&r.roots, "tls-roots", "", "PEM `FILE` of root certificates that replace the public ones")
	f.DurationVar(&r.timeout, "request-timeout", 30*time.Second, "deadline of one call to the service")
}

// registerToken adds the token of the API; the control API has another one.
func (r *restFlags) registerToken(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.token.Variable, "token-env", "",
		"environment variable `NAME` that holds the API key of the workspace (default "+envWorkspaceKey+")")
}

// open prepares the client; nothing is sent yet.
func (r *restFlags) open() (*restClient, error) {
	root, err := serviceRoot(r.url)
	if err != nil {
		return nil, err
	}
	if r.timeout <= 0 {
		return nil, exit.Usagef("--request-timeout must be longer than nothing, not %s", r.timeout)
	}
	token, err := r.token.Read()
	if err != nil {
		return nil, err
	}
	pool, err := endpoint.Roots(r.roots)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	hidden := redact.New()
	hidden.Add(token, "$"+cmp.Or(r.token.Variable, "DESTKIT_TOKEN"))
	return &restClient{root: root, token: token, hidden: hidden, http: &http.Client{Transport: transport, Timeout: r.timeout,
		// A redirect would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// openAPI is open for commands that call the API: they need a key.
func (r *restFlags) openAPI() (*restClient, error) {
	if r.token.Variable == "" {
		r.token = secret.Flag{Name: envWorkspaceKey, Variable: envWorkspaceKey}
	}
	return r.open()
}

// serviceRoot is the URL before /api/v1 and /_control.
func serviceRoot(raw string) (string, error) {
	if err := endpoint.CheckURL("--url", raw); err != nil {
		return "", err
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", exit.Usagef("--url: the URL does not parse")
	case u.User != nil:
		return "", exit.Usagef("--url holds a user or a token; give the token by --token-env")
	case u.RawQuery != "" || u.Fragment != "":
		return "", exit.Usagef("--url ends with ? or #; give the address only, such as http://127.0.0.1:8080")
	}
	return strings.TrimSuffix(strings.TrimRight(u.String(), "/"), server.BasePath), nil
}

// restClient calls a service as any client of its API would.
type restClient struct {
	root, token string
	hidden      *redact.Redactor // of the token, in all that the service says
	http        *http.Client
}

// restError is an answer that is no success.
type restError struct {
	code       int
	message    string
	retryAfter string
}

func (e *restError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("the service answered %d %s", e.code, http.StatusText(e.code))
	}
	return fmt.Sprintf("the service answered %d: %s", e.code, e.message)
}

// unreachable is a call that got no answer.
type unreachable struct{ cause error }

func (e *unreachable) Error() string {
	cause := unreached.Of(e.cause, "service", "its address")
	switch {
	case errors.Is(e.cause, syscall.ECONNREFUSED):
		cause.Fix = "start it with 'destkit serve', or give another --url"
	case cause.What == "":
		return "reach the service: " + e.cause.Error()
	}
	return "reach the service: " + cause.What + ": " + cause.Fix
}
func (e *unreachable) Unwrap() error { return e.cause }

// plain reports whether the URL begins with https:// and the port speaks http.
func (e *unreachable) plain() bool {
	var record tls.RecordHeaderError
	return errors.As(e.cause, &record) || strings.Contains(e.cause.Error(), "server gave HTTP response to HTTPS client")
}

// call sends body as JSON, nil for none, and decodes the whole answer into into,
// nil for nothing. The path begins after the root.
func (c *restClient) call(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("write body of %s %s: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.root+path, content)
	if err != nil {
		return fmt.Errorf("call %s %s: %w", method, path, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return &unreachable{err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, restAnswer))
	if err != nil {
		return &unreachable{err}
	}
	text = c.hidden.Bytes(text)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return refusal(answer, text)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return &restError{code: answer.StatusCode, message: "its body is not what the API promises; does --url name the service?"}
	}
	return nil
}

// refusal reads an error body. Its status is a word or the code, depending on
// the dialect; the message is all that is of use here.
func refusal(answer *http.Response, text []byte) error {
	var body struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(text, &body) // a proxy's page has no message
	if answer.StatusCode == http.StatusBadRequest && bytes.Contains(text, []byte("HTTP request to an HTTPS server")) {
		body.Message = "TLS is spoken on this port, and the URL begins with http://: begin it with https://"
	}
	return &restError{answer.StatusCode, body.Message, answer.Header.Get("Retry-After")}
}

// get reads the data of one resource.
func (c *restClient) get(ctx context.Context, path string, data any) error {
	return c.call(ctx, http.MethodGet, server.BasePath+path, nil, &struct {
		Data any `json:"data"`
	}{data})
}

// post sends a body and reads the data of the answer.
func (c *restClient) post(ctx context.Context, path string, body, data any) error {
	return c.call(ctx, http.MethodPost, server.BasePath+path, body, &struct {
		Data any `json:"data"`
	}{data})
}

// control calls what belongs to the stand-in; its answers have no envelope.
func (c *restClient) control(ctx context.Context, method, path string, body, into any) error {
	return c.call(ctx, method, "/_control"+path, body, into)
}

// allOf reads every page of a list (spec 2.1).
func allOf[T any](ctx context.Context, c *restClient, path string) (all []T, err error) {
	for page := int64(1); ; {
		var list struct {
			Pagination api.Pagination `json:"pagination"`
			Data       []T            `json:"data"`
		}
		err := c.call(ctx, http.MethodGet, fmt.Sprintf("%s%s?per_page=100&order=asc&page=%d", server.BasePath, path, page), nil, &list)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Data...)
		if list.Pagination.NextPage == nil || *list.Pagination.NextPage <= page {
			return all, nil
		}
		page = *list.Pagination.NextPage
	}
}

// restFailure gives an error of a call its exit status. what was done to which
// thing comes first, as in "read sync 7".
func restFailure(what string, err error) error {
	var refused *restError
	if !errors.As(err, &refused) {
		return exit.Untested(fmt.Errorf("%s: %w", what, err))
	}
	err = fmt.Errorf("%s: %w", what, err)
	switch refused.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return exit.Untested(fmt.Errorf("%w; the token is sent as it stands in the variable that --token-env names, %s without it", err, envWorkspaceKey))
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		return exit.Usage(err)
	}
	return exit.Untested(err)
}
