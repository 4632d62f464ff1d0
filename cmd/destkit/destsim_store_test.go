package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
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

// TestDestsimRefusesUnknownStores: no password comes into a message.
func TestDestsimRefusesUnknownStores(t *testing.T) {
	status, out := ranWith(t, "destsim", "--addr", "127.0.0.1:0", "--store", "mysql://u:SECRET@db/x")
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "store: unknown kind of store: use memory or sqlite:FILE")
}
