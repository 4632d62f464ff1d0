package command

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server"
)

// start serves s until the test ends and returns its URL and the certificates
// to trust.
func start(t *testing.T, alsoPlain bool) string {
	t.Helper()
	certificates, err := destsim.NewCertificates(nil)
	require.NoError(t, err)
	config, err := certificates.TLSConfig("")
	require.NoError(t, err)
	return startPort(t, &Port{Addr: "127.0.0.1:0", TLS: config, AlsoPlain: alsoPlain, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello "+r.Method) })})
}

func startPort(t *testing.T, s *Port) string {
	t.Helper()
	ln, url, err := s.Open()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return url
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestTLSPortRefusesPlainHTTP(t *testing.T) {
	url := start(t, false)
	require.True(t, strings.HasPrefix(url, "https://127.0.0.1:"), url)
	status, body := get(t, url)
	require.Equal(t, 200, status)
	require.Equal(t, "hello GET", body)
	status, _ = get(t, "http"+strings.TrimPrefix(url, "https"))
	require.Equal(t, 400, status)
}

func TestTLSPortMayAlsoAnswerPlainHTTP(t *testing.T) {
	url := start(t, true)
	for _, u := range []string{url, "http" + strings.TrimPrefix(url, "https"), url} {
		status, body := get(t, u)
		require.Equal(t, 200, status, u)
		require.Equal(t, "hello GET", body, u)
	}
}

// TestPortsWithCallersThatStall: the ports of serve and destsim, and destsim where net/http answers.
func TestPortsWithCallersThatStall(t *testing.T) {
	service, err := server.New(t.Context(), server.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { service.Close() })
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	const body = `{"jsonrpc":"2.0","method":"list_objects","id":"7"}`
	for call, handler := range map[string]http.Handler{"POST / ": sim, "GET /healthz ": sim, "GET /openapi.yaml ": service} {
		url := startPort(t, &Port{Addr: "127.0.0.1:0", Handler: handler})
		testkit.Stalled(t, strings.TrimPrefix(url, "http://"), fmt.Sprintf("%sHTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", call, len(body), body))
	}
}

// TestAddressesThatCannotBe: a message names the flag and what to give.
func TestAddressesThatCannotBe(t *testing.T) {
	for addr, want := range map[string]string{
		"8080":                "--to 8080 is not HOST:PORT: did you mean 127.0.0.1:8080?",
		"localhost":           "--to localhost is not HOST:PORT: give it a port, such as localhost:8080",
		"::1":                 "--to ::1 is not HOST:PORT: give it a port, such as [::1]:8080",
		"[::1]":               "--to [::1] is not HOST:PORT: give it a port, such as [::1]:8080",
		":::1":                "--to :::1 is not HOST:PORT: an IPv6 address stands in brackets: did you mean [::]:1?",
		"http://127.0.0.1:0":  "--to http://127.0.0.1:0 is not HOST:PORT, such as 127.0.0.1:8080",
		"127.0.0.1:99999":     `--to 127.0.0.1:99999: the port "99999" is no number from 0 to 65535`,
		"127.0.0.1:abc":       `--to 127.0.0.1:abc: the port "abc" is no number from 0 to 65535`,
		"nohost.invalid:8080": "--to nohost.invalid:8080: there is no host nohost.invalid; give an address of this machine, such as 127.0.0.1:8080",
		"192.0.2.1:8080":      "listen on 192.0.2.1:8080: 192.0.2.1 is no address of this machine: pass --to 127.0.0.1:8080, or 0.0.0.0:8080 for all that it has",
	} {
		_, _, err := (&Port{Addr: addr, Flag: "--to"}).Open()
		require.EqualError(t, err, want)
		status := exit.BadUsage
		if strings.HasPrefix(want, "listen") {
			status = exit.NotTested
		}
		require.Equal(t, status, err.(*exit.Error).Status, addr)
	}
}
