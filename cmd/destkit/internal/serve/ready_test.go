package serve

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReadySaysThatNothingListens: the words are those of the other commands.
func TestReadySaysThatNothingListens(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := ln.Addr().String()
	ln.Close()
	r := readiness{url: "http://" + at, timeout: time.Minute}
	require.EqualError(t, r.run(t.Context(), io.Discard),
		"no answer: nothing listens at "+at+": start the service, or correct the host and port of the URL")
}
