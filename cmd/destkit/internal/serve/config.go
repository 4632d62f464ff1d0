package serve

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server"
)

// resolve reads the tokens and the files that flags name, and refuses what does
// not go together.
func (s *Flags) resolve(cmd *cobra.Command) (err error) {
	s.Config.Dialect = server.Dialect(s.dialect)
	s.Config.Version = command.ReadBuild().Version
	switch {
	case s.Config.Dialect != server.DialectSpec && s.Config.Dialect != server.DialectLive:
		return exit.Usagef("--dialect %q is neither spec nor live", s.dialect)
	// A seed makes its own organization; after a restore it would be one too
	// many, or collide.
	case s.seed != "" && s.restore != "":
		return exit.Usagef("--seed and --restore exclude each other; seed the restored service by POST /_control/seed")
	}
	if err := checkFolder(s.Config.Dir); err != nil {
		return err
	}
	for _, deadline := range []struct {
		flag string
		d    time.Duration
	}{
		{"request-timeout", s.Config.CallTimeout}, {"batch-timeout", s.Config.BatchTimeout},
		{"connect-timeout", s.Config.ConnectTimeout}, {"webhook-timeout", s.Config.WebhookTimeout},
	} {
		if deadline.d <= 0 {
			return exit.Usagef("--%s must be longer than nothing, not %s", deadline.flag, deadline.d)
		}
	}
	if s.Config.MaxRow < 1 {
		return exit.Usagef("--max-row must be above 0, not %d", s.Config.MaxRow)
	}
	// A person watches a terminal; elsewhere lines are wanted on request only.
	s.Config.Requests = cmd.Flags().Changed("log-level") || command.Is(cmd.ErrOrStderr())
	if s.Config.Log, err = logger(cmd.ErrOrStderr(), s.level, s.format); err != nil {
		return err
	}
	if s.Config.PersonalAccessToken, err = command.OptionalSecret(command.AccessTokenVariable); err != nil {
		return err
	}
	if s.Config.WorkspaceAPIKey, err = command.OptionalSecret(command.WorkspaceKeyVariable); err != nil {
		return err
	}
	if key := s.Config.WorkspaceAPIKey; key != "" && key == s.Config.PersonalAccessToken {
		return exit.Usagef("%s and %s hold the same value: each call would be one of the workspace; give two", command.AccessTokenVariable, command.WorkspaceKeyVariable)
	}
	if s.Config.ControlToken, err = (&command.TokenFlag{Name: "control-token-env", Variable: s.control}).Read(); err != nil {
		return err
	}
	return s.readAuthorities()
}

// readAuthorities reads --destination-ca.
func (s *Flags) readAuthorities() error {
	if s.destinationCA == "" {
		return nil
	}
	pem, err := os.ReadFile(s.destinationCA)
	if err != nil {
		return exit.Usagef("read --destination-ca: %w", err)
	}
	// Here and not at the first call, which would fail by an unknown authority.
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return exit.Usagef("--destination-ca %s holds no certificate in PEM form", s.destinationCA)
	}
	s.Config.Trusted = pem
	return nil
}

// openWorld is a service with the simulators behind its emulated destinations.
type openWorld struct {
	*server.Server
	simulators *simulators
}

// Close ends the service first: it may still call the simulators.
func (w *openWorld) Close() error {
	return errors.Join(w.Server.Close(), w.simulators.Close())
}

// Open opens the service.
func (s *Flags) Open(ctx context.Context, key masterKey) (*openWorld, error) {
	if s.restore != "" {
		// Before the store: a missing file leaves no directory behind.
		from, err := os.Open(s.restore)
		if err != nil {
			return nil, exit.Usagef("read --restore: %w", err)
		}
		defer from.Close()
		s.Config.Restore = from
	}
	s.Config.Private = s.private(key) // who may make a source must not read them
	sims := newSimulators(s.Config.Dir)
	s.Config.Emulate = sims.emulate
	world, err := server.New(ctx, s.Config)
	if err != nil {
		// Under --restore the file is what the key does not open.
		err = dataError(cmp.Or(s.restore, s.Config.Dir), key, err)
		if s.restore != "" { // mostly the file is no good
			err = exit.Usage(fmt.Errorf("restore %s: %w", s.restore, err))
		}
		return nil, errors.Join(err, sims.Close())
	}
	return &openWorld{world, sims}, nil
}

