package syncs

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

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/unreached"
	"github.com/destkit/destkit/server/api"
)

// largestAnswer bounds the answer to one call.
const largestAnswer = 64 << 20

// Flags say which service a command talks to, and how it gets in.
type Flags struct {
	url, roots string
	Token      command.TokenFlag
	Timeout    time.Duration
}

// Register adds the flags but for the token.
func (r *Flags) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&r.url, "url", "http://127.0.0.1:8080", "the service's `URL`, with or without "+api.BasePath)
	f.StringVar(&r.roots, "tls-roots", "", "PEM `FILE` of root certificates that replace the public ones")
	f.DurationVar(&r.Timeout, "request-timeout", 30*time.Second, "deadline of one call to the service")
}

// RegisterToken adds the token of the API; the control API has another one.
func (r *Flags) RegisterToken(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.Token.Variable, "token-env", "",
		"environment variable `NAME` that holds the API key of the workspace (default "+command.WorkspaceKeyVariable+")")
}

// Open prepares the client; nothing is sent yet.
func (r *Flags) Open() (*Client, error) {
	root, err := serviceRoot(r.url)
	if err != nil {
		return nil, err
	}
	if r.Timeout <= 0 {
		return nil, exit.Usagef("--request-timeout must be longer than nothing, not %s", r.Timeout)
	}
	token, err := r.Token.Read()
	if err != nil {
		return nil, err
	}
	pool, err := command.Roots(r.roots)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	hidden := foreign.New()
	hidden.Add(token, "$"+cmp.Or(r.Token.Variable, "DESTKIT_TOKEN"))
	return &Client{Root: root, Token: token, hidden: hidden, HTTP: &http.Client{Transport: transport, Timeout: r.Timeout,
		// A redirect would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// OpenAPI is open for commands that call the API: they need a key.
func (r *Flags) OpenAPI() (*Client, error) {
	if r.Token.Variable == "" {
		r.Token = command.TokenFlag{Name: command.WorkspaceKeyVariable, Variable: command.WorkspaceKeyVariable}
	}
	return r.Open()
}

// serviceRoot is the URL before /api/v1 and /_control.
func serviceRoot(raw string) (string, error) {
	if err := command.CheckURL("--url", raw); err != nil {
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
	return strings.TrimSuffix(strings.TrimRight(u.String(), "/"), api.BasePath), nil
}

// Client calls a service as any client of its API would.
type Client struct {
	Root, Token string
	hidden      *foreign.Redactor // of the token, in all texts of the service
	HTTP        *http.Client
}

// Error is an answer that is no success.
type Error struct {
	Code       int
	message    string
	RetryAfter string
	page       bool // the answer was no JSON
}

func (e *Error) Error() string {
	if e.message == "" {
		return fmt.Sprintf("the service answered %d %s", e.Code, http.StatusText(e.Code))
	}
	return fmt.Sprintf("the service answered %d: %s", e.Code, e.message)
}

// Unreachable is a call that got no answer.
type Unreachable struct{ cause error }

func (e *Unreachable) Error() string {
	cause := unreached.Of(e.cause, "service", "its address")
	switch {
	case errors.Is(e.cause, syscall.ECONNREFUSED):
		cause.Fix = "start it with 'destkit serve', or give another --url"
	case cause.What == "":
		return "reach the service: " + e.cause.Error()
	}
	return "reach the service: " + cause.What + ": " + cause.Fix
}
func (e *Unreachable) Unwrap() error { return e.cause }

// Plain reports whether the URL begins with https:// and the port speaks http.
func (e *Unreachable) Plain() bool {
	var record tls.RecordHeaderError
	return errors.As(e.cause, &record) || strings.Contains(e.cause.Error(), "server gave HTTP response to HTTPS client")
}

// Call sends body as JSON, nil for none, and decodes the whole answer into into,
// nil for nothing. The path begins after the root.
func (c *Client) Call(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("write body of %s %s: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.Root+path, content)
	if err != nil {
		return fmt.Errorf("call %s %s: %w", method, path, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	answer, err := c.HTTP.Do(request)
	if err != nil {
		return &Unreachable{err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, largestAnswer))
	if err != nil {
		return &Unreachable{err}
	}
	text = c.hidden.Bytes(text)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return refusal(answer, text)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return &Error{Code: answer.StatusCode, message: "its body is not what the API promises; does --url name the service?"}
	}
	return nil
}

// refusal reads an error body. Its status is a word or the code, depending on
// the dialect; the message is all that is of use here.
func refusal(answer *http.Response, text []byte) error {
	var body struct {
		Message string `json:"message"`
	}
	page := json.Unmarshal(text, &body) != nil // of a proxy, or of something that is no service
	if answer.StatusCode == http.StatusBadRequest && bytes.Contains(text, []byte("HTTP request to an HTTPS server")) {
		body.Message = "TLS is spoken on this port, and the URL begins with http://: begin it with https://"
	}
	return &Error{answer.StatusCode, body.Message, answer.Header.Get("Retry-After"), page}
}

// Get reads the data of one resource.
func (c *Client) Get(ctx context.Context, path string, data any) error {
	return c.Call(ctx, http.MethodGet, api.BasePath+path, nil, &struct {
		Data any `json:"data"`
	}{data})
}

// Post sends a body and reads the data of the answer.
func (c *Client) Post(ctx context.Context, path string, body, data any) error {
	return c.Call(ctx, http.MethodPost, api.BasePath+path, body, &struct {
		Data any `json:"data"`
	}{data})
}

// Control calls what belongs to the emulation; its answers have no envelope.
func (c *Client) Control(ctx context.Context, method, path string, body, into any) error {
	return c.Call(ctx, method, "/_control"+path, body, into)
}

// AllOf reads every page of a list (spec 2.1).
func AllOf[T any](ctx context.Context, c *Client, path string) (all []T, err error) {
	for page := int64(1); ; {
		var list struct {
			Pagination api.Pagination `json:"pagination"`
			Data       []T            `json:"data"`
		}
		err := c.Call(ctx, http.MethodGet, fmt.Sprintf("%s%s?per_page=100&order=asc&page=%d", api.BasePath, path, page), nil, &list)
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

// Failure gives an error of a call its exit status. what was done to which
// thing comes first, as in "read sync 7".
func Failure(what string, err error) error {
	var refused *Error
	if !errors.As(err, &refused) {
		return exit.Untested(fmt.Errorf("%s: %w", what, err))
	}
	err = fmt.Errorf("%s: %w", what, err)
	if refused.page && refused.Code == http.StatusNotFound {
		return exit.Untested(fmt.Errorf("%w; this is no answer of a service: check the URL and the port", err))
	}
	switch refused.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return exit.Untested(fmt.Errorf("%w; the token is sent as it stands in the variable that --token-env names, %s without it", err, command.WorkspaceKeyVariable))
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		return exit.Usage(err)
	}
	return exit.Untested(err)
}
