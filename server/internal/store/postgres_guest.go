package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// guest is the transaction of an Update in the hands of others. It runs their
// statements under a time of its own: one that is cut short by the caller's
// context would cost the connection.
type guest struct {
	tx     *Tx
	db     *pgx.Conn
	ctx    context.Context
	leave  context.CancelFunc
	points int
}

var _ pgx.Tx = (*guest)(nil)

var errGuest = errors.New("the store ends this transaction")

func (g *guest) ready(ctx context.Context) error {
	if err := g.tx.ready(true); err != nil {
		return err
	}
	return ctx.Err()
}

// Begin makes a savepoint that can be released or gone back to.
func (g *guest) Begin(ctx context.Context) (pgx.Tx, error) {
	g.points++
	name := fmt.Sprintf("guest_%d", g.points)
	if _, err := g.Exec(ctx, "SAVEPOINT "+name); err != nil {
		return nil, err
	}
	return &guestPoint{guest: g, name: name}, nil
}

func (g *guest) Commit(context.Context) error   { return errGuest }
func (g *guest) Rollback(context.Context) error { return errGuest }

func (g *guest) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := g.ready(ctx); err != nil {
		return 0, err
	}
	return g.db.CopyFrom(g.ctx, table, columns, rows)
}

func (g *guest) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := g.ready(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return g.db.SendBatch(g.ctx, b)
}

// LargeObjects cannot be used: only the driver's own transactions make them.
func (g *guest) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

func (g *guest) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	return g.db.Prepare(g.ctx, name, sql)
}

func (g *guest) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := g.ready(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return g.db.Exec(g.ctx, sql, args...)
}

func (g *guest) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	return g.db.Query(g.ctx, sql, args...)
}

func (g *guest) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := g.ready(ctx); err != nil {
		return noRow{err}
	}
	return g.db.QueryRow(g.ctx, sql, args...)
}

func (g *guest) Conn() *pgx.Conn { return g.db }

// toldOfGuest marks an error that a statement of a guest may have met as the store's own
// errors are: guests hand on what the driver says, with words of their own before it.
func (tx *Tx) toldOfGuest(err error) error {
	if tx.guest == nil || !fromServer(err) {
		return err
	}
	told := explained(err)
	for _, kind := range []error{ErrFull, ErrDamaged, ErrUnfit, ErrUnavailable} {
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
	*guest
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
