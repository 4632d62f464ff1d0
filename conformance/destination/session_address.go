package destination

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

// resolve decides how the target is reached and whether TLS is judged.
func (s *session) resolve() error {
	if s.target.URL == "" {
		if s.target.Handler == nil {
			return usage("the URL of the endpoint is missing: destkit conform https://HOST/PATH")
		}
		s.target.URL = "http://destination.localhost/"
	}
	var err error
	if s.url, err = parseEndpoint("endpoint", s.target.URL); err != nil {
		return err
	}
	all, err := s.resolveReplicas()
	if err != nil {
		return err
	}
	// The token goes to all of them: one that is far away is far away for all.
	private := !slices.ContainsFunc(all, func(u *url.URL) bool { return !reach.PrivateHost(u.Hostname()) })
	s.inMemory = s.target.Handler != nil
	s.private = s.opts.Roots != nil
	switch {
	case s.inMemory:
		s.dev, s.devWhy = true, "the target is an in-process handler"
	case s.opts.Development == conformance.DevelopmentOn:
		s.dev, s.devWhy = true, "development mode is on"
	case s.opts.Development == conformance.DevelopmentAuto && private && s.opts.Roots == nil:
		s.dev, s.devWhy = true, "the address is a loopback or private one (development mode auto)"
	}
	return nil
}

// findSecret resolves --url-secret against the URLs (spec 5.2.3). Each replica
// has one in the same place.
func (s *session) findSecret() error {
	if s.opts.URLSecret == "" {
		return nil
	}
	secret, err := s.secretOf(s.url)
	if err != nil {
		return err
	}
	s.secret = secret
	s.redactor.Add(s.secret, "$DESTKIT_URL_SECRET")
	for _, raw := range s.target.Replicas {
		u, err := url.Parse(raw)
		if err != nil {
			return usage("the URL of a replica does not parse")
		}
		if secret, err = s.secretOf(u); err != nil {
			return err
		}
		s.redactor.Add(secret, "$DESTKIT_URL_SECRET")
	}
	return nil
}

// secretOf is the secret in one URL.
func (s *session) secretOf(u *url.URL) (string, error) {
	kind, name, _ := strings.Cut(s.opts.URLSecret, ":")
	switch kind {
	case "query":
		values := u.Query()[name]
		if len(values) != 1 || values[0] == "" {
			return "", usage("url-secret %q: the URL has no query parameter %q with one value", s.opts.URLSecret, name)
		}
		return values[0], nil
	case "path":
		segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(segments) || segments[i] == "" {
			return "", usage("url-secret %q: the path has no segment %q (they count from 0)", s.opts.URLSecret, name)
		}
		secret, err := url.PathUnescape(segments[i])
		if err != nil {
			return "", usage("url-secret %q: the segment does not unescape", s.opts.URLSecret)
		}
		return secret, nil
	}
	return "", usage("url-secret %q: use query:NAME or path:INDEX", s.opts.URLSecret)
}
