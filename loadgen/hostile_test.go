package loadgen

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// hostile is a target whose planning is fine and whose batches are answered by
// hand, on the bare connection. answer gets the request and returns whether the
// connection goes on.
func hostile(t *testing.T, answer func(conn net.Conn, id string, keys []string) bool) string {
	t.Helper()
	good := simulator(t, destsim.Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serveHostile(conn, good, answer)
			}()
		}
	}()
	return "http://" + ln.Addr().String() + "/"
}

func serveHostile(conn net.Conn, good string, answer func(net.Conn, string, []string) bool) {
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		if !strings.Contains(string(body), `"sync_batch"`) {
			resp, err := http.Post(good, "application/json", strings.NewReader(string(body)))
			if err != nil {
				return
			}
			_ = resp.Write(conn)
			resp.Body.Close()
			continue
		}
		id := string(body[len(body)-34 : len(body)-2])
		var keys []string
		for part := range strings.SplitSeq(string(body), `{"email":"`) {
			if key, _, ok := strings.Cut(part, `"`); ok && strings.HasPrefix(key, "zz-load-") {
				keys = append(keys, key)
			}
		}
		if !answer(conn, id, keys) {
			return
		}
	}
}

// results is a right body for some keys.
func results(id string, keys []string) string {
	var entries []string
	for _, k := range keys {
		entries = append(entries, `{"identifier":"`+k+`","success":true}`)
	}
	return `{"jsonrpc":"2.0","id":"` + id + `","result":{"record_results":[` + strings.Join(entries, ",") + `]}}`
}

// say writes a response with a length.
func say(conn net.Conn, head string, body string) bool {
	_, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body)
	return err == nil
}

func TestHostileTargets(t *testing.T) {
	for _, c := range []struct {
		name, kind, words string
		answer            func(conn net.Conn, id string, keys []string) bool
	}{
		{"hangs", wire.KindTimeout, "no whole reply in time", func(net.Conn, string, []string) bool { select {} }},
		{"closes", wire.KindClosed, "without responding", func(net.Conn, string, []string) bool { return false }},
		{"resets", wire.KindReset, "reset", func(conn net.Conn, _ string, _ []string) bool {
			_ = conn.(*net.TCPConn).SetLinger(0)
			return false
		}},
		{"garbage", wire.KindHTTP, "is not HTTP", func(conn net.Conn, _ string, _ []string) bool {
			_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.2p1\r\n"))
			return false
		}},
		{"an HTML page", wire.KindJSON, "", func(conn net.Conn, _ string, _ []string) bool { return say(conn, "200 OK", "<html>") }},
		{"another status", wire.KindStatus, "HTTP status 503: busy", func(conn net.Conn, _ string, _ []string) bool {
			return say(conn, "503 Service Unavailable", "busy")
		}},
		{"a status without a word", wire.KindStatus, "HTTP status 502", func(conn net.Conn, _ string, _ []string) bool { return say(conn, "502 Bad Gateway", "") }},
		{"a redirect", wire.KindStatus, "HTTP status 302, a redirect, which is not followed", func(conn net.Conn, _ string, _ []string) bool {
			_, err := conn.Write([]byte("HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/?token=t\r\nContent-Length: 0\r\n\r\n"))
			return err == nil
		}},
		{"throttles", wire.KindThrottled, "429", func(conn net.Conn, _ string, _ []string) bool { return say(conn, "429 Too Many", "") }},
		{"throttles in an envelope", wire.KindThrottled, "HTTP status 429, Retry-After \"\": error -32000: slow", func(conn net.Conn, id string, _ []string) bool {
			return say(conn, "429 Too Many", `{"jsonrpc":"2.0","id":"`+id+`","error":{"code":-32000,"message":"slow"}}`)
		}},
		{"is away in an envelope", wire.KindThrottled, "HTTP status 503, Retry-After \"\": error -32000: away", func(conn net.Conn, id string, _ []string) bool {
			return say(conn, "503 Service Unavailable", `{"jsonrpc":"2.0","id":"`+id+`","error":{"code":-32000,"message":"away"}}`)
		}},
		{"an error with a status", wire.KindRPC, "error -32000: down", func(conn net.Conn, id string, _ []string) bool {
			return say(conn, "500 Oops", `{"jsonrpc":"2.0","id":"`+id+`","error":{"code":-32000,"message":"down"}}`)
		}},
		{"a longer length", wire.KindTruncated, "middle of a reply", func(conn net.Conn, id string, keys []string) bool {
			body := results(id, keys)
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body)+5, body)
			return false
		}},
		{"a shorter length", wire.KindHTTP, "longer than its Content-Length", func(conn net.Conn, id string, keys []string) bool {
			body := results(id, keys)
			_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body)-5, body)
			return err == nil
		}},
		{"two lengths", wire.KindHTTP, "Content-Length", func(conn net.Conn, _ string, _ []string) bool {
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"))
			return false
		}},
		{"a length that is none", wire.KindHTTP, "Content-Length", func(conn net.Conn, _ string, _ []string) bool {
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"))
			return false
		}},
		{"a huge length", wire.KindTooLarge, "more than", func(conn net.Conn, _ string, _ []string) bool {
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"))
			return false
		}},
		{"without end", wire.KindTooLarge, "more than", func(conn net.Conn, _ string, _ []string) bool {
			_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
			for err == nil {
				_, err = conn.Write(make([]byte, 64<<10))
			}
			return false
		}},
		{"chunks without end", wire.KindTooLarge, "more than", func(conn net.Conn, _ string, _ []string) bool {
			_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
			for err == nil {
				_, err = conn.Write([]byte("400\r\n" + strings.Repeat(" ", 0x400) + "\r\n"))
			}
			return false
		}},
		{"a head without end", wire.KindHTTP, "head of the reply", func(conn net.Conn, _ string, _ []string) bool {
			_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
			for err == nil {
				_, err = conn.Write([]byte("X-More: more\r\n"))
			}
			return false
		}},
		{"a wrong chunk", wire.KindHTTP, "length of a chunk", func(conn net.Conn, _ string, _ []string) bool {
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"))
			return false
		}},
		{"drops every result", wire.KindMissing, "no result", func(conn net.Conn, id string, _ []string) bool { return say(conn, "200 OK", results(id, nil)) }},
		{"another id", wire.KindEnvelope, "id", func(conn net.Conn, _ string, keys []string) bool { return say(conn, "200 OK", results("x", keys)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := against(hostile(t, c.answer))
			o.Count, o.Connections = 2, 1
			o.Transport.MaxReply = 1 << 20
			o.Transport.Timeout = 300 * time.Millisecond
			if c.kind != wire.KindTimeout {
				o.Transport.Timeout = 20 * time.Second
			}
			r, err := Run(context.Background(), o)
			require.NoError(t, err)
			require.EqualValues(t, 2, r.Requests)
			require.Zero(t, r.Acknowledged)
			require.Contains(t, r.ErrorsByKind, c.kind, "%v", r.ErrorMessages)
			require.NotZero(t, r.Errors)
			require.Contains(t, r.ErrorMessages[0].Message, c.words)
			whole := c.kind == wire.KindTimeout || c.kind == wire.KindMissing
			require.Equal(t, whole, r.Latency.Max > 0, "an error in no time is no latency")
			require.NotContains(t, fmt.Sprint(r.ErrorMessages), "127.0.0.1:", "ports make every message another one")
		})
	}
}

