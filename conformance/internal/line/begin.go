package line

import (
	"cmp"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/reach"
)

// Begin checks the options and prepares a run; nothing is sent yet.
func (s *Session) Begin(target conformance.Target, opts conformance.Options) error {
	s.Target, s.Opts, s.Redactor = target, WithDefaults(opts), wire.NewRedactor()
	s.Wide, s.Watch.turn = semaphore.NewWeighted(KeptBodies), semaphore.NewWeighted(1)
	if err := Validate(s.Opts); err != nil {
		return err
	}
	s.ids.rng = rand.New(rand.NewPCG(s.Opts.Seed, 2))
	if err := s.Resolve(); err != nil {
		return err
	}
	s.Token.Set(target.Token)
	s.Redactor.Add(target.Token, "$DESTKIT_TOKEN")
	if err := s.FindSecret(); err != nil {
		return err
	}
	s.Pace = newPace()
	return s.connect()
}

func (s *Session) connect() error {
	o := wire.Options{
		URL: s.Target.URL, Token: s.Target.Token, Headers: s.Target.Headers, Redactor: s.Redactor,
		UserAgent: "destkit/" + cmp.Or(s.Opts.Version, "dev"), Limiter: s.Pace.wait, Spare: s.Trees.Spare(),
		// TLS 1.0 is spoken where nothing better is offered: TLS-006 judges that.
		TLS: &tls.Config{MinVersion: tls.VersionTLS10, RootCAs: s.Opts.Roots, InsecureSkipVerify: s.Dev && s.Opts.Roots == nil},
	}
	hooks := &http.Transport{DisableKeepAlives: true, DialContext: s.dialInTurn(new(net.Dialer).DialContext)}
	if s.InMemory {
		dial, stop := wire.ServeHandler(s.Target.Handler)
		o.Dial, s.stop = dial, stop
		hooks.DialContext = s.dialInTurn(dial)
	}
	if s.Opts.Roots != nil || s.Dev {
		hooks.TLSClientConfig = o.TLS.Clone()
	}
	s.Hooks = &http.Client{Transport: hooks}
	if err := s.connectAll(o); err != nil {
		return err
	}
	switch {
	case s.Opts.ReadbackFunc != nil:
		s.Readback = s.Opts.ReadbackFunc
	case s.Opts.Readback.Set():
		s.Readback = s.noticed(s.Opts.Readback.Readback(s.Hooks, s.Opts.Hooks.Timeout))
	}
	return nil
}

// Close ends the connections of the run, and the server of a handler.
func (s *Session) Close() {
	for _, client := range s.Replicas.Lines {
		client.Close()
	}
	if s.stop != nil {
		s.stop()
	}
}

// Resolve decides how the target is reached and whether TLS is judged.
func (s *Session) Resolve() error {
	if s.Target.URL == "" {
		if s.Target.Handler == nil {
			return conformance.Usage("the URL of the endpoint is missing: destkit conform https://HOST/PATH")
		}
		s.Target.URL = "http://destination.localhost/"
	}
	var err error
	if s.URL, err = parseEndpoint("endpoint", s.Target.URL); err != nil {
		return err
	}
	if err := s.resolveReplicas(); err != nil {
		return err
	}
	// The token goes to all of them: one that is far away is far away for all.
	private := !slices.ContainsFunc(s.Replicas.urls, func(u *url.URL) bool { return !reach.PrivateHost(u.Hostname()) })
	s.InMemory = s.Target.Handler != nil
	s.Private = s.Opts.Roots != nil
	switch {
	case s.InMemory:
		s.Dev, s.DevWhy = true, "the target is an in-process handler"
	case s.Opts.Development == conformance.DevelopmentOn:
		s.Dev, s.DevWhy = true, "development mode is on"
	case s.Opts.Development == conformance.DevelopmentAuto && private && s.Opts.Roots == nil:
		s.Dev, s.DevWhy = true, "the address is a loopback or private one (development mode auto)"
	}
	return nil
}

// FindSecret resolves --url-secret against the URL of each replica (spec 5.2.3).
func (s *Session) FindSecret() error {
	if s.Opts.URLSecret == "" {
		return nil
	}
	for _, u := range s.Replicas.urls {
		secret, err := s.secretOf(u)
		if err != nil {
			return err
		}
		s.Secret = cmp.Or(s.Secret, secret)
		s.Redactor.Add(secret, "$DESTKIT_URL_SECRET")
	}
	return nil
}

// secretOf is the secret in one URL.
func (s *Session) secretOf(u *url.URL) (string, error) {
	kind, name, _ := strings.Cut(s.Opts.URLSecret, ":")
	switch kind {
	case "query":
		values := u.Query()[name]
		if len(values) != 1 || values[0] == "" {
			return "", conformance.Usage("url-secret %q: the URL has no query parameter %q with one value", s.Opts.URLSecret, name)
		}
		return values[0], nil
	case "path":
		segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(segments) || segments[i] == "" {
			return "", conformance.Usage("url-secret %q: the path has no segment %q (they count from 0)", s.Opts.URLSecret, name)
		}
		return url.PathUnescape(segments[i])
	}
	return "", conformance.Usage("url-secret %q: use query:NAME or path:INDEX", s.Opts.URLSecret)
}
