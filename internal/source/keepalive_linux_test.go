package source

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDialer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := keptAlive(10*time.Second).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	for name, c := range map[string]struct{ level, option, want int }{
		"without an acknowledgement": {syscall.IPPROTO_TCP, userTimeout, 10_000}, // milliseconds
		"questions":                  {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		"before the first one":       {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 5},
		"between two":                {syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 3},
		"how many":                   {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 2},
	} {
		got := 0
		require.NoError(t, raw.Control(func(fd uintptr) { got, err = syscall.GetsockoptInt(int(fd), c.level, c.option) }))
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

// A socket in a folder has no such options.
func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	conn, err := keptAlive(time.Second).DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}
