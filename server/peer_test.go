package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
)

// BenchmarkAgainstMock reads one sync and lists 100 of 10,000 over TCP from
// this service, with tokens checked, requests held against the document, and
// everything stored; and the same from a stateless mock of the same document,
// Prism, where `prism` is installed (npm: @stoplight/prism-cli). Both get the
// same client and connections; compare req/s within one run.
func BenchmarkAgainstMock(b *testing.B) {
	w := newWorld(b, func(c *Config) { c.Development = false })
	first := w.newSync()
	w.copies(first, 10_000-1)
	own := httptest.NewServer(w.s)
	defer own.Close()
	targets := []struct{ name, address, base string }{{"destkit", own.Listener.Addr().String(), api.BasePath}}
	if address := startPrism(b); address != "" {
		targets = append(targets, struct{ name, address, base string }{"prism", address, ""})
	}
	for _, work := range []struct{ name, path string }{
		{"one", fmt.Sprintf("/syncs/%d", first)},
		{"list100", "/syncs?per_page=100&page=37"},
	} {
		for _, target := range targets {
			b.Run(work.name+"/"+target.name, func(b *testing.B) {
				request := "GET " + target.base + work.path + " HTTP/1.1\r\nHost: " + target.address + "\r\nAuthorization: Bearer " + w.key + "\r\n\r\n"
				hammer(b, target.address, []byte(request))
			})
		}
	}
}

// hammer sends one request over and over on 8 connections.
func hammer(b *testing.B, address string, request []byte) {
	var bad atomic.Int64
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			bad.Add(1)
			return
		}
		defer conn.Close()
		reader := bufio.NewReaderSize(conn, 256<<10)
		for pb.Next() {
			if _, err := conn.Write(request); err != nil {
				bad.Add(1)
				return
			}
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				bad.Add(1)
				return
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
				bad.Add(1)
			}
			response.Body.Close()
		}
	})
	require.Zero(b, bad.Load(), "some answers were not 200")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// startPrism runs the mock until the benchmark ends; "" when it is missing.
func startPrism(b *testing.B) string {
	prism, err := exec.LookPath("prism")
	if err != nil {
		b.Log("prism is not installed (npm install -g @stoplight/prism-cli): measured without a peer")
		return ""
	}
	document := filepath.Join(b.TempDir(), "openapi.yaml")
	require.NoError(b, writeFile(document, openapi.REST()))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	// Its log of every request would cost it a good part of its speed.
	cmd := exec.Command(prism, "mock", "-p", port, "-v", "warn", document)
	out, err := cmd.StderrPipe()
	require.NoError(b, err)
	cmd.Stdout = cmd.Stderr
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	go func() { _, _ = io.Copy(io.Discard, out) }()
	for {
		response, err := http.Get("http://" + address + "/syncs/1")
		if err == nil {
			response.Body.Close()
			return address
		}
		require.True(b, strings.Contains(err.Error(), "refused"), err)
	}
}
