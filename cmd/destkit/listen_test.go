package main

import (
	"context"
	"crypto/tls"
	"github.com/spf13/cobra"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/destsim"
)

// start serves s until the test ends and returns its URL and the certificates
// to trust.
func start(t *testing.T, alsoPlain bool) string {
	t.Helper()
	certificates, err := destsim.NewCertificates(nil)
	require.NoError(t, err)
	config, err := certificates.TLSConfig("")
	require.NoError(t, err)
	s := &listener{addr: "127.0.0.1:0", tls: config, alsoPlain: alsoPlain, handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello "+r.Method) })}
	ln, url, err := s.listen()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, ln) }()
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

func TestListenSaysWhichAddressIsTaken(t *testing.T) {
	first := &listener{addr: "127.0.0.1:0"}
	ln, url, err := first.listen()
	require.NoError(t, err)
	defer ln.Close()
	second := &listener{addr: strings.TrimPrefix(url, "http://")}
	_, _, err = second.listen()
	require.EqualError(t, err, "listen on "+second.addr+": port "+second.addr[strings.LastIndexByte(second.addr, ':')+1:]+" is in use: pass --addr 127.0.0.1:0 or another port")
	require.Equal(t, exit.NotTested, err.(*exit.Error).Status)
}

// TestDefaultAddresses: the service and the simulated destination run together
// without a flag.
func TestDefaultAddresses(t *testing.T) {
	service, destination := newServe().Flags().Lookup("addr"), newDestsim().Flags().Lookup("addr")
	require.Equal(t, "127.0.0.1:8080", service.DefValue)
	require.Equal(t, "127.0.0.1:8090", destination.DefValue)
	require.Equal(t, service.Shorthand, destination.Shorthand)
}

// TestListsTakeCommas: a list of names can be one value.
func TestListsTakeCommas(t *testing.T) {
	var j judgement
	cmd := conformCommand(&j)
	require.NoError(t, cmd.ParseFlags([]string{"--select", "RES-*,OBJ-001", "-s", "SEM-005", "--skip=A,B", "-o", "contact,order"}))
	require.Equal(t, []string{"RES-*", "OBJ-001", "SEM-005"}, j.options.Select)
	require.Equal(t, []string{"A", "B"}, j.options.Skip)
	require.Equal(t, []string{"contact", "order"}, j.options.Objects)
	for name, cmd := range map[string]*cobra.Command{"violate": newDestsim(), "allow-hosts": newServe(), "fail-if": newLoad()} {
		require.Equal(t, "stringSlice", cmd.Flags().Lookup(name).Value.Type(), name)
	}
}
