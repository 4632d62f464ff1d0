package destsim

import (
	"bytes"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
)

// putLater stores data under a key after d, replacing what is there then; nil
// data removes it. It is for destinations that acknowledge before they write.
func (s *Sim) putLater(d time.Duration, t *store.Table, field, key, data []byte) {
	field, key, data = bytes.Clone(field), bytes.Clone(key), bytes.Clone(data)
	s.later(d, func() {
		u, err := s.store.Begin()
		if err != nil {
			return
		}
		defer u.Rollback()
		err = u.With(t, field, key, func(rows store.Rows) error {
			found, err := rows.Find(field, key)
			switch {
			case err != nil:
				return err
			case data == nil:
				for _, old := range found {
					err = rows.Remove(old)
				}
				return err
			case len(found) > 0:
				return rows.Put(found[0], data)
			}
			return rows.Put(nil, data)
		})
		if err == nil {
			_ = u.Commit()
		}
	})
}
