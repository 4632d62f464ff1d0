package withheld

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// keySize is the length of a master key in bytes (AES-256).
const keySize = 32

// shortest is how long a secret is at least that is looked for within a file; a
// shorter one must be all that the file holds.
const shortest = 16

// secretContent recognizes files with secrets of the service by their
// beginning, so that a copy under another name is withheld, too.
func secretContent(texts []string, masterKey []byte) func(head []byte, size int64) bool {
	var secrets [][]byte
	know := func(text string) {
		if text != "" {
			secrets = append(secrets, []byte(text))
		}
	}
	for _, text := range texts {
		know(text)
	}
	if len(masterKey) > 0 {
		secrets = append(secrets, masterKey)
		know(hex.EncodeToString(masterKey))
		know(strings.ToUpper(hex.EncodeToString(masterKey)))
		know(base64.RawStdEncoding.EncodeToString(masterKey))
		know(base64.RawURLEncoding.EncodeToString(masterKey))
	}
	return func(head []byte, size int64) bool {
		if storeFile(head) || snapshotFile(head) || bytes.Contains(head, []byte("PRIVATE KEY-----")) {
			return true
		}
		whole := bytes.TrimSpace(head)
		if size <= int64(len(head)) && looksLikeKey(whole) {
			return true
		}
		for _, secret := range secrets {
			if bytes.Equal(whole, secret) || len(secret) >= shortest && bytes.Contains(head, secret) {
				return true
			}
		}
		return false
	}
}

// snapshotFile knows a snapshot: a tar stream that begins with meta.json.
func snapshotFile(head []byte) bool {
	const name, magic, place = 100, "ustar", 257
	return len(head) >= place+len(magic) && string(head[place:place+len(magic)]) == magic && bytes.Contains(head[:name], []byte(archive.PartMeta))
}

// looksLikeKey reports whether a text is a master key and nothing else, of which
// service ever.
func looksLikeKey(text []byte) bool {
	if key, err := hex.DecodeString(string(text)); err == nil && len(key) == keySize {
		return true
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := encoding.DecodeString(string(text)); err == nil && len(key) == keySize {
			return true
		}
	}
	return false
}

// storeFile knows the database of a service, or a backup of one, by its header
// (https://sqlite.org/fileformat2.html#the_database_header).
func storeFile(head []byte) bool {
	const magic, place = "SQLite format 3\x00", 68
	return len(head) >= place+4 && string(head[:len(magic)]) == magic && binary.BigEndian.Uint32(head[place:]) == sqlite.ApplicationID
}
