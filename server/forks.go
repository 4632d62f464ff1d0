package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/forks"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// Fork makes an independent copy of the world, or one of a snapshot when r is
// not nil. Runs under way go on in both; webhooks and e-mails that were open are
// delivered by the first world alone. base is the address at which the caller will serve it, for the URLs
// in replies; "" takes it from each request. The fork is closed with s. When ctx ends
// before it is made there is none.
func (s *Server) Fork(ctx context.Context, name, base string, r io.Reader) (*Server, error) {
	return s.forks.Fork(ctx, name, base, r)
}

func (s *Server) makeFork(ctx context.Context, w forks.Wanted, r io.Reader) (*Server, error) {
	// All of it first: who sends one slowly must not hold the other forks.
	take := s.snapshots.Take
	if r != nil {
		take = func(context.Context) (*archive.Spool, error) { return archive.Receive(r, s.config.Dir) }
	}
	spooled, err := take(ctx)
	if err != nil {
		return nil, err
	}
	defer spooled.Close()
	a, err := archive.Open(spooled)
	if err != nil {
		return nil, err
	}
	leave, err := s.config.copies.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	fork, err := New(ctx, s.config.fork(w, a, s.forks.Trusted(), s.log))
	if err != nil {
		return nil, fmt.Errorf("make fork %s: %w", w.Name, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(err, fork.abandon())
	}
	return fork, nil
}

// fork is the configuration of a fork: in memory, with the tokens that
// its world has.
func (c Config) fork(w forks.Wanted, a *archive.Archive, trusted []byte, log *slog.Logger) Config {
	config := c
	config.Dir, config.Owner, config.BaseURL, config.Restore = "", "", w.Base, nil
	config.world = a
	// The tokens of the configuration may be others than those of a snapshot.
	config.PersonalAccessToken, config.WorkspaceAPIKey = "", ""
	config.forked = true
	config.Random = nil // the sequence of the first world is its own
	prefix := fmt.Sprintf("fork-%s-%d-", w.Name, w.Number)
	config.Trusted = append(append([]byte{}, config.Trusted...), trusted...)
	config.Log = log.With("fork", w.Name)
	if c.Emulate != nil {
		// A fork's destinations have the ids of the first world's.
		config.Emulate = func(key string, objects []catalogue.EmulatedObject) (*destination.Emulated, error) {
			return c.Emulate(prefix+key, objects)
		}
	}
	return config
}

// end closes a fork with all that it kept outside its store, when the calls under
// way have ended.
func (s *Server) end() error {
	ctx := context.Background() // whoever has asked for it may be gone
	unlock, err := s.latch.Stand(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	left, err := s.organizations.Everything(ctx)
	return errors.Join(err, s.organizations.Drop(left), s.Close())
}

// abandon closes a service that could not start. What a fork has brought with it goes.
func (s *Server) abandon() (err error) {
	if s.config.forked {
		var left organizations.Outside
		left, err = s.organizations.Everything(context.Background())
		err = errors.Join(err, s.organizations.Drop(left))
	}
	return errors.Join(err, s.Close())
}
