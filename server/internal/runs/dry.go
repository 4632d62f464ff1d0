package runs

import "context"

// dryKey marks the context of a dry run.
type dryKey struct{}

// Dry is a context in which nothing may be stored.
func Dry(ctx context.Context) context.Context { return context.WithValue(ctx, dryKey{}, true) }

// isDry reports whether a run is resolved as a dry one.
func isDry(ctx context.Context) bool { return ctx.Value(dryKey{}) == true }
