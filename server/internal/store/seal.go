package store

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/destkit/destkit/server/internal/store/database"
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

// place is where a sealed value stands; it opens nowhere else.
type place struct {
	table  string
	id     int64
	column string
}

func (p place) bytes() []byte { return fmt.Appendf(nil, "%s/%d/%s", p.table, p.id, p.column) }

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

// put seals a text into its column.
func (tx *Tx) put(workspace int64, at place, plain []byte) error {
	key, err := tx.currentKey(workspace)
	if err != nil {
		return err
	}
	return tx.putSealed(at, key.seal(plain, at.bytes()))
}

func (tx *Tx) putSealed(at place, sealed []byte) error {
	_, err := tx.exec("UPDATE "+at.table+" SET "+at.column+" = ? WHERE id = ?", sealed, at.id)
	if err != nil {
		return fmt.Errorf("seal %s: %w", at.bytes(), err)
	}
	return nil
}

// open reads what put has sealed; nil when there is none.
func (tx *Tx) open(at place) ([]byte, error) {
	found := false
	var sealed []byte
	err := tx.query("SELECT "+at.column+" FROM "+at.table+" WHERE id = ?", func(c database.Cells) error {
		found, sealed = true, c.Blob(0)
		return nil
	}, at.id)
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("unseal %s: %w", at.bytes(), err)
	}
	if len(sealed) == 0 {
		return nil, nil
	}
	return tx.unseal(at, sealed)
}

func (tx *Tx) unseal(at place, sealed []byte) ([]byte, error) {
	id, rest, err := keyOf(sealed)
	if err != nil {
		return nil, fmt.Errorf("unseal %s: %w", at.bytes(), err)
	}
	key, err := tx.key(id)
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

// SealText makes a token that stands for a secret text in logs; only this
// installation opens it, also after its keys were rotated. The same text gives
// another token each time.
func (s *Store) SealText(text string) (string, error) {
	key := s.keys.installation()
	if key == nil {
		return "", fmt.Errorf("seal text: %w", ErrClosed)
	}
	return SealedPrefix + base64.RawURLEncoding.EncodeToString(key.seal([]byte(text), textPlace)), nil
}

// UnsealText opens a token of SealText.
func (s *Store) UnsealText(token string) (string, error) {
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
	key := s.keys.get(id)
	if key == nil || key.workspace != 0 {
		return "", errors.New("unseal text: it was sealed by another installation")
	}
	plain, err := decrypt(key.gcm, rest, textPlace)
	if err != nil {
		return "", errors.New("unseal text: it was changed, or sealed by another installation")
	}
	return string(plain), nil
}
