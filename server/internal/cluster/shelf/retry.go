package shelf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// How long a database that does not answer is waited for: a restart, a failover to
// another machine. Whoever calls holds its own work meanwhile.
const (
	defaultTimeout = 3 * time.Minute
	attemptTime    = 30 * time.Second
	firstPause     = 50 * time.Millisecond
	mostPause      = 5 * time.Second
)

// errMisuse is a change that cannot be made, whoever asks for it.
var errMisuse = errors.New("the change does not fit the file")

// Classes and codes of PostgreSQL's errors that are over in a moment: connections,
// conflicts with others, resources, a server that goes down or comes up, a disk
// that fails, a server that is read only, a transaction that was ended for its
// slowness, a lock that was not to be had.
var passing = []string{"08", "40", "53", "57", "58", "25006", "25P03", "55P03"}

const diskFull = "53100"

// passes reports whether an error may be gone at the next try.
func passes(err error) bool {
	if errors.Is(err, ledger.ErrFenced) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errMisuse) {
		return false
	}
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok { // there was no answer; but a pool that was closed will not
		return err.Error() != "closed pool"
	}
	return refusal.Code != diskFull && slices.ContainsFunc(passing, func(class string) bool {
		return len(refusal.Code) >= len(class) && refusal.Code[:len(class)] == class
	})
}

// plain takes out of an error whom the driver has asked, and names a full disk.
func plain(err error) error {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		if refusal.Code == diskFull {
			return fmt.Errorf("%w: %w: %w", ledger.ErrAway, syscall.ENOSPC, refusal)
		}
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network.Err
	}
	if attempt, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return errors.Unwrap(attempt)
	}
	return err
}

// patiently does something that may be done twice, again and again while the
// database does not answer.
func (s *Shelf) patiently(what string, do func(ctx context.Context) error) error {
	var since time.Time
	pause := s.pause
	for {
		ctx, cancel := context.WithTimeout(context.Background(), s.attempt)
		err := do(ctx)
		cancel()
		if err == nil || !passes(err) || !since.IsZero() && time.Since(since) > s.timeout {
			if !since.IsZero() {
				s.answered(err)
			}
			switch {
			case err == nil:
				return nil
			case passes(err):
				return fmt.Errorf("%s: %w: %w", what, ledger.ErrAway, plain(err))
			}
			return fmt.Errorf("%s: %w", what, plain(err))
		}
		if since.IsZero() {
			since = time.Now()
			s.silent(what, err)
		}
		time.Sleep(pause)
		pause = min(2*pause, mostPause)
	}
}

// silent notes that a call waits; the first one is told.
func (s *Shelf) silent(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting++; s.waiting == 1 {
		s.since = time.Now()
		s.log.Warn("the ledger waits for the database", "to", what, "error", plain(err))
	}
}

// answered notes that a call waits no longer; the last one is told.
func (s *Shelf) answered(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting--; s.waiting > 0 {
		return
	}
	waited := time.Since(s.since).Round(time.Millisecond)
	if err != nil && passes(err) {
		s.log.Error("the ledger has waited in vain for the database", "waited", waited, "error", plain(err))
		return
	}
	s.log.Info("the database answers the ledger again", "waited", waited)
}
