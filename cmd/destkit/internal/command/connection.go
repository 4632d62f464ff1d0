package command

import (
	"crypto/x509"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
)

// Connection holds what every command needs that calls an endpoint: how to
// get in, which certificates to trust, how long to wait.
type Connection struct {
	token       TokenFlag
	Headers     []string
	Roots       string
	Development string
}

// Register adds the flags; the deadlines bind onto options.
func (c *Connection) Register(cmd *cobra.Command, options *conformance.Options) {
	f := cmd.Flags()
	c.token.Register(f)
	f.StringArrayVar(&c.Headers, "header", nil, "`'Name: value'`: a further header of every call (repeatable)")
	f.StringVar(&options.URLSecret, "url-secret", "", "`query:NAME|path:INDEX`: secret part of the URL (path: from 0)")
	f.StringVar(&c.Roots, "tls-roots", "", "PEM `FILE` of roots that replace the public ones")
	f.StringVar(&c.Development, "development", string(conformance.DevelopmentAuto), "`auto|on|off`: allow http, any TLS (default auto: if private)")
	f.DurationVar(&options.PlanningTimeout, "planning-timeout", 10*time.Second, "deadline of a planning call")
	f.DurationVar(&options.BatchTimeout, "batch-timeout", 30*time.Second, "deadline of a batch")
}

// TokenVariable is the environment variable that the token was read from, "" for none.
func (c *Connection) TokenVariable() string { return c.token.Variable }

// Resolve reads the token and the roots.
func (c *Connection) Resolve(url string, options *conformance.Options) (destination.Target, error) {
	target := destination.Target{URL: url}
	var err error
	c.token.FallBack()
	if target.Token, err = c.token.Read(); err != nil {
		return target, err
	}
	if target.Headers, err = Headers(c.Headers); err != nil {
		return target, err
	}
	options.Development = conformance.Development(c.Development)
	if options.Roots, err = Roots(c.Roots); err != nil {
		return target, err
	}
	for flag, value := range map[string]time.Duration{
		"planning-timeout": options.PlanningTimeout, "batch-timeout": options.BatchTimeout,
	} {
		if value <= 0 {
			return target, exit.Usagef("--%s must be longer than nothing, not %s", flag, value)
		}
	}
	return target, nil
}

// Roots reads a PEM file of certificates; "" is the public roots.
func Roots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Usagef("read --tls-roots: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, exit.Usagef("--tls-roots %s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// framing are the headers that say where a request ends, and what becomes of its
// connection.
var framing = []string{"connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}

// Headers reads `Name: value` lines. A name given twice is refused: the
// connection of the service holds one value per header. The value may be
// secret, so no message repeats it.
func Headers(lines []string) (map[string]string, error) {
	headers := map[string]string{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
			return nil, exit.Usagef("--header wants 'Name: value'")
		}
		if slices.Contains(framing, strings.ToLower(name)) {
			return nil, exit.Usagef("--header %s: destkit sets this header itself, as each request needs it", name)
		}
		if _, twice := headers[name]; twice {
			return nil, exit.Usagef("--header %s is given twice", name)
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

// Reading holds the flags of the read-back hook.
type Reading struct{ readbackURL, readbackCommand string }

func (h *Reading) Register(cmd *cobra.Command, o *conformance.Options) {
	f := cmd.Flags()
	f.StringVar(&h.readbackURL, "readback-url", "", "read-back hook: a `URL` that gets a POST")
	f.StringVar(&h.readbackCommand, "readback-command", "", "`COMMAND`: read-back hook, JSON on stdin; no shell")
	f.DurationVar(&o.ReadbackWindow, "readback-window", 0, "how long a read-back may lag, for example 2s")
}

// Resolve builds the hook.
func (h *Reading) Resolve(o *conformance.Options) error {
	if h.readbackURL != "" && h.readbackCommand != "" {
		return exit.Usagef("--readback-url and --readback-command exclude each other")
	}
	if h.readbackURL != "" {
		if err := CheckURL("--readback-url", h.readbackURL); err != nil {
			return err
		}
	}
	words, err := Split(h.readbackCommand)
	if err != nil {
		return exit.Usagef("--readback-command: %w", err)
	}
	o.Readback = conformance.HookSpec{URL: h.readbackURL, Command: words}
	return nil
}
