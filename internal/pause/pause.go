// Package pause waits in real time, whatever a clock of the service was set to.
package pause

import (
	"context"
	"time"
)

// For waits for d, or ends early with the error of ctx.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