// dataError words why a store, or the file to restore, could not be opened, with
// the way out.
func dataError(place string, key masterKey, err error) error {
	var owned *server.InUseError
	switch {
	case errors.As(err, &owned):
		return exit.Untested(fmt.Errorf("open %s: %w; stop that process first", place, owned))
	case errors.Is(err, server.ErrWrongKey) && key.rotated() != "":
		return exit.Usagef("the master key in %s does not open %s; a rotation was broken off, and %s has the new key: use it with --key-file", key.from, place, key.rotated())
	case errors.Is(err, server.ErrWrongKey):
		return exit.Usagef("the master key in %s does not open %s; set %s or --key-file to the key that it was sealed with", key.from, place, command.MasterKeyVariable)
	case errors.Is(err, server.ErrHasData):
		return exit.Usagef("--restore needs a new --data directory: this one holds data already")
	case errors.Is(err, server.ErrDamaged):
		return exit.Untested(fmt.Errorf("%w: destkit serve --data NEW --restore BACKUP", err))
	case errors.Is(err, server.ErrUnfit), errors.Is(err, server.ErrLedger):
		return exit.Usage(err)
	}
	return exit.Untested(err)
}

// seedMark is left in a data directory once its seed is in.
const seedMark = "seeded"

// readSeed reads --seed; nil when there is none, or when the directory had one.
func (s *Flags) readSeed() ([]byte, error) {
	if s.seed == "" {
		return nil, nil
	}
	if s.Config.Dir != "" {
		// A restart with the same flags must not seed twice.
		if _, err := os.Stat(filepath.Join(s.Config.Dir, seedMark)); err == nil {
			return nil, nil
		}
	}
	src, err := os.ReadFile(s.seed)
	if err != nil {
		return nil, exit.Usagef("read --seed: %w", err)
	}
	// Now, and not only when it is put in: a slip in it must not leave a data
	// directory behind that holds half of what was wanted.
	if err := server.CheckSeed(s.seed, src); err != nil {
		return nil, exit.Usagef("seed: %w", err)
	}
	return src, nil
}

// plant seeds the service and shows the result.
func (s *Flags) plant(ctx context.Context, out io.Writer, world *openWorld, src []byte) error {
	if s.seed == "" {
		return nil
	}
	if src == nil {
		foreign.Printf(out, "not seeded: %s had its seed before; POST /_control/seed adds another\n", s.Config.Dir)
		return nil
	}
	seeded, err := world.Seed(ctx, s.seed, src)
	if err != nil {
		return exit.Usage(fmt.Errorf("seed: %w", err))
	}
	for i := range seeded.Organizations {
		for j := range seeded.Organizations[i].Workspaces {
			// A seed of the first organization shows its key, which may be the
			// caller's own.
			if w := &seeded.Organizations[i].Workspaces[j]; w.APIKey != "" && w.APIKey == s.Config.WorkspaceAPIKey {
				w.APIKey = "the one in " + command.WorkspaceKeyVariable
			}
		}
	}
	foreign.Println(out, "seeded:")
	if err := command.PrintJSON(out, seeded); err != nil {
		return err
	}
	if s.Config.Dir == "" {
		return nil
	}
	// After the seed: one that was broken off is tried again.
	if err := os.WriteFile(filepath.Join(s.Config.Dir, seedMark), []byte(filepath.Base(s.seed)+"\n"), 0o600); err != nil {
		return exit.Untested(fmt.Errorf("note that %s is in: %w", s.seed, err))
	}
	return nil
}

// checkFolder refuses a data directory that is none, or that cannot be read, before
// anything is made in it. One that is not there yet is made later.
func checkFolder(dir string) error {
	if dir == "" {
		return nil
	}
	for above := dir; ; above = filepath.Dir(above) {
		if info, err := os.Stat(above); err == nil && !info.IsDir() {
			return exit.Usagef("--data %s: %s is a file; give a folder", dir, above)
		} else if err == nil || above == filepath.Dir(above) {
			break
		}
	}
	switch _, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrPermission):
		return exit.Usagef("--data %s: this user has no permission to read the folder; give another, or change its permissions", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("--data %s: the folder cannot be read: %w", dir, err)
	}
	return nil
}
