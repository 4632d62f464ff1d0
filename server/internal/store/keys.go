package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/destkit/destkit/server/internal/store/database"
)

// dataKey seals the values of one workspace, or of the installation.
type dataKey struct {
	id        int64
	workspace int64 // 0: the installation
	retired   bool  // opens only
	gcm       cipher.AEAD
}

// keyring keeps the opened data keys. A key never changes under its id, so what
// is read once stays right until a rotation or a restore empties the ring.
//
// Where other processes may do that, epoch is the number of it that the ring is
// good for: -1 before the first.
type keyring struct {
	mu     sync.RWMutex
	master cipher.AEAD
	byID   map[int64]*dataKey
	epoch  int64
}

const keySize = 32 // AES-256

func newGCM(key []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("a key has %d bytes, not %d", keySize, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// setMaster takes the master key of the options, or a random one.
func (k *keyring) setMaster(o Options) error {
	key := o.MasterKey
	if key == nil {
		if o.Dir != "" || o.URL != "" || o.From != nil {
			return errors.New("a master key is needed: 32 bytes")
		}
		key = make([]byte, keySize)
		if _, err := rand.Read(key); err != nil {
			return err
		}
	}
	gcm, err := newGCM(key)
	if err != nil {
		return fmt.Errorf("take master key: %w", err)
	}
	k.master = gcm
	k.byID = map[int64]*dataKey{}
	if o.URL != "" {
		k.epoch = -1
	}
	return nil
}

// masterKey gives the present master key.
func (k *keyring) masterKey() cipher.AEAD {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.master
}

func (k *keyring) get(id int64) *dataKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byID[id]
}

// add keeps keys that are committed, unless the ring has become another one since
// the transaction that read them began.
func (k *keyring) add(keys map[int64]*dataKey, epoch int64) {
	if len(keys) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.epoch == epoch {
		maps.Copy(k.byID, keys)
	}
}

// Epoch is the number of the rotation or restore of another process that the ring is good
// for.
func (k *keyring) Epoch() int64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.epoch
}

// Renew begins anew with the keys of the installation that another process has
// left; on an error the ring stays as it is.
func (k *keyring) Renew(epoch int64, query database.Query) error {
	keys, err := readKeys(query, "workspace_id IS NULL")
	if err != nil {
		return err
	}
	opened := map[int64]*dataKey{}
	for _, w := range keys {
		if opened[w.id], err = w.use(k.masterKey()); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID, k.epoch = opened, epoch
	return nil
}

// forget drops all keys, and takes a new master key unless it is nil.
func (k *keyring) forget(master cipher.AEAD) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.byID)
	if master != nil {
		k.master = master
	}
}

// installation gives the key that seals texts outside of workspaces.
func (k *keyring) installation() *dataKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var newest *dataKey
	for _, key := range k.byID {
		if key.workspace == 0 && !key.retired && (newest == nil || key.id > newest.id) {
			newest = key
		}
	}
	return newest
}

// wrapPlace binds a wrapped key to its row and owner.
func wrapPlace(id, workspace int64) []byte {
	return fmt.Appendf(nil, "data_keys/%d/wrapped/%d", id, workspace)
}

// wrapped is a data key as it is stored.
type wrapped struct {
	id, workspace int64
	retired       bool
	bytes         []byte
}

// open unwraps a data key; what does not open was wrapped by another master key.
func (w wrapped) open(master cipher.AEAD) (key []byte, err error) {
	if key, err = decrypt(master, w.bytes, wrapPlace(w.id, w.workspace)); err != nil {
		return nil, ErrWrongKey
	}
	return key, nil
}

func (w wrapped) use(master cipher.AEAD) (*dataKey, error) {
	key, err := w.open(master)
	if err != nil {
		return nil, err
	}
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	return &dataKey{id: w.id, workspace: w.workspace, retired: w.retired, gcm: gcm}, nil
}

const selectKeys = "SELECT id, coalesce(workspace_id, 0), retired, wrapped FROM data_keys WHERE "

