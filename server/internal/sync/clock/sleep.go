package clock

import (
	"context"
	"time"
)

// Sleep waits in real time, whatever a clock was set to: as networks do. It ends
// early with the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
