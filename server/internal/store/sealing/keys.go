package sealing

import (
	"fmt"
	"io"
	"maps"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Statements are how a transaction runs its own.
type Statements interface {
	Exec(query string, args ...any) (changed int64, err error)
	Query(query string, each func(sqlite.Row) error, args ...any) error
	Insert(query string, args ...any) (id int64, err error) // INSERT … RETURNING id
}

// Keys are the keys of a ring as one transaction uses them.
type Keys struct {
	ring *Ring
	db   Statements
	made map[int64]*dataKey // in this transaction
}

// Keys begins to use the ring in a transaction.
func (r *Ring) Keys(db Statements) Keys { return Keys{ring: r, db: db} }

// Committed hands the keys of a transaction that is committed to the ring.
func (k *Keys) Committed() { k.ring.add(k.made) }

// OpenInstallation opens the keys of the installation and makes the first one.
func (k *Keys) OpenInstallation() error {
	keys, err := readKeys(k.db.Query, "workspace_id IS NULL")
	if err != nil {
		return err
	}
	opened := map[int64]*dataKey{}
	for _, w := range keys {
		if opened[w.id], err = w.use(k.ring.masterKey()); err != nil {
			return err
		}
	}
	k.keep(opened)
	if len(keys) == 0 {
		_, err = k.newDataKey(0)
	}
	return err
}

// keep hands keys to the ring when the transaction is committed.
func (k *Keys) keep(keys map[int64]*dataKey) {
	if k.made == nil {
		k.made = map[int64]*dataKey{}
	}
	maps.Copy(k.made, keys)
}

// newDataKey makes the key that seals the values of a workspace from now on.
func (k *Keys) newDataKey(workspace int64) (*dataKey, error) {
	key := make([]byte, KeySize)
	if _, err := io.ReadFull(k.ring.random, key); err != nil {
		return nil, fmt.Errorf("make data key: %w", err)
	}
	owner := &workspace
	if workspace == 0 {
		owner = nil
	}
	id, err := k.db.Insert("INSERT INTO data_keys (workspace_id, wrapped) VALUES (?, ?) RETURNING id", owner, []byte{0})
	if err != nil {
		return nil, fmt.Errorf("make data key: %w", err)
	}
	w := wrapped{id: id, workspace: workspace, bytes: encrypt(k.ring.masterKey(), key, wrapPlace(id, workspace))}
	if _, err := k.db.Exec("UPDATE data_keys SET wrapped = ? WHERE id = ?", w.bytes, id); err != nil {
		return nil, fmt.Errorf("make data key: %w", err)
	}
	opened, err := w.use(k.ring.masterKey())
	if err != nil {
		return nil, err
	}
	k.keep(map[int64]*dataKey{id: opened})
	return opened, nil
}

// currentKey finds or makes the key that seals for a workspace.
func (k *Keys) currentKey(workspace int64) (*dataKey, error) {
	var id int64
	err := k.db.Query("SELECT id FROM data_keys WHERE workspace_id = ? AND retired = 0 ORDER BY id DESC LIMIT 1", func(c sqlite.Row) error {
		id, _ = c.Number(0)
		return nil
	}, workspace)
	if err != nil {
		return nil, fmt.Errorf("read data key: %w", err)
	}
	if id == 0 {
		return k.newDataKey(workspace)
	}
	return k.key(id)
}

// key opens a data key by its id.
func (k *Keys) key(id int64) (*dataKey, error) {
	if key := k.made[id]; key != nil {
		return key, nil
	}
	if key := k.ring.get(id); key != nil {
		return key, nil
	}
	found, err := readKeys(k.db.Query, "id = ?", id)
	if err == nil && len(found) == 0 {
		err = sqlite.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read data key %d: %w", id, err)
	}
	key, err := found[0].use(k.ring.masterKey())
	if err != nil {
		return nil, fmt.Errorf("open data key %d: %w", id, err)
	}
	// Committed: k.made holds the ones of this transaction.
	k.ring.add(map[int64]*dataKey{id: key})
	return key, nil
}
