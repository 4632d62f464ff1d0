// Package destinations owns the destinations of the service: their objects, fetched again when old,
// and the test of a connection. Rows are left to store, calls to sync/destination.
package destinations

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Destinations calls the destinations of the service, and caches their objects.
type Destinations struct {
	Shared *call.Shared
	Log    *slog.Logger
	Clock  *clock.Clock
	Work   *background.Work
	Lock   *statelock.Lock
	Gate   *destination.Gate
	TTL    time.Duration // how long objects are kept before they are fetched again

	attempts background.Flights // to read objects
}

// Test runs the connection test, reads the objects when it passed,
// and stores both.
func (k *Destinations) Test(ctx context.Context, d *store.Destination, credentials map[string]json.RawMessage) ([]*api.DestinationObject, error) {
	conn, err := k.Gate.Open(d.ID, d.Type, credentials)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// Outside of any transaction: a slow destination must not stop other
	// writers.
	results := conn.Test(ctx)
	passed := destination.Succeeded(results)
	d.TestResults, d.TestSucceeded, d.TestedAt = &results, &passed, k.Clock.Now()
	var objects []*api.DestinationObject
	planned := false
	if passed {
		objects, err = conn.Objects(ctx)
		if planned = err == nil; planned {
			mapping.Define(d.Type, objects)
		} else {
			k.Log.Warn("planning failed", "destination", d.ID, "error", err)
		}
	}
	k.Log.Info("destination tested", "destination", d.ID, "url", k.sealedURL(d.Type, credentials), "passed", passed, "planned", planned)
	err = k.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		err := tx.SaveDestination(d, nil)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
			return nil // changed or deleted meanwhile: the tested one is gone
		}
		if err != nil || !planned {
			return err
		}
		return tx.PutObjectCache(d.ID, &store.ObjectCache{FetchedAt: k.Clock.Now(), Objects: objects})
	})
	return objects, err
}

// sealedURL is how logs show the URL of a destination: scheme and host, and the
// whole in a seal that `destkit serve unseal` opens (spec 5.2.3).
func (k *Destinations) sealedURL(typ string, credentials map[string]json.RawMessage) string {
	var whole string
	if json.Unmarshal(credentials["webhook_url"], &whole) != nil {
		return "" // other types have none
	}
	sealed, err := k.Shared.Store.SealText(whole)
	if err != nil {
		return k.Gate.SafeURL(typ, credentials)
	}
	return k.Gate.SafeURL(typ, credentials) + "/" + sealed
}
