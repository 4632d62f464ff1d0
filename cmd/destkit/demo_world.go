package main

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"path/filepath"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/build"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/listen"
	"github.com/destkit/destkit/cmd/destkit/internal/rest"
	"github.com/destkit/destkit/cmd/destkit/internal/serve"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server"
)

// demoPlaces are the parts of the demo's data.
type demoPlaces struct{ service, key, destination string }

func demoFiles(dir string) demoPlaces {
	return demoPlaces{filepath.Join(dir, "service"), filepath.Join(dir, "master.key"), filepath.Join(dir, "destination.db")}
}

// demoPort is a handler that is served on loopback.
type demoPort struct {
	*listen.Background
	certificates *destsim.Certificates // nil: plain http
}

// roots trusts the destination alone.
func (p *demoPort) roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.certificates.CAPEM())
	return roots
}

// newDemoDestination serves a simulator over https. Tests put something in front of it.
func newDemoDestination(ctx context.Context, config destsim.Config, front ...func(http.Handler) http.Handler) (*demoPort, error) {
	config.Token = demoToken
	sim, err := destsim.New(config)
	if err != nil {
		return nil, exit.Untested(err)
	}
	certificates, err := destsim.NewCertificates(nil)
	if err != nil {
		return nil, exit.Untested(errors.Join(err, sim.Close()))
	}
	port := &listen.Port{Addr: "127.0.0.1:0", Handler: sim}
	for _, f := range front {
		port.Handler = f(port.Handler)
	}
	if port.TLS, err = certificates.TLSConfig(sim.TLSViolation()); err != nil {
		return nil, exit.Untested(errors.Join(err, sim.Close()))
	}
	served, err := listen.Start(ctx, port, sim.Close)
	if err != nil {
		return nil, err
	}
	return &demoPort{served, certificates}, nil
}

// demoPatience bounds one call of the demo: an audit of many rows takes minutes.
const demoPatience = 15 * time.Minute

// newDemoService serves the service on a data directory, as 'destkit serve'
// does, and returns a client of it with the key of its workspace. Tests change its
// configuration.
func newDemoService(ctx context.Context, files demoPlaces, trusted []byte, change ...func(*server.Config)) (*demoPort, *rest.Client, error) {
	key, err := serve.MakeKeyFile(files.key)
	if err != nil {
		return nil, nil, err
	}
	s := serve.Flags{}
	s.Config.Dir, s.Config.MasterKey, s.Config.Trusted = files.service, key.Bytes, trusted
	s.Config.Version, s.Config.Owner = build.Read().Version, "destkit demo"
	s.Config.CallTimeout = 30 * time.Second
	for _, f := range change {
		f(&s.Config)
	}
	listening := &listen.Port{Addr: "127.0.0.1:0"}
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
	port := &demoPort{Background: listen.StartOn(ctx, listening, ln, url, world.Close)}
	client := &rest.Client{Root: port.URL, Token: world.FirstTokens().WorkspaceAPIKey, HTTP: &http.Client{Timeout: demoPatience}}
	return port, client, nil
}
