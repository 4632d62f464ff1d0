package source

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/api"
)

// postgresType describes the one type that goes over the network.
func postgresType() *sourceType {
	ssl := optional(text("sslmode", "SSL mode", "prefer", "How the connection is encrypted; prefer when left out. verify-ca and verify-full check the certificate against the roots of the system."))
	ssl.ReadMore = "https://www.postgresql.org/docs/current/libpq-ssl.html"
	ssl.PossibleValues, ssl.InputType = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}, "dropdown"
	d := describe("postgres", "PostgreSQL",
		hostField(), portField("5432"),
		matching(text("database", "Database", "crm", "The database that is read; it is the catalog of the tables."), namePattern),
		matching(text("username", "User name", "sync", "A user that may read the tables."), namePattern),
		optional(password("May be left out where the server asks for none.")), ssl,
	)
	d.SQL, d.SupportsWarehouseWriteback = true, true
	d.SupportedSyncEngines = []string{api.EngineBasic, api.EngineAdvanced}
	return &sourceType{Description: d, steps: postgresSteps,
		unopened: func(s settings, o Options) describer {
			return &postgres{s: s, scratch: o.Scratch, limits: o.Limits, network: o.Network}
		},
		open: func(ctx context.Context, _ *sourceType, s settings, o Options) (Source, error) {
			src := &postgres{s: s, scratch: o.Scratch, limits: o.Limits, network: o.Network}
			return src, src.with(ctx, func(context.Context, *pgx.Conn) error { return nil })
		}}
}

// postgres opens a connection for each use, so that an idle source holds none
// of the server's.
type postgres struct {
	s       settings
	scratch string
	limits  Limits
	network *reach.Network // nil: all addresses
}

// Close has nothing to do: each reading has its own connection.
func (p *postgres) Close() error { return nil }

// connectTimeout bounds each attempt to connect.
const connectTimeout = 10 * time.Second

// silence ends a connection of which nothing is heard any more. A reading may take as
// long as it likes, and no one else goes on meanwhile; to do it again is dear, so a
// network that stumbles is given some time.
const silence = 30 * time.Second

// config takes every setting from the credentials. The driver would fill gaps
// from the environment and from files of the home directory; each of these is
// given here, so that a connection is the same wherever the service runs.
func (p *postgres) config() (*pgx.ConnConfig, error) {
	sslmode := cmp.Or(p.s.text("sslmode"), "prefer")
	given := []struct{ key, value string }{
		{"host", p.s.text("host")}, {"port", strconv.FormatInt(p.s.integer("port", 5432), 10)},
		{"database", p.s.text("database")}, {"user", p.s.text("username")}, {"password", p.s.text("password")},
		{"sslmode", sslmode}, {"sslcert", ""}, {"sslkey", ""}, {"sslrootcert", ""}, {"sslpassword", ""},
		{"sslcertmode", "disable"}, {"sslsni", "1"}, {"sslnegotiation", "postgres"}, {"passfile", ""},
		{"connect_timeout", strconv.Itoa(int(connectTimeout / time.Second))}, {"target_session_attrs", "any"},
		{"application_name", "destkit"}, {"options", ""}, {"timezone", "UTC"},
		{"channel_binding", "prefer"}, {"require_auth", ""},
	}
	var text strings.Builder
	for _, g := range given {
		text.WriteString(g.key + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(g.value) + "' ")
	}
	config, err := pgx.ParseConfig(text.String())
	if err != nil {
		return nil, fmt.Errorf("configure connection: %w", err)
	}
	config.RuntimeParams = map[string]string{
		"application_name": "destkit", "timezone": "UTC", "client_encoding": "UTF8",
		"default_transaction_read_only": "on",
	}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		return p.dial(ctx, keptAlive(silence), network, address)
	}
	config.BuildFrontend = p.limits.frontend
	config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // prepared statements do not pass every pooler
	return config, nil
}

