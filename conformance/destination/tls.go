package destination

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/destkit/destkit/conformance/internal/rules"
)

// tlsJudged reports whether the TLS checks run (spec 5.2.1). In development they
// are NOT_RUN, and calls do not verify the chain.
func (s *session) tlsJudged() bool { return !s.dev }

// handshake looks at the certificate once per attempt of a run.
func (s *session) handshake(ctx context.Context) *rules.Handshake {
	f := &rules.Handshake{Name: s.url.Hostname(), Roots: s.opts.Roots, Now: time.Now()}
	cfg := &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}
	if net.ParseIP(f.Name) == nil {
		cfg.ServerName = f.Name
	}
	state, err := s.client.Handshake(ctx, cfg, "", "")
	if err != nil {
		f.Err = err
		return f
	}
	f.Version, f.Chain = state.Version, state.PeerCertificates
	return f
}

// trusted reports whether a token may travel over this line.
func (s *session) trusted(ctx context.Context) bool {
	f := s.handshake(ctx)
	if f.Err != nil {
		// Nothing answers: discovery reports that.
		return true
	}
	return f.Verify(f.Name, f.Now) == nil
}
