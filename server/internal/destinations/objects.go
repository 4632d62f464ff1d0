package destinations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Objects are those of the cache, or of new planning calls when the cache is
// empty or old: a custom destination keeps none itself (spec 4.2, rule 1). When
// the destination cannot be reached, old objects are better than none.
func (k *Destinations) Objects(ctx context.Context, d *store.Destination) ([]*api.DestinationObject, error) {
	cached, err := k.cached(ctx, d.ID)
	if err != nil {
		return nil, err
	}
	// One that is of a moment to come was kept before the clock was set back.
	if age := k.Clock.Now().Sub(cached.FetchedAt); !cached.FetchedAt.IsZero() && age >= 0 && age < k.TTL {
		return cached.Objects, nil
	}
	if err := k.Refresh(ctx, d); err != nil {
		// Errors of the service, not the destination: the destination was deleted
		// meanwhile, or the store cannot be used.
		if errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("read objects of destination %d: %w", d.ID, store.ErrNotFound)
		}
		if store.Passing(err) || errors.Is(err, store.ErrClosed) || ctx.Err() != nil {
			return nil, err
		}
		if !cached.FetchedAt.IsZero() {
			k.Log.Warn("old objects are shown", "destination", d.ID, "error", err)
			return cached.Objects, nil
		}
		// The destination has failed, not the caller.
		f := problem.Refuse(http.StatusBadGateway, "the destination could not be asked for its objects: %v", err)
		f.Cause = err
		return nil, f
	}
	if cached, err = k.cached(ctx, d.ID); err != nil {
		return nil, err
	}
	return cached.Objects, nil
}

// cached reads the cache in a separate view: no transaction stays open
// during calls.
func (k *Destinations) cached(ctx context.Context, id int64) (cached *store.ObjectCache, err error) {
	cached, err = store.Read(ctx, k.Shared.Store, func(tx *store.Tx) (*store.ObjectCache, error) { return Kept(tx, id) })
	return cached, err
}

// Kept is what the cache holds; an empty one when nothing was fetched.
func Kept(tx *store.Tx, id int64) (*store.ObjectCache, error) {
	cached, err := tx.ObjectCache(id)
	if errors.Is(err, store.ErrNotFound) {
		return &store.ObjectCache{}, nil
	}
	return cached, err
}

// Refresh fetches the objects of the destination and caches them. Calls
// that come together share one attempt, which no single client can abort.
func (k *Destinations) Refresh(ctx context.Context, d *store.Destination) error {
	state := k.Lock.Number()
	fetch := func(ctx context.Context) error {
		credentials, err := store.Read(ctx, k.Shared.Store, func(tx *store.Tx) (map[string]json.RawMessage, error) { return tx.DestinationCredentials(d.ID) })
		if err != nil {
			return err
		}
		conn, err := k.Gate.Open(d.ID, d.Type, credentials)
		if err != nil {
			return err
		}
		defer conn.Close()
		objects, err := conn.Objects(ctx)
		log := k.Log.With("destination", d.ID, "url", k.sealedURL(d.Type, credentials))
		if err != nil {
			log.Warn("destination could not be planned", "error", err)
			return err
		}
		log.Info("destination planned", "objects", len(objects))
		mapping.Define(d.Type, objects)
		return k.Shared.Store.Update(ctx, func(tx *store.Tx) error {
			if k.Lock.Number() != state {
				return nil // the id means another destination by now
			}
			return tx.PutObjectCache(d.ID, &store.ObjectCache{FetchedAt: k.Clock.Now(), Objects: objects})
		})
	}
	return k.attempts.Once(ctx, k.Work.Later, fmt.Sprintf("objects of destination %d", d.ID), fetch)
}
