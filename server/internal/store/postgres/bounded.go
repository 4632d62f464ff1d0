package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// bounded gives every statement of a pool a deadline. Those who use the pool may have
// none: the queue takes its jobs under a context that never ends, and would take none
// any more once a server had swallowed such a statement.
type bounded time.Duration

var (
	_ pgx.QueryTracer    = bounded(0)
	_ pgx.BatchTracer    = bounded(0)
	_ pgx.CopyFromTracer = bounded(0)
)

// cancelKey is the key under which a context holds its own end.
type cancelKey struct{}

func (b bounded) begin(ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b))
	return context.WithValue(ctx, cancelKey{}, cancel)
}

func (bounded) end(ctx context.Context) {
	if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (b bounded) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return b.begin(ctx)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (b bounded) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { b.end(ctx) }

// TraceBatchStart implements pgx.BatchTracer.
func (b bounded) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return b.begin(ctx)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (bounded) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (b bounded) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { b.end(ctx) }

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (b bounded) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return b.begin(ctx)
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (b bounded) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromEndData) {
	b.end(ctx)
}
