package command

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// Background is a port that is served beside the work of a command.
type Background struct {
	URL string
	// Stop ends it once calls in flight are over, and lets go of what is behind the port.
	// Further calls return what the first did.
	Stop func() error
}

// StartPort opens a port and serves it; closing lets go of what is behind it.
func StartPort(ctx context.Context, port *Port, closing func() error) (*Background, error) {
	ln, url, err := port.Open()
	if err != nil {
		return nil, errors.Join(err, closing())
	}
	return StartPortOn(ctx, port, ln, url, closing), nil
}

// StartPortOn serves a port that is open.
func StartPortOn(ctx context.Context, port *Port, ln net.Listener, url string, closing func() error) *Background {
	ctx, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- port.Serve(ctx, ln) }()
	return &Background{URL: url, Stop: sync.OnceValue(func() error {
		end()
		if err := errors.Join(<-done, closing()); err != nil {
			return exit.Untested(err)
		}
		return nil
	})}
}
