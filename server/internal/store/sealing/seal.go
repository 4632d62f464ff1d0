package sealing

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// A sealed value is a format byte, the id of its data key (8 bytes), and what
// encrypt made of the text.
const sealFormat = 1

const sealHead = 1 + 8

// encrypt gives a random nonce and the text sealed under it.
func encrypt(gcm cipher.AEAD, plain, place []byte) []byte {
	nonce := make([]byte, gcm.NonceSize(), gcm.NonceSize()+len(plain)+gcm.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return gcm.Seal(nonce, nonce, plain, place)
}

var errSealed = errors.New("the sealed value does not open")

func decrypt(gcm cipher.AEAD, sealed, place []byte) ([]byte, error) {
	if len(sealed) < gcm.NonceSize() {
		return nil, errSealed
	}
	plain, err := gcm.Open(nil, sealed[:gcm.NonceSize()], sealed[gcm.NonceSize():], place)
	if err != nil {
		return nil, errSealed
	}
	return plain, nil
}

// Place is the location of a sealed value; it opens nowhere else.
type Place struct {
	Table  string
	ID     int64
	Column string
}

func (p Place) bytes() []byte { return fmt.Appendf(nil, "%s/%d/%s", p.Table, p.ID, p.Column) }

func (k *dataKey) seal(plain, place []byte) []byte {
	head := binary.BigEndian.AppendUint64([]byte{sealFormat}, uint64(k.id))
	return append(head, encrypt(k.gcm, plain, place)...)
}

// keyOf reads which data key a sealed value needs.
func keyOf(sealed []byte) (id int64, rest []byte, err error) {
	if len(sealed) < sealHead || sealed[0] != sealFormat {
		return 0, nil, errSealed
	}
	return int64(binary.BigEndian.Uint64(sealed[1:sealHead])), sealed[sealHead:], nil
}

// Put seals a text into its column.
func (k *Keys) Put(workspace int64, at Place, plain []byte) error {
	key, err := k.currentKey(workspace)
	if err != nil {
		return err
	}
	return k.putSealed(at, key.seal(plain, at.bytes()))
}

func (k *Keys) putSealed(at Place, sealed []byte) error {
	_, err := k.db.Exec("UPDATE "+at.Table+" SET "+at.Column+" = ? WHERE id = ?", sealed, at.ID)
	if err != nil {
		return fmt.Errorf("seal %s: %w", at.bytes(), err)
	}
	return nil
}

// Open reads what Put has sealed; nil when there is none.
func (k *Keys) Open(at Place) ([]byte, error) {
	found := false
	var sealed []byte
	err := k.db.Query("SELECT "+at.Column+" FROM "+at.Table+" WHERE id = ?", func(c sqlite.Row) error {
		found, sealed = true, c.Blob(0)
		return nil
	}, at.ID)
	if err == nil && !found {
		err = sqlite.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("unseal %s: %w", at.bytes(), err)
	}
	if len(sealed) == 0 {
		return nil, nil
	}
	return k.unseal(at, sealed)
}

func (k *Keys) unseal(at Place, sealed []byte) ([]byte, error) {
	id, rest, err := keyOf(sealed)
	if err != nil {
		return nil, fmt.Errorf("unseal %s: %w", at.bytes(), err)
	}
	key, err := k.key(id)
	if err != nil {
		return nil, fmt.Errorf("unseal %s: %w", at.bytes(), err)
	}
	plain, err := decrypt(key.gcm, rest, at.bytes())
	if err != nil {
		return nil, fmt.Errorf("unseal %s: %w", at.bytes(), err)
	}
	return plain, nil
}

// SealedPrefix begins every text that SealText made.
const SealedPrefix = "sealed:"

var textPlace = []byte("text")

// SealText makes a token that represents a secret text in logs; only this
// installation opens it, also after its keys were rotated. The same text gives
// another token each time.
func (r *Ring) SealText(text string) (string, error) {
	key := r.installation()
	if key == nil {
		return "", fmt.Errorf("seal text: %w", sqlite.ErrClosed)
	}
	return SealedPrefix + base64.RawURLEncoding.EncodeToString(key.seal([]byte(text), textPlace)), nil
}

// UnsealText opens a token of SealText.
func (r *Ring) UnsealText(token string) (string, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(token), SealedPrefix)
	if !ok {
		return "", fmt.Errorf("unseal text: it does not begin with %s", SealedPrefix)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return "", errors.New("unseal text: it is not whole")
	}
	id, rest, err := keyOf(sealed)
	if err != nil {
		return "", fmt.Errorf("unseal text: %w", err)
	}
	key := r.get(id)
	if key == nil || key.workspace != 0 {
		return "", errors.New("unseal text: it was sealed by another installation")
	}
	plain, err := decrypt(key.gcm, rest, textPlace)
	if err != nil {
		return "", errors.New("unseal text: it was changed, or sealed by another installation")
	}
	return string(plain), nil
}
