package main

import (
	"crypto/x509"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/secret"
	"github.com/destkit/destkit/conformance"
)

// connection holds what every command needs that calls an endpoint: how to
// get in, which certificates to trust, how long to wait.
type connection struct {
	token       secret.Flag
	headers     []string
	roots       string
	development string
}

// register adds the flags; the deadlines bind onto options.
func (c *connection) register(cmd *cobra.Command, options *conformance.Options) {
	f := cmd.Flags()
	c.token.Register(f)
	f.StringArrayVar(&c.headers, "header", nil, "send a further header, `'Name: value'`, with every call (repeatable)")
	f.StringVar(&options.URLSecret, "url-secret", "", "the part of the URL that the endpoint must verify: `query:NAME|path:INDEX` (from 0)")
	f.StringVar(&c.roots, "tls-roots", "", "PEM `FILE` of root certificates that replace the public ones")
	f.StringVar(&c.development, "development", string(conformance.DevelopmentAuto), "plain http and untrusted chains: `auto|on|off` (auto: allowed on loopback and private addresses)")
	f.DurationVar(&options.PlanningTimeout, "planning-timeout", 10*time.Second, "deadline of a planning call")
	f.DurationVar(&options.BatchTimeout, "batch-timeout", 30*time.Second, "deadline of a batch")
}

// resolve reads the token and the roots.
func (c *connection) resolve(url string, options *conformance.Options) (conformance.Target, error) {
	target := conformance.Target{URL: url}
	var err error
	c.token.FallBack()
	if target.Token, err = c.token.Read(); err != nil {
		return target, err
	}
	if target.Headers, err = parseHeaders(c.headers); err != nil {
		return target, err
	}
	options.Development = conformance.Development(c.development)
	options.Version = readBuild().Version
	if options.Roots, err = readRoots(c.roots); err != nil {
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

// readRoots reads a PEM file of certificates; "" is the public roots.
func readRoots(file string) (*x509.CertPool, error) {
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
