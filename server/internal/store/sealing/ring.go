// Package sealing owns the secrets in a store: values that are sealed with AES-256-GCM
// under data keys, the data keys, which are wrapped by the master key, and the rotation of
// both. It leaves it to the store which columns are sealed, and to run the statements.
package sealing

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// dataKey seals the values of one workspace, or of the installation.
type dataKey struct {
	id        int64
	workspace int64 // 0: the installation
	retired   bool  // opens only
	gcm       cipher.AEAD
}

// Ring keeps the opened data keys. A key never changes under its id, so a key that is read once
// stays right until a rotation or a restore empties the ring.
type Ring struct {
	mu     sync.RWMutex
	master cipher.AEAD
	random io.Reader
	byID   map[int64]*dataKey
}

// KeySize is the length of a key in bytes (AES-256).
const KeySize = 32

// ErrWrongKey means that a data key was wrapped by another master key.
var ErrWrongKey = errors.New("wrong master key")

// Master is a master key.
type Master struct{ gcm cipher.AEAD }

// NewMaster takes a key of KeySize bytes.
func NewMaster(key []byte) (Master, error) {
	gcm, err := newGCM(key)
	return Master{gcm}, err
}

func newGCM(key []byte) (cipher.AEAD, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("a key has %d bytes, not %d", KeySize, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// NewRing makes an empty ring. Data keys are made of what random gives.
func NewRing(master Master, random io.Reader) *Ring {
	return &Ring{master: master.gcm, random: random, byID: map[int64]*dataKey{}}
}

// masterKey gives the present master key.
func (r *Ring) masterKey() cipher.AEAD {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.master
}

func (r *Ring) get(id int64) *dataKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

// add keeps keys that are committed.
func (r *Ring) add(keys map[int64]*dataKey) {
	if len(keys) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.byID, keys)
}

// Forget drops all keys, after a rotation or a restore.
func (r *Ring) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.byID)
}

// Replace drops all keys, and takes a new master key.
func (r *Ring) Replace(master Master) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.byID)
	r.master = master.gcm
}

// installation gives the key that seals texts outside of workspaces.
func (r *Ring) installation() *dataKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var newest *dataKey
	for _, key := range r.byID {
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

// open unwraps a data key; one that does not open was wrapped by another master key.
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
func readKeys(query sqlite.Query, condition string, args ...any) (found []wrapped, err error) {
	err = query(selectKeys+condition, func(c sqlite.Row) error {
		id, _ := c.Number(0)
		workspace, _ := c.Number(1)
		retired, _ := c.Number(2)
		found = append(found, wrapped{id: id, workspace: workspace, retired: retired != 0, bytes: c.Blob(3)})
		return nil
	}, args...)
	return found, err
}

// Check finds out whether the master key is the one of a database with tables. The
// installation's own keys are the check value: each is sealed by it.
func (r *Ring) Check(c *sqlite.Conn) error {
	keys, err := readKeys(c.Query, "workspace_id IS NULL")
	for _, w := range keys {
		_, wrong := w.open(r.masterKey())
		err = errors.Join(err, wrong)
	}
	return err
}
