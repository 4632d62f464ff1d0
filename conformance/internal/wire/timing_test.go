package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// memoryServer is rawServer over memory, for tests whose clock is synctest's:
// durations are then exact.
func memoryServer(t *testing.T, opts Options, serve func(n int, conn net.Conn, br *bufio.Reader)) *Client {
	t.Helper()
	l := listenInMemory()
	var running sync.WaitGroup
	running.Go(func() {
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				serve(n, conn, bufio.NewReader(conn))
			})
		}
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	opts.URL, opts.Dial = "http://memory/", l.dial
	return newClient(t, opts)
}

func TestDeadlinesAreKeptToTheMillisecond(t *testing.T) {
	hang := func(br *bufio.Reader) { _, _ = io.Copy(io.Discard, br) }
	tests := []struct {
		name  string
		call  Call
		serve func(t *testing.T, conn net.Conn, br *bufio.Reader)
		body  string
		gap   time.Duration
	}{
		{"no answer", Call{}, func(_ *testing.T, _ net.Conn, br *bufio.Reader) { hang(br) }, "", 0},
		{"request not read", Call{Body: make([]byte, 1<<20)}, func(t *testing.T, _ net.Conn, _ *bufio.Reader) { <-t.Context().Done() }, "", 0},
		{"head then stall", Call{}, func(_ *testing.T, conn net.Conn, br *bufio.Reader) {
			_, _, _ = readRequest(br)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
			hang(br)
		}, "ab", 300 * time.Millisecond},
		{"one byte of the head per 10 ms", Call{}, func(_ *testing.T, conn net.Conn, br *bufio.Reader) {
			_, _, _ = readRequest(br)
			for range 1000 {
				time.Sleep(10 * time.Millisecond)
				if _, err := io.WriteString(conn, "H"); err != nil {
					return
				}
			}
		}, "", 0},
		{"body without end", Call{}, func(_ *testing.T, conn net.Conn, br *bufio.Reader) {
			_, _, _ = readRequest(br)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			for {
				time.Sleep(100*time.Millisecond + time.Microsecond)
				if _, err := io.WriteString(conn, "x"); err != nil {
					return
				}
			}
		}, "xx", 100*time.Millisecond + time.Microsecond},
		{"interim without end", Call{}, func(_ *testing.T, conn net.Conn, br *bufio.Reader) {
			_, _, _ = readRequest(br)
			_, _ = io.WriteString(conn, "HTTP/1.1 102 Processing\r\n\r\n")
			hang(br)
		}, "", 0},
		{"never asks for the body", Call{ExpectContinue: true, Body: make([]byte, 1<<20)},
			func(t *testing.T, _ net.Conn, _ *bufio.Reader) { <-t.Context().Done() }, "", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memoryServer(t, Options{}, func(_ int, conn net.Conn, br *bufio.Reader) { test.serve(t, conn, br) })
				test.call.Timeout = 300 * time.Millisecond
				r := c.Do(t.Context(), test.call)
				require.Equal(t, KindTimeout, r.Kind, "%v", r.Err)
				require.Equal(t, 300*time.Millisecond, r.Total)
				require.Equal(t, test.body, string(r.Body))
				require.Equal(t, test.gap, r.MaxGap)
			})
		})
	}
}

func TestTimesAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memoryServer(t, Options{}, func(_ int, conn net.Conn, br *bufio.Reader) {
			_, _, _ = readRequest(br)
			time.Sleep(100 * time.Millisecond)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
			for _, pause := range []time.Duration{20, 50, 10} {
				time.Sleep(pause * time.Millisecond)
				_, _ = io.WriteString(conn, "x")
			}
			_, _ = io.Copy(io.Discard, br)
		})
		dial := c.opts.Dial
		c.opts.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(7 * time.Millisecond)
			return dial(ctx, network, addr)
		}
		r := c.Do(t.Context(), Call{})
		require.NoError(t, r.Err)
		require.Equal(t, 7*time.Millisecond, r.Dial)
		require.Equal(t, 187*time.Millisecond, r.Total)
		require.Equal(t, 50*time.Millisecond, r.MaxGap)
		require.InDelta(t, 187, r.Exchange().DurationMS, 0)
	})
}

// A Content-Length that is too short may only show a moment later.
func TestLateSurplus(t *testing.T) {
	late := func(_ int, conn net.Conn, br *bufio.Reader) {
		_, _, _ = readRequest(br)
		_, _ = io.WriteString(conn, ok("{}"))
		time.Sleep(20 * time.Millisecond)
		_, _ = io.WriteString(conn, "late")
		_, _ = io.Copy(io.Discard, br)
	}
	synctest.Test(t, func(t *testing.T) {
		c := memoryServer(t, Options{}, late)
		conn, err := c.Open(t.Context())
		require.NoError(t, err)
		require.True(t, c.Do(t.Context(), Call{Conn: conn}).OK())
		time.Sleep(50 * time.Millisecond)
		r := c.Do(t.Context(), Call{Conn: conn})
		require.Equal(t, KindMalformed, r.Kind)
		require.ErrorContains(t, r.Err, "4 bytes came after the end of the previous response")

		// From the pool such a connection is simply not used again.
		require.True(t, c.Do(t.Context(), Call{}).OK())
		time.Sleep(50 * time.Millisecond)
		r = c.Do(t.Context(), Call{})
		require.True(t, r.OK())
		require.False(t, r.Reused)
	})
}