// dial connects where the service may go, by the address that is dialled.
func (p *postgres) dial(ctx context.Context, with *net.Dialer, network, address string) (net.Conn, error) {
	if p.network == nil {
		return with.DialContext(ctx, network, address)
	}
	return p.network.Dial(ctx, with, p.s.text("host"), network, address)
}

// connect opens a connection. Its errors hold no secret.
func (p *postgres) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := p.config()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect: %w", context.Cause(ctx))
		}
		return nil, p.explain(err)
	}
	return conn, nil
}

// explain reports in one line why a connection failed; the driver lists
// every attempt.
func (p *postgres) explain(err error) error {
	var server *pgconn.PgError
	where := fmt.Sprintf("%s port %d", p.s.text("host"), p.s.integer("port", 5432))
	var network *net.OpError
	var refused *reach.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("connect to %s: %w", where, refused)
	case errors.As(err, &server):
		return fmt.Errorf("log in at %s: %s", where, server.Message)
	case errors.As(err, &network):
		return fmt.Errorf("connect to %s: %w", where, network.Err)
	}
	return fmt.Errorf("connect to %s: %w", where, err)
}

// with lends a connection in a transaction that only reads and sees one moment.
func (p *postgres) with(ctx context.Context, use func(context.Context, *pgx.Conn) error) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return p.clean(err)
	}
	defer closeConn(conn)
	if err := begin(ctx, conn); err != nil {
		return p.clean(err)
	}
	return p.clean(use(ctx, conn))
}

// begin makes everything that follows one state of the database, which nothing
// can change.
func begin(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return nil
}

// closeConn takes leave of the server, whatever became of the caller's context.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// clean takes the credentials out of an error: the server may repeat them.
func (p *postgres) clean(err error) error { return clean(err, Secrets("postgres", p.s)) }

// postgresSteps distinguishes a wrong host, a wrong port and a wrong password.
func postgresSteps(t *sourceType, s settings, o Options) *probe {
	p := &probe{}
	src := &postgres{s: s, scratch: o.Scratch, limits: o.Limits, network: o.Network}
	host := s.text("host")
	p.add(stepAddress, func(ctx context.Context) error {
		if strings.HasPrefix(host, "/") {
			return nil // the folder of a socket
		}
		if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
			return fmt.Errorf("find address of %s: no such host", host)
		}
		return nil
	})
	p.add(stepConnect, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		network, address := pgconn.NetworkAddress(host, uint16(s.integer("port", 5432)))
		conn, err := src.dial(ctx, &net.Dialer{}, network, address)
		if err != nil {
			return src.explain(err)
		}
		return conn.Close()
	})
	p.add(stepAuthenticate, func(ctx context.Context) (err error) {
		p.src, err = t.open(ctx, t, s, o)
		return err
	})
	p.addRead()
	return p
}

// frontend reads the messages of a server, whose rows are no longer than the limit:
// the driver would make room for whatever length a message announces.
func (l Limits) frontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(&messageLimit{from: r, limits: l.withDefaults()}, w)
}

// messageLimit follows the messages of the protocol: a letter, four bytes of length
// that count themselves, and so much.
type messageLimit struct {
	from   io.Reader
	limits Limits
	head   [5]byte
	have   int // bytes of the head
	left   int // of the body
}

// Read implements io.Reader. The driver sees the head of a message that is too long
// no more than the rest of it.
func (m *messageLimit) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	for at := 0; at < n; {
		if m.left > 0 {
			skip := min(m.left, n-at)
			m.left, at = m.left-skip, at+skip
			continue
		}
		m.head[m.have] = p[at]
		m.have, at = m.have+1, at+1
		if m.have < len(m.head) {
			continue
		}
		m.have = 0
		if m.left = int(binary.BigEndian.Uint32(m.head[1:])) - 4; m.left > m.limits.Row {
			return max(at-len(m.head), 0), m.limits.errRow()
		}
	}
	return n, err
}
