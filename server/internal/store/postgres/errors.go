package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/destkit/destkit/server/internal/store/database"
)

// What may be better in a moment, and what has to be changed in the database or in its URL.
var (
	ErrUnavailable = errors.New("the database is not available")
	// ErrCrowded is a kind of ErrUnavailable.
	ErrCrowded = errors.New("no connection is free")
	ErrUnfit   = database.ErrUnfit
)

// SQLSTATEs of PostgreSQL that are told apart; the first two characters are a
// class.
const (
	constraintClass = "23"
	uniqueViolation = "23505"

	foreignKeyViolation = "23503"

	diskFull    = "53100"
	tooMany     = "53300"
	lockTimeout = "55P03"

	failedTransaction = "25P02"
)

// passing are classes and codes of what may be better in a moment: connections
// (08), resources (53), the server going down or coming up (57P), in recovery or
// read only (25006), an idle transaction that was ended (25P03), conflicts with
// sessions of others (40, 55P03), a disk that fails (58).
var passing = []string{"08", "40", "53", "57", "58", "25006", "25P03", "55P03"}

// refused are those of what has to be changed first: the login (28), a database,
// schema or role that is not there, missing rights.
var refused = []string{"28", "3D000", "3F000", "42501", "0A000"}

func coded(code string, list []string) bool {
	return slices.ContainsFunc(list, func(c string) bool { return len(code) >= len(c) && code[:len(c)] == c })
}

// translate turns PostgreSQL's words into ours where callers tell them apart.
// None of them has a password in it.
func (c *Conn) translate(err error) error {
	if err == nil {
		return nil
	}
	err = explained(err)
	// Whatever was said: nothing answers here any more.
	if c.db.IsClosed() && !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// Explained marks an error of Pool or of a Guest with ErrUnavailable, database.ErrFull
// and the like, as those of a Schema are. Others, and nil, stay as they are.
func Explained(err error) error {
	if err == nil || !fromServer(err) {
		return err
	}
	return explained(err)
}

// explained marks an error of a connection, or of the attempt to make one.
func explained(err error) error {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return fmt.Errorf("%w: %w", ErrUnavailable, withoutAddresses(err))
	}
	switch {
	case refusal.Code == diskFull:
		return fmt.Errorf("%w: %w", database.ErrFull, refusal)
	case refusal.Code == tooMany:
		return fmt.Errorf("%w: %w: %w; raise max_connections of the server, or the limit of the role or the database: each process takes up to %d",
			ErrUnavailable, ErrCrowded, refusal, connections())
	case refusal.Code == lockTimeout:
		return fmt.Errorf("%w: another process holds it for long: %w", ErrUnavailable, refusal)
	case coded(refusal.Code, []string{"XX001", "XX002"}):
		return fmt.Errorf("%w: %w", database.ErrDamaged, refusal)
	case coded(refusal.Code, passing):
		return fmt.Errorf("%w: %w", ErrUnavailable, refusal)
	case coded(refusal.Code, refused):
		return fmt.Errorf("%w: %w", ErrUnfit, refusal)
	}
	return refusal
}

// fromServer tells errors of a server, and of the way to it, from others.
func fromServer(err error) bool {
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*net.OpError](err); ok { // a connection that broke under a statement
		return true
	}
	return errors.Is(err, pgconn.ErrConnClosed) || pgconn.Timeout(err) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Busy tells that another process writes for too long: a new connection would wait as
// this one did.
func Busy(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.Code == lockTimeout
}

// Unique reports whether a statement broke a unique constraint.
func Unique(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.Code == uniqueViolation
}

// Dangling reports whether a statement would have left a reference to nothing.
func Dangling(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.Code == foreignKeyViolation
}

// Harmless reports whether a failed statement leaves its transaction usable: a broken
// constraint undoes that statement alone.
func Harmless(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(refusal.Code, constraintClass)
}

// withoutAddresses is the reason alone: the driver lists the settings and every
// attempt with it.
func withoutAddresses(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network.Err
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("find address of %s: no such host", name.Name)
	}
	if attempt, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return errors.Unwrap(attempt)
	}
	return err
}
