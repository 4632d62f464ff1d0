package line

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/reach"
)

// Where the target stands, whether that is on this machine, and the secret that
// its URL may hold (spec 5.2).

// Resolve decides how the target is reached and whether TLS is judged.
func (s *Session) Resolve() error {
	if s.Target.URL == "" {
		if s.Target.Handler == nil {
			return Usage("the URL of the endpoint is missing: destkit conform https://HOST/PATH")
		}
		s.Target.URL = "http://destination.localhost/"
	}
	var err error
	if s.URL, err = parseEndpoint("endpoint", s.Target.URL); err != nil {
		return err
	}
	all, err := s.resolveReplicas()
	if err != nil {
		return err
	}
	// The token goes to all of them: one that is far away is far away for all.
	private := !slices.ContainsFunc(all, func(u *url.URL) bool { return !reach.PrivateHost(u.Hostname()) })
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

// FindSecret resolves --url-secret against the URLs (spec 5.2.3). Each replica
// has one in the same place.
func (s *Session) FindSecret() error {
	if s.Opts.URLSecret == "" {
		return nil
	}
	secret, err := s.secretOf(s.URL)
	if err != nil {
		return err
	}
	s.Secret = secret
	s.Redactor.Add(s.Secret, "$DESTKIT_URL_SECRET")
	for _, raw := range s.Target.Replicas {
		u, err := url.Parse(raw)
		if err != nil {
			return Usage("the URL of a replica does not parse")
		}
		if secret, err = s.secretOf(u); err != nil {
			return err
		}
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
			return "", Usage("url-secret %q: the URL has no query parameter %q with one value", s.Opts.URLSecret, name)
		}
		return values[0], nil
	case "path":
		segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(segments) || segments[i] == "" {
			return "", Usage("url-secret %q: the path has no segment %q (they count from 0)", s.Opts.URLSecret, name)
		}
		secret, err := url.PathUnescape(segments[i])
		if err != nil {
			return "", Usage("url-secret %q: the segment does not unescape", s.Opts.URLSecret)
		}
		return secret, nil
	}
	return "", Usage("url-secret %q: use query:NAME or path:INDEX", s.Opts.URLSecret)
}