func TestBodiesOfEveryKind(t *testing.T) {
	for name, answer := range map[string]func(conn net.Conn, id string, keys []string) bool{
		"chunks": func(conn net.Conn, id string, keys []string) bool {
			var b strings.Builder
			b.WriteString("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n")
			for part := range strings.SplitAfterSeq(results(id, keys), ",") {
				b.WriteString(strconv.FormatInt(int64(len(part)), 16) + ";x=y\r\n" + part + "\r\n")
			}
			b.WriteString("0\r\nX-Trailer: 1\r\n\r\n")
			_, err := conn.Write([]byte(b.String()))
			return err == nil
		},
		"to the end": func(conn net.Conn, id string, keys []string) bool {
			_, _ = conn.Write([]byte("HTTP/1.0 200 OK\r\n\r\n" + results(id, keys)))
			return false
		},
		"byte by byte": func(conn net.Conn, id string, keys []string) bool {
			body := results(id, keys)
			for _, c := range []byte(fmt.Sprintf("HTTP/1.1 200\r\nContent-Length: %d\r\n\r\n%s", len(body), body)) {
				if _, err := conn.Write([]byte{c}); err != nil {
					return false
				}
			}
			return true
		},
		"closing": func(conn net.Conn, id string, keys []string) bool {
			body := results(id, keys)
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := against(hostile(t, answer))
			o.Count, o.Connections = 3, 1
			r, err := Run(context.Background(), o)
			require.NoError(t, err)
			require.Empty(t, r.ErrorMessages)
			require.EqualValues(t, 15, r.Acknowledged)
		})
	}
}

