package serve

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/server"
)

// processFlags hold what a process of an installation needs to know beside the
// service: there may be others on the same --store.
type processFlags struct {
	role  string
	drain time.Duration
}

// defaultDrain suits the grace of most supervisors, which is 30 s or more.
const defaultDrain = 30 * time.Second

// register adds the flags; all of them go with --store.
func (p *processFlags) register(f *pflag.FlagSet, config *server.Config) {
	f.StringVar(&p.role, "role", server.RoleAll, "with --store, what this process does: `all|api|worker` (serves the API and works on runs, or one of both)")
	f.IntVar(&config.Workers, "workers", server.DefaultWorkers, "with --store, the `NUMBER` of runs that this process works on at a time")
	f.StringVar(&config.Advertise, "advertise", "", "with --store, the `HOST:PORT` under which GET /_control/processes lists this process (default: where it listens)")
	f.DurationVar(&p.drain, "drain-timeout", defaultDrain, "with --store, how long the end may take after SIGTERM: balancers notice, runs are handed back")
}

// resolve refuses what does not go together, and gives the process its name.
func (p *processFlags) resolve(f *pflag.FlagSet, config *server.Config) error {
	if config.Store == "" {
		for _, flag := range []string{"role", "workers", "advertise", "drain-timeout"} {
			// Everything is what a process alone does anyway.
			if f.Changed(flag) && (flag != "role" || p.role != server.RoleAll) {
				return exit.Usagef("--%s goes with --store: without a store that processes share there is one process, which does everything", flag)
			}
		}
		return nil
	}
	switch {
	case p.role != server.RoleAll && p.role != server.RoleAPI && p.role != server.RoleWorker:
		return exit.Usagef("--role %q is none of all, api, worker", p.role)
	case p.role == server.RoleAPI && f.Changed("workers"):
		return exit.Usagef("--workers does not go with --role api, which works on no runs")
	case config.Workers < 1:
		return exit.Usagef("--workers must be 1 or more, not %d; --role api works on no runs", config.Workers)
	case p.drain <= 0:
		return exit.Usagef("--drain-timeout must be longer than nothing, not %s", p.drain)
	}
	if config.Advertise != "" {
		host, port, err := net.SplitHostPort(config.Advertise)
		if number, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || number == 0 {
			return exit.Usagef("--advertise %q is not HOST:PORT", config.Advertise)
		}
	}
	config.Role = p.role
	config.NoFiles = config.Dir == ""
	name := make([]byte, 8)
	if _, err := rand.Read(name); err != nil {
		return exit.Untested(err)
	}
	config.Process = hex.EncodeToString(name)
	return nil
}

// advertised is where others reach a port that is open on addr: by the name of
// the machine, when it is open on every address.
func advertised(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	return net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}
