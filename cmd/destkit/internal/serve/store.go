package serve

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/server"
)

// storePlace says where a service keeps what it has: in a data directory, or in
// PostgreSQL.
type storePlace struct {
	dir, url, password string
}

// register adds --store, with what it is for; the commands word --data themselves.
func (p *storePlace) register(f *pflag.FlagSet, does string) {
	f.StringVar(&p.url, "store", "", does+", `URL` postgres://USER@HOST:PORT/DATABASE?search_path=SCHEMA (password: "+command.StorePasswordVariable+"; schema: "+server.DefaultSchema+")")
}

// resolve reads the password and refuses a URL that cannot be meant. The URL is
// never shown again with a password in it.
func (p *storePlace) resolve() (err error) {
	if p.url == "" {
		return checkFolder(p.dir)
	}
	if p.password, err = command.OptionalSecret(command.StorePasswordVariable); err != nil {
		return err
	}
	if _, err := p.at().Schema(); err != nil {
		return exit.Usagef("--store: %w", err)
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

// at is the place as the service takes it.
func (p *storePlace) at() server.Place {
	return server.Place{Dir: p.dir, Store: p.url, StorePassword: p.password}
}

// holds reports whether the store was used before: then it has a master key.
func (p *storePlace) holds(ctx context.Context) (bool, error) {
	held, err := p.at().Holds(ctx)
	if err != nil {
		return false, dataError(p.String(), masterKey{}, err)
	}
	return held, nil
}

// none tells that nothing is kept beyond the end of the process.
func (p *storePlace) none() bool { return p.dir == "" && p.url == "" }

// String names the place in messages, without a password.
func (p *storePlace) String() string {
	if p.url == "" {
		return p.dir
	}
	u, err := url.Parse(p.url)
	if err != nil {
		return "the store"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String()
}

// flag is the place as a flag of the other commands.
func (p *storePlace) flag() string {
	if p.url == "" {
		return "--data " + p.dir
	}
	return "--store '" + p.String() + "'"
}

// errNoPlace says that a command needs to know the store.
var errNoPlace = errors.New("needs --data DIR or --store URL")
