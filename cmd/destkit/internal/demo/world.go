package demo

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"path/filepath"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/serve"
	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server"
)

// Places are the parts of the demo's data.
type Places struct{ Service, Key, Destination string }

func places(dir string) Places {
	return Places{filepath.Join(dir, "service"), filepath.Join(dir, "master.key"), filepath.Join(dir, "destination.db")}
}

// Port is a handler that is served on loopback.
type Port struct {
	*command.Background
	Certificates *destsim.Certificates // nil: plain http
}

// roots trusts the destination alone.
func (p *Port) roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.Certificates.CAPEM())
	return roots
}

// NewDestination serves a simulator over https. Tests put something in front of it.
func NewDestination(ctx context.Context, config destsim.Config, front ...func(http.Handler) http.Handler) (*Port, error) {
	config.Token = Token
	sim, err := destsim.New(config)
	if err != nil {
		return nil, exit.Untested(err)
	}
	certificates, err := destsim.NewCertificates(nil)
	if err != nil {
		return nil, exit.Untested(errors.Join(err, sim.Close()))
	}
	port := &command.Port{Addr: "127.0.0.1:0", Handler: sim}
	for _, f := range front {
		port.Handler = f(port.Handler)
	}
	if port.TLS, err = certificates.TLSConfig(sim.TLSViolation()); err != nil {
		return nil, exit.Untested(errors.Join(err, sim.Close()))
	}
	served, err := command.StartPort(ctx, port, sim.Close)
	if err != nil {
		return nil, err
	}
	return &Port{served, certificates}, nil
}

// callTimeout bounds one call of the demo: an audit of many rows takes minutes.
const callTimeout = 15 * time.Minute

// NewService serves the service on a data directory, as 'destkit serve'
// does, and returns a client of it with the key of its workspace. Tests change its
// configuration.
func NewService(ctx context.Context, files Places, trusted []byte, change ...func(*server.Config)) (*Port, *syncs.Client, error) {
	key, err := serve.MakeKeyFile(files.Key)
	if err != nil {
		return nil, nil, err
	}
	s := serve.Flags{}
	s.Config.Dir, s.Config.MasterKey, s.Config.Trusted = files.Service, key.Bytes, trusted
	s.Config.Version, s.Config.Owner = command.ReadBuild().Version, "destkit demo"
	s.Config.CallTimeout = 30 * time.Second
	for _, f := range change {
		f(&s.Config)
	}
	listening := &command.Port{Addr: "127.0.0.1:0"}
	ln, url, err := listening.Open() // first: the service never calls itself there
	if err != nil {
		return nil, nil, err
	}
	if err := s.Reach.ListensAt(&s.Config, ln.Addr()); err != nil {
		return nil, nil, errors.Join(err, ln.Close())
	}
	world, err := s.Open(ctx, key)
	if err != nil {
		return nil, nil, errors.Join(err, ln.Close())
	}
	listening.Handler = world
	port := &Port{Background: command.StartPortOn(ctx, listening, ln, url, world.Close)}
	client := &syncs.Client{Root: port.URL, Token: world.FirstTokens().WorkspaceAPIKey, HTTP: &http.Client{Timeout: callTimeout}}
	return port, client, nil
}
