package postgres

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestURLs(t *testing.T) {
	for name, c := range map[string]struct {
		url  string
		want string // the place, or a part of the error
	}{
		"all of it":        {"postgres://u:SECRET@db.example:5433/crm?search_path=one&sslmode=require", "PostgreSQL at db.example port 5433, database crm, schema one"},
		"defaults":         {"postgresql://u@db.example/crm", "PostgreSQL at db.example port 5432, database crm, schema destkit"},
		"socket":           {"postgres://u@/crm?host=/run/pg&port=1", "PostgreSQL at /run/pg port 1, database crm, schema destkit"},
		"another scheme":   {"mysql://u:SECRET@h/d", urlForm},
		"no URL":           {"postgres://u:SECRET@h:x/d", urlForm},
		"no user":          {"postgres://h/d", "names no user"},
		"no database":      {"postgres://u@h", "names no database"},
		"unknown":          {"postgres://u:SECRET@h/d?password=SECRET", `unknown parameter "password"`},
		"twice":            {"postgres://u@h/d?port=1&port=2", "parameter port is there twice"},
		"port":             {"postgres://u@h/d?port=66000", "1 to 65535"},
		"two schemas":      {"postgres://u@h/d?search_path=a,b", `search_path "a,b" is not the name of one schema`},
		"system's schema":  {"postgres://u@h/d?search_path=pg_x", "not the name of one schema"},
		"a long name":      {"postgres://u@h/d?search_path=" + strings.Repeat("a", 47), "1 to 46 of a-z"},
		"sslmode":          {"postgres://u@h/d?sslmode=yes", `sslmode "yes" is none of`},
		"no such roots":    {"postgres://u@h/d?sslmode=verify-full&sslrootcert=/nowhere.pem", "read sslrootcert /nowhere.pem"},
		"two hosts":        {"postgres://u:SECRET@a,b/d", "several hosts"},
		"two with ports":   {"postgres://u:SECRET@a:1,b:2/d", "several hosts"},
		"two sockets":      {"postgres://u:SECRET@/d?host=/a,/b", "several hosts"},
		"a fragment":       {"postgres://u:SECRET@h/d?search_path=one#SECRET", "it has a #"},
		"broken parameter": {"postgres://u:SECRET@h/d?%zz", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(Options{URL: c.url})
			if err == nil {
				require.Equal(t, c.want, p.at.String())
				return
			}
			require.ErrorIs(t, err, ErrUnfit)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "SECRET")
		})
	}
}
