package reach

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdmit(t *testing.T) {
	for name, c := range map[string]struct {
		remote, host, header, value string
		says                        string // "" admits
	}{
		"IPv4":                         {remote: "127.0.0.1:1", host: "127.0.0.1:8080"},
		"another address of loopback":  {remote: "127.8.9.1:1", host: "127.0.0.1"},
		"IPv6":                         {remote: "[::1]:1", host: "[::1]:8080"},
		"IPv6 without a port":          {remote: "::1", host: "[::1]"},
		"IPv4 inside IPv6":             {remote: "[::ffff:127.0.0.1]:1", host: "localhost"},
		"a zone":                       {remote: "[fe80::1%eth0]:1", host: "localhost", says: "does not come from this machine"},
		"localhost":                    {remote: "127.0.0.1:1", host: "LocalHost.:9"},
		"a name below localhost":       {remote: "127.0.0.1:1", host: "sim.localhost"},
		"Unix socket":                  {remote: "@", host: "whatever"},
		"in memory":                    {remote: "pipe", host: "example.com"},
		"no peer":                      {remote: "", host: "example.com"},
		"Unix socket behind a proxy":   {remote: "@", host: "localhost", header: "X-Forwarded-For", value: "127.0.0.1", says: "does not come from this machine"},
		"another machine":              {remote: "192.0.2.1:1", host: "localhost", says: "does not come from this machine"},
		"another machine, no port":     {remote: "192.0.2.1", host: "localhost", says: "does not come from this machine"},
		"a tunnel":                     {remote: "127.0.0.1:1", host: "localhost", header: "X-Forwarded-For", value: "192.0.2.7", says: "does not come from this machine"},
		"a proxy after RFC 7239":       {remote: "127.0.0.1:1", host: "localhost", header: "Forwarded", value: "for=192.0.2.7", says: "does not come from this machine"},
		"a proxy that keeps the host":  {remote: "127.0.0.1:1", host: "localhost", header: "X-Forwarded-Host", value: "h", says: "does not come from this machine"},
		"a proxy with an address":      {remote: "127.0.0.1:1", host: "localhost", header: "X-Real-IP", value: "192.0.2.7", says: "does not come from this machine"},
		"a name that was rebound":      {remote: "127.0.0.1:1", host: "evil.example:8080", says: `the host "evil.example:8080"`},
		"a name that looks like ours":  {remote: "127.0.0.1:1", host: "localhost.evil.example", says: "no name of loopback"},
		"the address of a network":     {remote: "127.0.0.1:1", host: "192.0.2.1", says: "no name of loopback"},
		"no host":                      {remote: "127.0.0.1:1", host: "", says: "no name of loopback"},
		"a long host":                  {remote: "127.0.0.1:1", host: strings.Repeat("h", 500), says: strings.Repeat("h", shown) + `…"`},
		"a call of a service":          {remote: "127.0.0.1:1", host: "localhost", header: Outbound, value: "service", says: "call of a service"},
		"the same on a Unix socket":    {remote: "@", host: "localhost", header: Outbound, value: "0", says: "call of a service"},
		"a page of its own":            {remote: "127.0.0.1:1", host: "localhost:1", header: "Origin", value: "http://localhost:1"},
		"a page of its own over TLS":   {remote: "127.0.0.1:1", host: "localhost:1", header: "Origin", value: "https://localhost:1"},
		"a page of another port":       {remote: "127.0.0.1:1", host: "localhost:1", header: "Origin", value: "http://localhost:2", says: "may not call here"},
		"a page without an origin":     {remote: "127.0.0.1:1", host: "localhost:1", header: "Origin", value: "null", says: "may not call here"},
		"typed into a browser":         {remote: "127.0.0.1:1", host: "localhost:1", header: "Sec-Fetch-Site", value: "none"},
		"fetched by a page of its own": {remote: "127.0.0.1:1", host: "localhost:1", header: "Sec-Fetch-Site", value: "same-origin"},
		"fetched by another site":      {remote: "127.0.0.1:1", host: "localhost:1", header: "Sec-Fetch-Site", value: "cross-site", says: "another site"},
		"fetched by another port":      {remote: "127.0.0.1:1", host: "localhost:1", header: "Sec-Fetch-Site", value: "same-site", says: "another site"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/_control", nil)
			r.RemoteAddr, r.Host = c.remote, c.host
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			err := AdmitLoopback(r)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, strings.Contains(ErrPeer.Error(), c.says), errors.Is(err, ErrPeer))
		})
	}
}
