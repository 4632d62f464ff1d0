package serve

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server"
)

// rotation holds the flags of `destkit serve rotate-key`.
type rotation struct {
	stopped
	newFile  string
	dataKeys bool
}

// newRotateKey puts another master key into force.
func newRotateKey() *cobra.Command {
	var r rotation
	cmd := &cobra.Command{
		Use:   "rotate-key",
		Short: "Put another master key into force, and seal every secret anew",
		Long: `Put another master key into force for a data directory, with new keys for the
secrets in it. The old key opens the directory no more; earlier backups and
snapshots still need it, so it is kept.

With --new-key-file the new key is read from that file, or made there when it
does not exist. Without it the key file in use gets a new key, and the old one
stays beside it under the name FILE.old.

With --data-keys the master key stays.`,
		Example: "  destkit serve rotate-key --data ./data\n  destkit serve rotate-key --data ./data \\\n      --key-file old.key --new-key-file new.key",
		Args:    command.Arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.with(cmd.Context(), "rotate-key", func(s *server.Maintenance, old masterKey) error {
				return r.run(cmd, s, old)
			})
		},
	}
	r.register(cmd)
	cmd.Flags().StringVar(&r.newFile, "new-key-file", "", "`FILE` with the new key; made when it does not exist")
	cmd.Flags().BoolVar(&r.dataKeys, "data-keys", false, "seal every secret anew, under the master key that is in force")
	cmd.MarkFlagsMutuallyExclusive("new-key-file", "data-keys")
	return cmd
}

// run seals the data keys under the new master key, then makes new data keys.
// Whatever breaks it off, one of the two key files opens the directory.
func (r *rotation) run(cmd *cobra.Command, s *server.Maintenance, old masterKey) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if r.dataKeys {
		if err := s.RotateDataKeys(ctx); err != nil {
			return exit.Untested(err)
		}
		foreign.Printf(out, "%s is sealed anew\n", r.dir)
		return nil
	}
	if r.newFile == "" && old.file == "" {
		return exit.Usagef("the key comes from %s, where a new one cannot be put; name a --new-key-file", command.MasterKeyVariable)
	}
	next, err := r.next(old)
	if err != nil {
		return err
	}
	// One transaction: either key opens all of it.
	if err := s.RotateKey(ctx, next.Bytes); err != nil {
		return exit.Untested(errors.Join(err, r.discard(next)))
	}
	// From here on only the new key opens the directory, so every way out
	// names its place.
	if err := r.settle(out, old, next); err != nil {
		return err
	}
	if err := s.RotateDataKeys(ctx); err != nil {
		return exit.Untested(fmt.Errorf("%w; the new master key is in force, run rotate-key again for new data keys", err))
	}
	foreign.Printf(out, "%s is sealed anew\n", r.dir)
	return nil
}

// next reads or makes the new key. Without --new-key-file it is made next to
// the present one.
func (r *rotation) next(old masterKey) (masterKey, error) {
	if r.newFile == "" {
		// Next to the old one, so that a rename puts it into force.
		file := old.file + ".new"
		key, err := MakeKeyFile(file)
		if errors.Is(err, fs.ErrExist) {
			err = exit.Usagef("%s is there from a rotation that was broken off: if it opens the directory (--key-file), keep it as your key, else delete it", file)
		}
		return key, err
	}
	if err := refuseWithin(r.newFile, r.dir); err != nil {
		return masterKey{}, err
	}
	if _, err := os.Stat(r.newFile); errors.Is(err, fs.ErrNotExist) {
		return MakeKeyFile(r.newFile)
	}
	key, err := readKeyFile(r.newFile)
	if err == nil && string(key.Bytes) == string(old.Bytes) {
		err = exit.Usagef("%s holds the key that is in force already", r.newFile)
	}
	return key, err
}

// discard deletes a key that was made and is not in force.
func (r *rotation) discard(next masterKey) error {
	if next.made == "" {
		return nil
	}
	return os.Remove(next.made)
}

// settle puts the new key where the old one was, unless it has its own file.
func (r *rotation) settle(out io.Writer, old, next masterKey) error {
	if r.newFile != "" {
		foreign.Printf(out, "the new master key is in %s; start the service with it\n", next.file)
		return nil
	}
	// The old key first gets its second name: it must never be lost.
	kept, err := keep(old.file)
	if err == nil {
		err = os.Rename(next.file, old.file)
	}
	if err != nil {
		return exit.Untested(fmt.Errorf("put the new key in its place: %w; the key in force is %s", err, next.file))
	}
	foreign.Printf(out, "the new master key is in %s\nthe old one is in %s; earlier backups, and other directories sealed with it, need it\n", old.file, kept)
	return nil
}

// keep gives a file a second name that is free; the first stays until it is
// replaced, so that there is a key at every moment.
func keep(file string) (name string, err error) {
	for n := 1; ; n++ {
		name = file + ".old"
		if n > 1 {
			name = fmt.Sprintf("%s.old%d", file, n)
		}
		if err = os.Link(file, name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}
