package server

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/store"
)

// filesFolder is what local_files destinations write, below the data directory.
const filesFolder = "files"

// reached is what somebody who may use the API may reach through this service.
type reached struct {
	network reach.Network
	files   *reach.Files
}

// newReached reads the configuration.
func newReached(s *Server) (reached, error) {
	r := reached{network: reach.Network{DenyLoopback: s.config.DenyLoopback, Own: s.config.Listeners}}
	for _, text := range s.config.AllowHosts {
		host, err := reach.ParseHost(text)
		if err != nil {
			return r, fmt.Errorf("read hosts to allow: %w", err)
		}
		r.network.Hosts = append(r.network.Hosts, host)
	}
	// What local_files destinations wrote below the data directory is theirs to read.
	var lent []string
	for _, dir := range s.config.dirs {
		lent = append(lent, filepath.Join(dir, filesFolder))
	}
	r.files = &reach.Files{
		Private: s.config.Private, Kept: s.config.dirs, Lent: lent,
		Folders: func() ([]reach.Folder, error) { return s.openFolders(lent) },
		Secret:  s.secretContent(), Database: store.ApplicationID,
	}
	return r, nil
}

// CheckHost says what is wrong with an entry of Config.AllowHosts.
func CheckHost(text string) error {
	_, err := reach.ParseHost(text)
	return err
}

// openFolders are the folders that sources and local_files destinations may open
// now.
func (s *Server) openFolders(own []string) ([]reach.Folder, error) {
	var folders []reach.Folder
	given := s.config.AllowFiles
	if given == nil {
		given = own
	}
	for _, path := range given {
		folders = append(folders, reach.Folder{Path: path})
	}
	if s.config.AllowFiles != nil || s.config.WorkFolder == "" {
		return folders, nil
	}
	var others bool
	err := s.store.View(s.background.Ctx, func(tx *store.Tx) (err error) {
		others, err = organizations.HasOthers(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for organizations of others: %w", err)
	}
	if !others {
		folders = append(folders, reach.Folder{Path: s.config.WorkFolder, Plain: true})
	}
	return folders, nil
}

// shortest is how long a secret is at least that is looked for within a file; a
// shorter one must be all that the file holds.
const shortest = 16

// secretContent knows files that hold secrets of the service by what stands at
// their beginning, so that a copy under another name is none the less withheld.
func (s *Server) secretContent() func(head []byte, size int64) bool {
	var secrets [][]byte
	know := func(text string) {
		if text != "" {
			secrets = append(secrets, []byte(text))
		}
	}
	for _, text := range []string{s.config.SMTP.Password, s.config.StorePassword, s.config.ControlToken, s.config.PersonalAccessToken, s.config.WorkspaceAPIKey} {
		know(text)
	}
	if key := s.config.MasterKey; len(key) > 0 {
		secrets = append(secrets, key)
		know(hex.EncodeToString(key))
		know(strings.ToUpper(hex.EncodeToString(key)))
		know(base64.RawStdEncoding.EncodeToString(key))
		know(base64.RawURLEncoding.EncodeToString(key))
	}
	return func(head []byte, size int64) bool {
		if storeFile(head) || archive.Is(head) || bytes.Contains(head, []byte("PRIVATE KEY-----")) {
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

// looksLikeKey reports whether a text is a master key and nothing else, of which
// service ever.
func looksLikeKey(text []byte) bool {
	if key, err := hex.DecodeString(string(text)); err == nil && len(key) == masterKeySize {
		return true
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := encoding.DecodeString(string(text)); err == nil && len(key) == masterKeySize {
			return true
		}
	}
	return false
}

// storeFile knows the database of a service, or a backup of one, by its header
// (https://sqlite.org/fileformat2.html#the_database_header).
func storeFile(head []byte) bool {
	const magic, place = "SQLite format 3\x00", 68
	return len(head) >= place+4 && string(head[:len(magic)]) == magic && binary.BigEndian.Uint32(head[place:]) == store.ApplicationID
}