func TestExpectContinue(t *testing.T) {
	tests := []struct {
		name, interim string
		status        int
		took          time.Duration
		sent          string
		closed        bool
		interims      []int
	}{
		{"asked for", "HTTP/1.1 100 Continue\r\n\r\n", 200, 0, "abc", false, []int{100}},
		{"ignored", "", 200, continueWait, "abc", false, nil},
		{"refused", "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n", 417, 0, "", true, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := make(chan string, 1)
				c := memoryServer(t, Options{}, func(_ int, conn net.Conn, br *bufio.Reader) {
					for {
						line, err := br.ReadString('\n')
						if err != nil || line == "\r\n" {
							break
						}
					}
					_, _ = io.WriteString(conn, test.interim)
					body := make([]byte, 3)
					n, _ := io.ReadFull(br, body)
					got <- string(body[:n])
					_, _ = io.WriteString(conn, ok("{}"))
				})
				r := c.Do(t.Context(), Call{Body: []byte("abc"), ExpectContinue: true, Timeout: time.Minute})
				require.NoError(t, r.Err)
				require.Equal(t, test.status, r.Status)
				require.Equal(t, test.took, r.Total)
				require.Equal(t, test.interims, r.Interim)
				require.Equal(t, test.closed, r.ConnClosed)
				require.Equal(t, test.sent, <-got)
				require.Contains(t, r.Exchange().Request.Header, Header{"Expect", "100-continue"})
			})
		})
	}
}

func TestConnectionsAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memoryServer(t, Options{}, func(n int, conn net.Conn, br *bufio.Reader) {
			for {
				if _, _, err := readRequest(br); err != nil {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nX-Conn: "+itoa(n)+"\r\nContent-Length: 0\r\n\r\n")
			}
		})
		call := func(call Call) (string, bool) {
			r := c.Do(t.Context(), call)
			require.NoError(t, r.Err)
			require.Equal(t, r.Reused, r.Exchange().ReusedConnection)
			return r.Header.Get("X-Conn"), r.Reused
		}
		steps := []struct {
			call   Call
			wait   time.Duration
			conn   string
			reused bool
		}{
			{Call{}, 0, "1", false},
			{Call{}, 0, "1", true},
			{Call{FreshConn: true}, 0, "2", false},
			{Call{}, 900 * time.Millisecond, "1", true},
			{Call{}, 1100 * time.Millisecond, "3", false}, // half of the announced time is over
		}
		for i, step := range steps {
			time.Sleep(step.wait)
			conn, reused := call(step.call)
			require.Equal(t, step.conn, conn, i)
			require.Equal(t, step.reused, reused, i)
		}
		c.Close()
		conn, reused := call(Call{})
		require.Equal(t, "4", conn)
		require.False(t, reused)
		conn, reused = call(Call{})
		require.Equal(t, "5", conn)
		require.False(t, reused)
	})
}

// closesOnSecond answers the first call of a connection and closes silently on
// the second, of the first connections only.
func closesOnSecond(connections int) func(int, net.Conn, *bufio.Reader) {
	return func(n int, conn net.Conn, br *bufio.Reader) {
		for i := 1; ; i++ {
			if _, _, err := readRequest(br); err != nil || i == 2 && n <= connections {
				return
			}
			_, _ = io.WriteString(conn, ok("{}"))
		}
	}
}

func TestSilentCloseOnSecondCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memoryServer(t, Options{}, closesOnSecond(1))
		require.True(t, c.Do(t.Context(), Call{}).OK())
		r := c.Do(t.Context(), Call{})
		require.NoError(t, r.Err)
		require.True(t, r.Retried)
		require.True(t, r.Exchange().Retried)
		require.False(t, r.Reused)
	})
	synctest.Test(t, func(t *testing.T) {
		c := memoryServer(t, Options{}, closesOnSecond(10))
		conn, err := c.Open(t.Context())
		require.NoError(t, err)
		require.True(t, c.Do(t.Context(), Call{Conn: conn}).OK())
		r := c.Do(t.Context(), Call{Conn: conn})
		require.Equal(t, KindClosed, r.Kind)
		require.True(t, r.Reused)
		require.True(t, r.ConnClosed)
		require.Equal(t, 2, conn.uses)
		require.Equal(t, KindClosed, c.Do(t.Context(), Call{Conn: conn}).Kind)
	})
}

func TestCloseAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memoryServer(t, Options{}, func(_ int, conn net.Conn, br *bufio.Reader) {
			_, _, _ = readRequest(br)
			_, _ = io.WriteString(conn, ok("{}"))
			time.Sleep(100 * time.Millisecond)
		})
		conn, err := c.Open(t.Context())
		require.NoError(t, err)
		require.True(t, c.Do(t.Context(), Call{}).OK())
		require.True(t, c.Do(t.Context(), Call{Conn: conn}).OK())
		time.Sleep(time.Second)
		r := c.Do(t.Context(), Call{Conn: conn})
		require.Equal(t, KindClosed, r.Kind)
		require.ErrorContains(t, r.Err, "closed it at rest")
		r = c.Do(t.Context(), Call{})
		require.True(t, r.OK())
		require.False(t, r.Retried, "a connection that is known to be dead is not tried")
	})
}

func TestOneCallAtATimeOnAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memoryServer(t, Options{}, func(_ int, _ net.Conn, br *bufio.Reader) { _, _ = io.Copy(io.Discard, br) })
		conn, err := c.Open(t.Context())
		require.NoError(t, err)
		first := make(chan *Reply)
		go func() { first <- c.Do(t.Context(), Call{Conn: conn, Timeout: time.Second}) }()
		synctest.Wait()
		require.Equal(t, KindInvalid, c.Do(t.Context(), Call{Conn: conn}).Kind)
		require.Equal(t, KindTimeout, (<-first).Kind)
		require.Error(t, conn.err())
		conn.Close()
	})
}

// An endpoint may answer before it has read the request, and close.
func TestEarlyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memoryServer(t, Options{}, func(_ int, conn net.Conn, br *bufio.Reader) {
			_, _ = br.ReadString('\n')
			_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
			<-t.Context().Done()
		})
		r := c.Do(t.Context(), Call{Body: make([]byte, 4<<20), Timeout: time.Minute})
		require.NoError(t, r.Err)
		require.Equal(t, 413, r.Status)
		require.True(t, r.ConnClosed)
		require.Less(t, r.Total, time.Second)
	})
}

func TestCuts(t *testing.T) {
	body := strings.Repeat("b", 1000)
	tests := []struct {
		name  string
		call  Call
		bytes int // of the body that the endpoint saw
	}{
		{"after the request", Call{Cut: Cut{CutAfterRequest: true}}, 1000},
		{"inside the request", Call{Cut: Cut{CutRequestAfter: 300}}, 300},
		{"after all of the body", Call{Cut: Cut{CutRequestAfter: 2000}}, 1000},
		{"inside the response", Call{Cut: Cut{CutResponseAfter: 20}}, 1000},
		{"inside a chunked request", Call{Cut: Cut{CutRequestAfter: 300}, Chunked: true}, 300 + 2*len("96\r\n\r\n")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := make(chan int, 1)
				c := memoryServer(t, Options{}, func(_ int, conn net.Conn, br *bufio.Reader) {
					for {
						if line, err := br.ReadString('\n'); err != nil || line == "\r\n" {
							break
						}
					}
					if test.call.CutResponseAfter > 0 {
						_, _ = io.CopyN(io.Discard, br, 1000)
						_, _ = io.WriteString(conn, ok("{}"))
						got <- 1000
						return
					}
					n, err := io.Copy(io.Discard, br)
					if err != nil {
						n = -1
					}
					got <- int(n)
				})
				test.call.Body = []byte(body)
				r := c.Do(t.Context(), test.call)
				require.Equal(t, KindCut, r.Kind, "%v", r.Err)
				require.True(t, errors.Is(r.Err, errCut))
				require.True(t, r.ConnClosed)
				require.Equal(t, test.bytes, <-got)
				if test.call.CutResponseAfter > 0 {
					require.EqualValues(t, 20, r.Received)
				}
			})
		})
	}
}

func TestHandlerInMemory(t *testing.T) {
	var die func()
	dial, stop := ServeHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("handler")
		case "/last":
			die()
		}
		_, _ = io.WriteString(w, r.RemoteAddr)
	}))
	die = stop
	c := newClient(t, Options{URL: "http://memory/", Dial: dial})
	require.Equal(t, KindClosed, c.Do(t.Context(), Call{URL: "http://memory/panic"}).Kind)
	r := c.Do(t.Context(), Call{})
	require.NoError(t, r.Err)
	require.Equal(t, "127.0.0.1:1", string(r.Body))
	r = c.Do(t.Context(), Call{URL: "http://memory/last"})
	require.Equal(t, KindRefused, r.Kind)
	require.False(t, r.Unsent(), "the endpoint died of it")
	require.True(t, c.Do(t.Context(), Call{}).Unsent())
}
