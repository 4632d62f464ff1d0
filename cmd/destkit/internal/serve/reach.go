package serve

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/server"
)

// reachFlags narrow what who may use the API reaches through the service: which
// files and which addresses.
type reachFlags struct{ files []string }

func (r *reachFlags) register(f *pflag.FlagSet, config *server.Config) {
	f.StringArrayVar(&r.files, "allow-files", nil, "`DIR` that sources and local_files may open, with all below it (repeatable; default: files/ in --data; on loopback, without organizations of others, this folder, too)")
	f.StringSliceVar(&config.AllowHosts, "allow-hosts", nil, "`HOST`: may be called: NAME, *.NAME, an address or a range, each also with :PORT (repeatable; default: all)")
	f.BoolVar(&config.DenyLoopback, "deny-loopback", false, "call no loopback address and no Unix socket")
}

// resolve checks the flags before anything is opened.
func (r *reachFlags) resolve(config *server.Config) error {
	if err := config.CheckHosts(); err != nil {
		return exit.Usagef("--allow-hosts %w", err)
	}
	for _, dir := range r.files {
		info, err := os.Stat(dir)
		switch {
		case err != nil:
			return exit.Usagef("read --allow-files: %w", err)
		case !info.IsDir():
			return exit.Usagef("--allow-files %s is no folder; name the one that holds the file", dir)
		}
		// The meaning of a relative path must not change with the working directory.
		if dir, err = filepath.Abs(dir); err != nil {
			return exit.Usagef("read --allow-files: %w", err)
		}
		config.AllowFiles = append(config.AllowFiles, dir)
	}
	return nil
}

// private are the files of a service that hold secrets. The key in the
// configuration folder is one also where another one is in force.
func (s *Flags) private(key masterKey) (files []string) {
	own, err := defaultKeyFile()
	if err != nil {
		own = ""
	}
	for _, file := range []string{key.file, s.key.file, own, s.mail.passwordFile, s.seed, s.restore} {
		if file != "" {
			files = append(files, file)
		}
	}
	return files
}

// ListensAt informs the service where it is served. What it may open by
// default depends on who gets there.
func (r *reachFlags) ListensAt(config *server.Config, at net.Addr) error {
	tcp, ok := at.(*net.TCPAddr)
	if !ok {
		return nil
	}
	here := tcp.AddrPort()
	config.Listeners = []netip.AddrPort{netip.AddrPortFrom(here.Addr().Unmap(), here.Port())}
	if len(r.files) > 0 || !here.Addr().Unmap().IsLoopback() {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return exit.Untested(errors.Join(errors.New("find the working directory: name folders with --allow-files"), err))
	}
	if dir != filepath.Dir(dir) { // a service of the system runs in /, and means nothing by it
		config.WorkFolder = dir
	}
	return nil
}
