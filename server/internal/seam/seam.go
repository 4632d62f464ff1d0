// Package seam holds hooks by which tests change a service's exchanges, to show that a
// judge notices. The hooks decide what happens; the program sets none.
package seam

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// Seams change what passes; nil ones nothing.
type Seams struct {
	API        func(next http.Handler) http.Handler
	Calls      func(http.RoundTripper) http.RoundTripper // to destinations
	TLS        func(*tls.Config)                         // of destinations
	Mail       func(*store.Mail) bool                    // false drops it
	Deviations executor.Deviations
}

// Service is what a test gets to know of the service that it hooks into.
type Service struct {
	API   http.Handler // as if there were no seams
	View  func(ctx context.Context, read func(*store.Tx) error) error
	First func() (accessToken, key string) // of the organization that this start made
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	// Initial settings of the service, which may be changed.
	CacheTTL                          *time.Duration
	AllowPlainHTTP, PartialSyncUpdate *bool
}

// Set lets New, given a *server.Config, ask for seams.
var Set func(config any, seams func(*Service) Seams)
