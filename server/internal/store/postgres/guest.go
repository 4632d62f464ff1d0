package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/destkit/destkit/server/internal/store/database"
)

// Guest is the transaction of a change in the hands of others. It runs their
// statements under a time of its own: one that is cut short by the caller's
// context would cost the connection.
type Guest struct {
	usable func() error // of the transaction
	db     *pgx.Conn
	ctx    context.Context
	leave  context.CancelFunc
	points int
}

var _ pgx.Tx = (*Guest)(nil)

// Lend gives a transaction that has begun to others, who use it as long as usable lets
// them; Leave follows.
func (c *Conn) Lend(ctx context.Context, usable func() error) *Guest {
	ctx, leave := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	return &Guest{usable: usable, db: c.whole, ctx: ctx, leave: leave}
}

// Leave ends what others have of the transaction.
func (g *Guest) Leave() { g.leave() }

var errGuest = errors.New("the store ends this transaction")

func (g *Guest) ready(ctx context.Context) error {
	if err := g.usable(); err != nil {
		return err
	}
	return ctx.Err()
}

// Begin makes a savepoint that can be released or gone back to.
func (g *Guest) Begin(ctx context.Context) (pgx.Tx, error) {
	g.points++
	name := fmt.Sprintf("guest_%d", g.points)
	if _, err := g.Exec(ctx, "SAVEPOINT "+name); err != nil {
		return nil, err
	}
	return &guestPoint{Guest: g, name: name}, nil
}

// Commit implements pgx.Tx, and is refused.
func (g *Guest) Commit(context.Context) error { return errGuest }

// Rollback implements pgx.Tx, and is refused.
func (g *Guest) Rollback(context.Context) error { return errGuest }

// CopyFrom implements pgx.Tx.
func (g *Guest) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := g.ready(ctx); err != nil {
		return 0, err
	}
	return g.db.CopyFrom(g.ctx, table, columns, rows)
}

// SendBatch implements pgx.Tx.
func (g *Guest) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := g.ready(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return g.db.SendBatch(g.ctx, b)
}

// LargeObjects cannot be used: only the driver's own transactions make them.
func (g *Guest) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Prepare implements pgx.Tx.
func (g *Guest) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	return g.db.Prepare(g.ctx, name, sql)
}

// Exec implements pgx.Tx.
func (g *Guest) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := g.ready(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return g.db.Exec(g.ctx, sql, args...)
}

// Query implements pgx.Tx.
func (g *Guest) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	return g.db.Query(g.ctx, sql, args...)
}

// QueryRow implements pgx.Tx.
func (g *Guest) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := g.ready(ctx); err != nil {
		return noRow{err}
	}
	return g.db.QueryRow(g.ctx, sql, args...)
}

// Conn implements pgx.Tx.
func (g *Guest) Conn() *pgx.Conn { return g.db }

// Told marks an error that a statement of a guest may have met as those of a Schema
// are: guests hand on what the driver says, with words of their own before it.
func Told(err error) error {
	if !fromServer(err) {
		return err
	}
	told := explained(err)
	for _, kind := range []error{database.ErrFull, database.ErrDamaged, ErrUnfit, ErrUnavailable} {
		if errors.Is(told, kind) && !errors.Is(err, kind) {
			return fmt.Errorf("%w: %w", kind, err)
		}
	}
	return err
}

// noRow is the row of a query that was not run.
type noRow struct{ err error }

func (r noRow) Scan(...any) error { return r.err }

// guestPoint is a savepoint as a transaction.
type guestPoint struct {
	*Guest
	name  string
	ended bool
}

func (p *guestPoint) Commit(ctx context.Context) error {
	return p.end(ctx, "RELEASE SAVEPOINT "+p.name)
}

func (p *guestPoint) Rollback(ctx context.Context) error {
	return p.end(ctx, "ROLLBACK TO SAVEPOINT "+p.name+"; RELEASE SAVEPOINT "+p.name)
}

func (p *guestPoint) end(ctx context.Context, how string) error {
	if p.ended {
		return pgx.ErrTxClosed
	}
	p.ended = true
	_, err := p.Exec(ctx, how)
	return err
}