// readKeys reads wrapped keys that meet a condition.
func readKeys(query database.Query, condition string, args ...any) (found []wrapped, err error) {
	err = query(selectKeys+condition, func(c database.Cells) error {
		s := scan{cells: c}
		found = append(found, wrapped{id: s.number(), workspace: s.number(), retired: s.flag(), bytes: s.blob()})
		return nil
	}, args...)
	return found, err
}

// Check finds out whether the master key is the one of a database with tables. The
// installation's own keys are the check value: each is sealed by it.
func (k *keyring) Check(c database.Conn) error {
	keys, err := readKeys(database.Reading(c), "workspace_id IS NULL")
	for _, w := range keys {
		_, wrong := w.open(k.masterKey())
		err = errors.Join(err, wrong)
	}
	return err
}

// openInstallation opens the keys of the installation and makes the first one.
func (tx *Tx) openInstallation() error {
	keys, err := readKeys(tx.query, "workspace_id IS NULL")
	if err != nil {
		return err
	}
	opened := map[int64]*dataKey{}
	for _, w := range keys {
		if opened[w.id], err = w.use(tx.store.keys.masterKey()); err != nil {
			return err
		}
	}
	tx.keepKeys(opened)
	if len(keys) == 0 {
		_, err = tx.newDataKey(0)
	}
	return err
}

// keepKeys hands keys to the keyring when the transaction is committed.
func (tx *Tx) keepKeys(keys map[int64]*dataKey) {
	if tx.keys == nil {
		tx.keys = map[int64]*dataKey{}
	}
	maps.Copy(tx.keys, keys)
}

// newDataKey makes the key that seals the values of a workspace from now on.
func (tx *Tx) newDataKey(workspace int64) (*dataKey, error) {
	key := make([]byte, keySize)
	if _, err := io.ReadFull(tx.store.random, key); err != nil {
		return nil, fmt.Errorf("make data key: %w", err)
	}
	owner := &workspace
	if workspace == 0 {
		owner = nil
	}
	id, err := tx.insert("INSERT INTO data_keys (workspace_id, wrapped) VALUES (?, ?) RETURNING id", owner, []byte{0})
	if err != nil {
		return nil, fmt.Errorf("make data key: %w", err)
	}
	w := wrapped{id: id, workspace: workspace, bytes: encrypt(tx.store.keys.masterKey(), key, wrapPlace(id, workspace))}
	if _, err := tx.exec("UPDATE data_keys SET wrapped = ? WHERE id = ?", w.bytes, id); err != nil {
		return nil, fmt.Errorf("make data key: %w", err)
	}
	made, err := w.use(tx.store.keys.masterKey())
	if err != nil {
		return nil, err
	}
	tx.keepKeys(map[int64]*dataKey{id: made})
	return made, nil
}

// currentKey finds or makes the key that seals for a workspace.
func (tx *Tx) currentKey(workspace int64) (*dataKey, error) {
	id, err := tx.number("SELECT id FROM data_keys WHERE workspace_id = ? AND retired = 0 ORDER BY id DESC LIMIT 1", workspace)
	if err != nil {
		return nil, fmt.Errorf("read data key: %w", err)
	}
	if id == 0 {
		return tx.newDataKey(workspace)
	}
	return tx.key(id)
}

// key opens a data key by its id.
func (tx *Tx) key(id int64) (*dataKey, error) {
	if key := tx.keys[id]; key != nil {
		return key, nil
	}
	if key := tx.store.keys.get(id); key != nil {
		return key, nil
	}
	found, err := readKeys(tx.query, "id = ?", id)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read data key %d: %w", id, err)
	}
	key, err := found[0].use(tx.store.keys.masterKey())
	if err != nil {
		return nil, fmt.Errorf("open data key %d: %w", id, err)
	}
	// It is committed: the ones of this transaction stand in tx.keys.
	tx.store.keys.add(map[int64]*dataKey{id: key}, tx.epoch)
	return key, nil
}
