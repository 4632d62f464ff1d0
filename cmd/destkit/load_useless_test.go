package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

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
