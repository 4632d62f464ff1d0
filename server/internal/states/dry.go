package states

import "context"

// dryKey marks the context of a dry run.
type dryKey struct{}

// Dry is a context in which nothing may be stored.
func Dry(ctx context.Context) context.Context { return context.WithValue(ctx, dryKey{}, true) }

// IsDry reports whether what is resolved for a run is for a dry one.
func IsDry(ctx context.Context) bool { return ctx.Value(dryKey{}) == true }