// TestPlanningInWords: errors of a target before the load are reported plainly.
func TestPlanningInWords(t *testing.T) {
	for reply, want := range map[string]string{
		"HTTP/1.1 302 Found\r\nLocation: http://x.example/?k=t\r\nContent-Length: 0\r\n\r\n": "call list_objects: HTTP status 302, a redirect, which is not followed",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope":                            "call list_objects: HTTP status 404: nope",
		"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n":                             "no token was sent, and the endpoint answers HTTP 401",
		"SSH-2.0-OpenSSH_9.2p1\r\n\r\n":                                                      "call list_objects: the reply is not HTTP",
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>":                                 "call list_objects: decode response: not the start of a value",
		"":     "call list_objects: the server closed the connection without responding",
		"hang": "call list_objects: no whole reply in 200ms (--planning-timeout)",
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { ln.Close() })
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil && reply != "hang" {
					_, _ = conn.Write([]byte(reply))
					conn.Close()
				}
			}
		}()
		o := against("http://" + ln.Addr().String() + "/?key=hush-hush")
		if reply == "hang" {
			o.Transport.PlanningTimeout = 200 * time.Millisecond
		}
		_, err = Run(context.Background(), o)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "127.0.0.1")
		require.NotContains(t, err.Error(), "hush")
	}
}

// TestASecretIsNotCut: a message that is shortened in the middle of a secret
// shows no part of it.
func TestASecretIsNotCut(t *testing.T) {
	const token = "hush-0123456789abcdef"
	for before := 40; before <= 90; before += 5 {
		said := strings.Repeat("x", before) + token + " and more, so that it is surely longer than what is shown of it"
		o := against(hostile(t, func(conn net.Conn, _ string, _ []string) bool { return say(conn, "500 Oops", said) }))
		o.Target.Token, o.Count, o.Connections = token, 1, 1
		r, err := Run(context.Background(), o)
		require.NoError(t, err)
		require.Contains(t, r.ErrorMessages[0].Message, "HTTP status 500: xxx")
		require.NotContains(t, r.ErrorMessages[0].Message, token[:4])
	}
	e, err := wire.NewEndpoint(wire.Target{URL: "http://127.0.0.1/", Token: token}, wire.Transport{})
	require.NoError(t, err)
	const whole, part = "$DESTKIT_TOKEN", "[part of $DESTKIT_TOKEN]"
	for text, want := range map[string]string{
		"a " + token + " b": "a " + whole + " b", "a hush-01…": "a " + part + "…", `"a hush-0123…"`: `"a ` + part + `…"`,
		"a hush-01 is over": "a hush-01 is over", "hus": "hus", "": "", "hush-hush-0123…": "hush-" + part + "…",
		"a " + base64.StdEncoding.EncodeToString([]byte("Bearer "+token)): "a " + whole,
	} {
		require.Equal(t, want, e.Redact(text))
	}
}

// TestNothingMeasuredIsNoSpeed: a target that refuses everything at once breaks
// each limit of a time.
func TestNothingMeasuredIsNoSpeed(t *testing.T) {
	o := against(hostile(t, func(conn net.Conn, _ string, _ []string) bool { return say(conn, "500 Oops", "no") }))
	o.Count, o.Connections = 2, 1
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"p99>500ms":       "FAILED: p99>500ms cannot be told, no request was answered with results",
		"service-max<1ms": "FAILED: service-max<1ms cannot be told, no request was answered with results",
		"requests<2":      "ok: requests 2 (limit: requests<2)",
	} {
		limit, err := ParseThreshold(text)
		require.NoError(t, err)
		limit.Check(r)
		require.Equal(t, want, limit.String())
	}
}

func TestNobodyListens(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + ln.Addr().String() + "/a-very-secret-path?key=hush-hush"
	ln.Close()
	_, err = Run(context.Background(), against(url))
	require.ErrorContains(t, err, "nothing listens at "+ln.Addr().String())
	require.NotContains(t, err.Error(), "hush-hush")
	require.NotContains(t, err.Error(), "very-secret")
}

func TestExhaustionIsSaidAsSuch(t *testing.T) {
	for err, kind := range map[error]string{
		syscall.EMFILE: wire.KindDescriptors, syscall.ENFILE: wire.KindDescriptors, syscall.EADDRNOTAVAIL: wire.KindPorts,
		syscall.ECONNREFUSED: wire.KindRefused, syscall.EHOSTUNREACH: wire.KindConnect, context.DeadlineExceeded: wire.KindTimeout,
	} {
		f := wire.Dial(&net.OpError{Op: "dial", Net: "tcp", Err: err})
		require.Equal(t, kind, f.Kind)
		m := newMeasure(0, time.Second)
		m.tallies["x"] = &tally{Kind: kind, Count: 3}
		own := kind == wire.KindDescriptors || kind == wire.KindPorts
		require.Equal(t, own, m.generator().Limited, "%s is the generator's own limit", kind)
	}
	require.Equal(t, wire.KindDNS, wire.Dial(&net.OpError{Err: &net.DNSError{Err: "no such host"}}).Kind)
}
