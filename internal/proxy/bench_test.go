package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/internal/proxy"
)

// quickEndpoint answers every request with the same bytes, as cheaply as Go can.
func quickEndpoint(b *testing.B) string {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { ln.Close() })
	const result = `{"jsonrpc":"2.0","id":"7","result":{"success":true}}`
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(result), result)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 4096)
				for {
					if _, err := conn.Read(buf); err != nil {
						return
					}
					if _, err := conn.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// benchRequest is a planning call as the service makes it.
var benchRequest = func() []byte {
	const body = `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"}`
	return fmt.Appendf(nil, "POST / HTTP/1.1\r\nUser-Agent: x\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\nAccept: */*\r\nHost: a\r\nAuthorization: Bearer abcdefghijklmnop\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

// caller is one connection that sends and waits.
type caller struct {
	conn net.Conn
	br   *bufio.Reader
}

func connected(b *testing.B, address string) *caller {
	b.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(b, err)
	b.Cleanup(func() { conn.Close() })
	return &caller{conn, bufio.NewReader(conn)}
}

func (c *caller) call(b *testing.B) time.Duration {
	b.Helper()
	began := time.Now()
	if _, err := c.conn.Write(benchRequest); err != nil {
		b.Fatal(err)
	}
	length := 0
	for {
		line, err := c.br.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		if line == "\r\n" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	if _, err := c.br.Discard(length); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkAddedLatency sends calls in turn directly and through a proxy that records
// and judges, and reports what the proxy adds.
func BenchmarkAddedLatency(b *testing.B) {
	endpoint := quickEndpoint(b)
	passive, err := destination.NewPassive(destination.Target{URL: "http://" + endpoint + "/"}, conformance.Options{})
	require.NoError(b, err)
	recorder, err := proxy.NewRecorder(proxy.RecorderConfig{Passive: passive})
	require.NoError(b, err)
	address := serving(b, proxy.Config{To: "http://" + endpoint + "/", Observer: recorder})
	direct, through := connected(b, endpoint), connected(b, address)
	var plain, passed []time.Duration
	for b.Loop() {
		plain = append(plain, direct.call(b))
		passed = append(passed, through.call(b))
	}
	slices.Sort(plain)
	slices.Sort(passed)
	at := func(all []time.Duration, share float64) float64 {
		return float64(all[min(len(all)-1, int(share*float64(len(all))))].Microseconds())
	}
	b.ReportMetric(at(passed, 0.5)-at(plain, 0.5), "added-p50-µs")
	b.ReportMetric(at(passed, 0.99)-at(plain, 0.99), "added-p99-µs")
}

func serving(b *testing.B, cfg proxy.Config) string {
	b.Helper()
	p, err := proxy.New(cfg)
	require.NoError(b, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	go func() { _ = p.Serve(b.Context(), ln) }()
	b.Cleanup(func() {
		ln.Close()
		p.Close()
		if c := p.Counts(); c.NotJudged > 0 {
			b.Logf("%d of %d calls were not judged", c.NotJudged, c.Passed)
		}
	})
	return ln.Addr().String()
}
