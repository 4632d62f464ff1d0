package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/internal/keepalive"
	"github.com/destkit/destkit/server/internal/store/database"
)

// DefaultSchema keeps a store whose URL names none.
const DefaultSchema = "destkit"

// Address is where a store in PostgreSQL lives, without the password. One schema
// is one installation; a database may have several.
type Address struct {
	Host     string // a name, an address, or the folder of a socket
	Port     uint16
	Database string
	User     string
	Schema   string

	password, sslmode, roots string
}

// String names it in errors and logs.
func (p Address) String() string {
	return fmt.Sprintf("PostgreSQL at %s port %d, database %s, schema %s", p.Host, p.Port, p.Database, p.Schema)
}

// urlForm is how a URL is written.
const urlForm = "postgres://USER@HOST:PORT/DATABASE?search_path=SCHEMA"

// parameters are those of the URL, the same as those of libpq.
var parameters = []string{"host", "port", "search_path", "sslmode", "sslrootcert"}

var (
	// River names its channels after the schema, in 63 characters.
	schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,45}$`)
	sslmodes   = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}
)

// Parse reads the URL of a store; password goes with one that holds none.
// Its errors are ErrUnfit, and never show the URL, which may hold a secret.
func Parse(text, password string) (Address, error) {
	p, err := parse(text, password)
	if err != nil {
		return Address{}, fmt.Errorf("%w: read its URL: %w", ErrUnfit, err)
	}
	return p, nil
}

func parse(text, password string) (p Address, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return p, errors.New("it is not of the form " + urlForm)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return p, errors.New("what follows ? cannot be read; write key=value, joined by &")
	}
	for key, all := range values {
		if !slices.Contains(parameters, key) {
			return p, fmt.Errorf("unknown parameter %q; there are %s", key, strings.Join(parameters, ", "))
		}
		if len(all) > 1 {
			return p, fmt.Errorf("parameter %s is there twice", key)
		}
	}
	p = Address{
		Host: cmp.Or(values.Get("host"), u.Hostname(), "localhost"), User: u.User.Username(), Database: strings.TrimPrefix(u.Path, "/"),
		Schema: cmp.Or(values.Get("search_path"), DefaultSchema), password: password,
		sslmode: cmp.Or(values.Get("sslmode"), "prefer"), roots: values.Get("sslrootcert"),
	}
	if given, ok := u.User.Password(); ok {
		p.password = given
	}
	port, err := strconv.ParseUint(cmp.Or(values.Get("port"), u.Port(), "5432"), 10, 16)
	p.Port = uint16(port)
	switch {
	case err != nil || port == 0:
		return p, errors.New("the port must be 1 to 65535")
	case p.User == "":
		return p, errors.New("it names no user: " + urlForm)
	case strings.Contains(p.Host, ","):
		return p, errors.New("it names several hosts, which may be several databases: name the one that takes changes")
	case u.Fragment != "":
		return p, errors.New("it has a #, behind which nothing is read; write it as %23")
	case p.Database == "" || strings.Contains(p.Database, "/"):
		return p, errors.New("it names no database: " + urlForm)
	case !schemaName.MatchString(p.Schema) || strings.HasPrefix(p.Schema, "pg_"):
		return p, fmt.Errorf("search_path %q is not the name of one schema: 1 to 46 of a-z, 0-9 and _, not beginning with a digit or pg_", p.Schema)
	case !slices.Contains(sslmodes, p.sslmode):
		return p, fmt.Errorf("sslmode %q is none of %s", p.sslmode, strings.Join(sslmodes, ", "))
	}
	return p, nil
}

// connectTime bounds each attempt to connect.
const connectTime = 10 * time.Second

// config gives every setting: the driver would fill gaps from the environment and
// from files of the home directory, and a store must be the same one wherever its
// URL is used.
func (p Address) config() (*pgxpool.Config, error) {
	given := [][2]string{
		{"host", p.Host}, {"port", strconv.Itoa(int(p.Port))}, {"database", p.Database}, {"user", p.User}, {"password", p.password},
		{"sslmode", p.sslmode}, {"sslrootcert", p.roots}, {"sslcert", ""}, {"sslkey", ""}, {"sslpassword", ""}, {"sslcertmode", "disable"},
		{"sslsni", "1"}, {"sslnegotiation", "postgres"}, {"passfile", ""}, {"connect_timeout", strconv.Itoa(int(connectTime / time.Second))},
		{"target_session_attrs", "any"}, {"application_name", "destkit"}, {"options", ""}, {"timezone", "UTC"},
		{"channel_binding", "prefer"}, {"require_auth", ""},
	}
	var text strings.Builder
	for _, g := range given {
		text.WriteString(g[0] + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(g[1]) + "' ")
	}
	pool, err := pgxpool.ParseConfig(text.String())
	if err != nil {
		if p.roots != "" {
			return nil, fmt.Errorf("%w: read sslrootcert %s: it must hold certificates in PEM form", ErrUnfit, p.roots)
		}
		return nil, fmt.Errorf("%w: its settings do not go together", ErrUnfit)
	}
	config := pool.ConnConfig
	config.RuntimeParams = map[string]string{
		"application_name": "destkit", "timezone": "UTC", "client_encoding": "UTF8", "search_path": `"` + p.Schema + `"`,
		// Whatever the role was given: a change that was acknowledged is on disk.
		"synchronous_commit": "on",
		// The server lets go of the locks of a machine that is gone.
		"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
		// And of a process that has stopped in the middle of a change. A whole machine that
		// stands still for a moment, database and all, is not such a process: a shorter time
		// would end its change when it goes on. Callers wait for at most as long as they wait
		// for the lock, and would rather be told.
		idleTimeout: "15s", "lock_timeout": "30s",
	}
	config.DialFunc = keepalive.Dialer(silence).DialContext
	pool.MaxConns, pool.MaxConnIdleTime, pool.PingTimeout = poolSize, 5*time.Minute, pingTime
	return pool, nil
}

// silence ends a connection of which nothing is heard any more: as long as the lease
// of a run lasts. After that others have taken over what this process did, so no one
// is served by waiting for longer. A shorter one would end connections to a server
// that lives, while its disk or a lock keeps it from reading what a large write sends.
// What must be known sooner has a deadline of its own: the keeping of a lease, and the
// question whether a connection of the pool is a good one (pingTime).
const (
	silence  = 10 * time.Second
	pingTime = 2 * time.Second
)

// poolSize is how many connections Schema.Pool has at most.
const poolSize = 10

// connections is how many connections to PostgreSQL a process takes at most: for its
// reads, for its changes, for what it hears of the others, those of its pool, and the
// two that its limits have to themselves (server/internal/cluster/quota).
func connections() int { return database.Readers() + 2 + poolSize + 2 }

// idleTimeout is the setting that ends a transaction in which nothing happens.
const idleTimeout = "idle_in_transaction_session_timeout"
