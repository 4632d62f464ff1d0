package seed

import (
	"context"
	"errors"
	"time"

	"github.com/destkit/destkit/server/internal/store"
)

// settingSeeded tells that a store had its seed.
const settingSeeded = "seeded"

// SeedOnce is Seed for a store that had none by SeedOnce before; otherwise nothing
// happens, and the result is nil. Of several processes one seeds, and a seed that
// fails may be tried again.
func (s *Seeds) SeedOnce(ctx context.Context, file string, src []byte) (*Seeded, error) {
	mine := false
	err := s.shared.Store.Update(ctx, func(tx *store.Tx) error {
		mine = false
		_, err := tx.Setting(settingSeeded)
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		mine = true
		return tx.SetSetting(settingSeeded, tx.Now().UTC().Format(time.RFC3339))
	})
	if err != nil || !mine {
		return nil, err
	}
	seeded, err := s.Seed(ctx, file, src)
	if err != nil {
		// With a context of its own: that of the caller may be why it failed.
		err = errors.Join(err, s.shared.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			return tx.DeleteSetting(settingSeeded)
		}))
	}
	return seeded, err
}
