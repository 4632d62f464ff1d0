package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/loads"
	"github.com/destkit/destkit/cmd/destkit/internal/serve"
)

// TestDefaultAddresses: the service and the simulated destination run together
// without a flag.
func TestDefaultAddresses(t *testing.T) {
	service, destination := serve.New().Flags().Lookup("addr"), newDestsim().Flags().Lookup("addr")
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
	for name, cmd := range map[string]*cobra.Command{"violate": newDestsim(), "allow-hosts": serve.New(), "fail-if": loads.New(settingKeys)} {
		require.Equal(t, "stringSlice", cmd.Flags().Lookup(name).Value.Type(), name)
	}
}

// TestFlagsComplete: no flag is completed twice, and the program makes the completions
// when a shell requests them. Their offers are in testdata/matrix/complete.txtar.
func TestFlagsComplete(t *testing.T) {
	var out strings.Builder
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs([]string{"__complete", "conform", "--profile", "s"})
	require.NoError(t, root.Execute())
	require.Contains(t, out.String(), "spec\n")
}

// TestALoadOfErrorsIsNoSuccess: 1 where not one record was acknowledged, 3 where not
// one request got a complete reply, and a line reports which.
func TestALoadOfErrorsIsNoSuccess(t *testing.T) {
	for _, c := range []struct {
		name   string
		write  func(net.Conn, string)
		status int
		words  string
	}{
		{"an error object", whole(okHead, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"full"}}`, "", 0, ""), exit.GateFailed, "not one record was acknowledged"},
		{"a page", whole("HTTP/1.1 500 Broken\r\n", "broken", "", 0, ""), exit.GateFailed, "not one record was acknowledged"},
		{"a close", func(net.Conn, string) {}, exit.NotTested, "got a complete reply"},
		{"half a reply", func(conn net.Conn, _ string) { _, _ = conn.Write([]byte(okHead + "Content-Length: 90\r\n\r\n{")) }, exit.NotTested, "got a complete reply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runProgram(t, "load", sabotage(t, "sync_batch", c.write), "--write", "--object", "contact", "--closed", "--connections", "2", "--count", "6", "--quiet")
			require.Equal(t, c.status, r.status, r.text)
			require.Contains(t, r.text, c.words)
		})
	}
}

// TestStoppedWhileStarting: a signal that comes at once ends a command as one that
// comes later does.
func TestStoppedWhileStarting(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"serve": {[]string{"serve", "--addr", "127.0.0.1:0"}, exit.OK, ""},
		"demo":  {[]string{"demo", "--dir", t.TempDir()}, exit.NotTested, "destkit: interrupted\n"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var text bytes.Buffer
		root := newRoot()
		root.SetOut(&text)
		root.SetErr(&text)
		require.Equal(t, c.status, command.Execute(ctx, root, c.args), "%s: %s", name, &text)
		require.Contains(t, text.String(), c.says, name)
		require.NotContains(t, text.String(), "context canceled", name)
	}
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left behind")
}
