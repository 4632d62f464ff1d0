package write

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/destkit/destkit/conformance/internal/rules"
)

// TLSJudged reports whether the TLS checks run (spec 5.2.1). In development they
// are NOT_RUN, and calls do not verify the chain.
func (s *Session) TLSJudged() bool { return !s.Dev }

// Handshake looks at the certificate once per attempt of a run.
func (s *Session) Handshake(ctx context.Context) *rules.Handshake {
	f := &rules.Handshake{Name: s.URL.Hostname(), Roots: s.Opts.Roots, Now: time.Now()}
	cfg := &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}
	if net.ParseIP(f.Name) == nil {
		cfg.ServerName = f.Name
	}
	state, err := s.Client.Handshake(ctx, cfg, "", "")
	if err != nil {
		f.Err = err
		return f
	}
	f.Version, f.Chain = state.Version, state.PeerCertificates
	return f
}

// Trusted reports whether a token may travel over this line.
func (s *Session) Trusted(ctx context.Context) bool {
	f := s.Handshake(ctx)
	if f.Err != nil {
		// Nothing answers: discovery reports that.
		return true
	}
	return f.Verify(f.Name, f.Now) == nil
}
