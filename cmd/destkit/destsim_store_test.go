package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/testkit"
)

// ranWith is one command with all that it said.
func ranWith(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var text bytes.Buffer
	root := newRoot()
	root.SetOut(&text)
	root.SetErr(&text)
	status = command.Execute(t.Context(), root, args)
	require.NotContains(t, text.String(), "SECRET")
	return status, text.String()
}

// TestDestsimTellsWhyAStoreCannotBeOpened: no password comes into a message.
func TestDestsimTellsWhyAStoreCannotBeOpened(t *testing.T) {
	server := testkit.StartPostgres(t)
	t.Setenv(command.StorePasswordVariable, "")
	nameless := fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres", testkit.PostgresUser, server.Port)
	status, out := ranWith(t, "destsim", "--addr", "127.0.0.1:0", "--store", nameless)
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "none was given; set "+command.StorePasswordVariable)
	status, out = ranWith(t, "destsim", "--addr", "127.0.0.1:0", "--store", "postgres://u:SECRET@127.0.0.1:1/d")
	require.Equal(t, 3, status, out)
	require.Contains(t, out, "cannot reach PostgreSQL: dial: connect: connection refused")
}
