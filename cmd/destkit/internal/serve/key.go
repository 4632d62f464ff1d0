package serve

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server"
)

// keySize is the length of a master key in bytes (AES-256).
const keySize = 32

// keySource is the source of the master key.
type keySource struct{ file string }

func (k *keySource) register(f *pflag.FlagSet) {
	f.StringVar(&k.file, "key-file", "", "`FILE` with the master key, readable by you alone")
}

// masterKey is a key with the place that it came from.
type masterKey struct {
	Bytes []byte
	from  string // for messages
	file  string // "" when it came from the environment
	made  string // the file, when this start has made it
}

// open finds the master key of a data directory ("" is a service in memory, which needs
// it for a restore only). It makes one for a directory that holds no data yet, and for no
// other: a new key could open nothing there.
func (k *keySource) open(dir string, restore bool) (masterKey, error) {
	// A key that was named is the only one that is tried.
	key, err := k.given(dir)
	if err != nil || key.Bytes != nil || dir == "" && !restore {
		return key, err
	}
	file, err := defaultKeyFile()
	if err != nil {
		return key, err
	}
	if err := refuseWithin(file, dir); err != nil {
		return key, err
	}
	key, err = readKeyFile(file)
	switch {
	case err == nil:
		return key, nil
	case !errors.Is(err, fs.ErrNotExist):
		return key, err
	// A new key could not open what the file holds.
	case restore:
		return key, exit.Usagef("--restore needs the master key of the service that it came from: set %s or --key-file", command.MasterKeyVariable)
	case server.HoldsData(dir):
		return key, exit.Usagef("%s was sealed with a master key that is not here: set %s or --key-file (looked for %s)", dir, command.MasterKeyVariable, file)
	}
	return MakeKeyFile(file)
}

// given reads the key that the caller has named; without bytes when none was.
func (k *keySource) given(dir string) (masterKey, error) {
	text := os.Getenv(command.MasterKeyVariable)
	switch {
	case k.file != "" && text != "":
		return masterKey{}, exit.Usagef("--key-file and %s are both set; leave one out", command.MasterKeyVariable)
	case k.file != "":
		if err := refuseWithin(k.file, dir); err != nil {
			return masterKey{}, err
		}
		return readKeyFile(k.file)
	case text != "":
		bytes, err := parseKey(text)
		if err != nil {
			return masterKey{}, exit.Usagef("%s: %w", command.MasterKeyVariable, err)
		}
		return masterKey{Bytes: bytes, from: command.MasterKeyVariable}, nil
	}
	return masterKey{}, nil
}

// parseKey reads 64 hex digits, or base64 of 32 bytes. Errors never show it.
func parseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	// Of 32 bytes: other lengths are a slip, and not a weaker key.
	if key, err := hex.DecodeString(text); err == nil && len(key) == keySize {
		return key, nil
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := encoding.DecodeString(text); err == nil && len(key) == keySize {
			return key, nil
		}
	}
	return nil, errors.New("a master key is 64 hex digits, or base64 of 32 bytes; 'openssl rand -hex 32' makes one")
}

// readKeyFile reads a key that no other user can read.
func readKeyFile(file string) (masterKey, error) {
	info, err := os.Stat(file)
	if err != nil {
		return masterKey{}, exit.Usagef("read key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return masterKey{}, exit.Usagef("the key file %s is no regular file", file)
	}
	// Also the owner's right to execute, which no key needs.
	if open := info.Mode().Perm() &^ 0o600; open != 0 {
		return masterKey{}, exit.Usagef("the key file %s can be read by others (mode %04o); run: chmod 600 %s", file, info.Mode().Perm(), file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return masterKey{}, exit.Usagef("read key file: %w", err)
	}
	key, err := parseKey(string(text))
	if err != nil {
		return masterKey{}, exit.Usagef("key file %s: %w", file, err)
	}
	return masterKey{Bytes: key, from: file, file: file}, nil
}

// rotated is the file of the new key where a rotation has left one, "" where it has not.
func (k masterKey) rotated() string {
	file := k.file + ".new"
	if _, err := os.Stat(file); k.file == "" || err != nil {
		return ""
	}
	return file
}

// MakeKeyFile makes a key; the file must not exist.
func MakeKeyFile(file string) (masterKey, error) {
	key := masterKey{Bytes: make([]byte, keySize), from: file, file: file, made: file}
	if _, err := rand.Read(key.Bytes); err != nil {
		return masterKey{}, exit.Untested(fmt.Errorf("make master key: %w", err))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return masterKey{}, exit.Usagef("make folder of the master key: %w", err)
	}
	// Never over a key that is there: its sealed data would be lost.
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return masterKey{}, exit.Usagef("write master key: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(key.Bytes) + "\n")
	// On disk before anything is sealed with it.
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return masterKey{}, exit.Untested(errors.Join(fmt.Errorf("write master key: %w", err), os.Remove(file)))
	}
	return key, nil
}

// defaultKeyFile is where a key is made when none was named.
func defaultKeyFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", exit.Usagef("no configuration folder for the master key (%w); set %s or --key-file", err, command.MasterKeyVariable)
	}
	return filepath.Join(dir, "destkit", "master.key"), nil
}

// refuseWithin refuses a key within the data directory: who copies the directory
// would copy the key with it.
func refuseWithin(file, dir string) error {
	if dir == "" {
		return nil
	}
	within, err := filepath.Rel(resolved(dir), resolved(file))
	if err != nil || within == ".." || strings.HasPrefix(within, ".."+string(filepath.Separator)) {
		return nil // on another volume, or above
	}
	return exit.Usagef("the master key %s must not lie in the data directory %s; move it or set %s", file, dir, command.MasterKeyVariable)
}

// resolved follows links as far as the path exists.
func resolved(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolved(parent), filepath.Base(path))
}

// newUnseal opens what logs show of a destination's URL.
func newUnseal() *cobra.Command {
	var s stopped
	cmd := &cobra.Command{
		Use:   "unseal TOKEN",
		Short: "Show the secret behind a sealed token of a log",
		Long: `Logs show a secret, such as the URL of a custom destination, as a token that
begins with ` + server.SealedPrefix + `. Print what it stands for. It takes the data directory that
wrote the log, and its master key. What stands before the token, as in
https://host/` + server.SealedPrefix + `…, is ignored.`,
		Example: "  destkit serve unseal " + server.SealedPrefix + "AAAA… --data ./data",
		Args:    command.Arguments(1, 1, "the sealed token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			token := args[0]
			if at := strings.Index(token, server.SealedPrefix); at > 0 {
				token = token[at:]
			}
			return s.with(cmd.Context(), "unseal", func(m *server.Maintenance, _ masterKey) error {
				text, err := m.Unseal(token)
				if err != nil {
					return exit.Usage(err)
				}
				foreign.Print(foreign.Raw(cmd.OutOrStdout()), text+"\n") // the value itself, to be used
				return nil
			})
		},
	}
	s.register(cmd)
	return cmd
}
