package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// FuzzReply puts any bytes to the reader of replies. What it calls a whole reply,
// net/http must read in the same way, to the last byte.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.0 200 OK\r\n\r\nabc", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08",
		"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\na", "HTTP/1.1 429 Slow\r\nRetry-After: 1\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	const most = 1 << 16
	f.Fuzz(func(t *testing.T, text []byte) {
		end, err := newEndpoint(Target{URL: "http://127.0.0.1:1/"}, Transport{Timeout: time.Minute, MaxReply: most})
		require.NoError(t, err)
		near, far := net.Pipe()
		end.transport.Dial = func(context.Context, string, string) (net.Conn, error) { return near, nil }
		go func() {
			defer far.Close()
			if _, err := http.ReadRequest(bufio.NewReader(far)); err == nil {
				_, _ = far.Write(text)
			}
		}()
		l := newLink(t.Context(), end)
		defer l.close()
		require.NoError(t, l.connect())
		h, body, err := l.exchange([]byte("POST / HTTP/1.1\r\nHost: fuzz.test\r\nContent-Length: 0\r\n\r\n"))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.LessOrEqual(t, len(body), most)
		in := bufio.NewReader(bytes.NewReader(text))
		for {
			want, err := http.ReadResponse(in, &http.Request{Method: http.MethodPost})
			require.NoError(t, err, "net/http takes it for no reply")
			if want.StatusCode/100 == 1 {
				continue
			}
			got, err := io.ReadAll(want.Body)
			require.NoError(t, err)
			require.Equal(t, want.StatusCode, h.status)
			require.Equal(t, string(got), string(body))
			return
		}
	})
}

// FuzzResult: a result file that is taken can be shown and compared, whatever it says.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"schema_version":1,"load":{"mode":"closed"}}`, `{"schema_version":9}`, `[]`, ``, `{"schema_version":1,"load":{"mode":"rate","rate":1e308},"series":[null]}`,
		`{"schema_version":1,"load":{"mode":"closed"},"histograms":{"latency":"HISTFAAAACF42pNpmSzMwMDAxAABzFCaEUoz2X+AMIKZAEARAtM=","service_time":""}}`,
		`{"keys":[{"object":"contact","field":"email","count":3}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "result.json")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		if keys, err := ReadKeys(path); err == nil {
			for _, k := range keys {
				require.NotEmpty(t, k.Object)
				require.GreaterOrEqual(t, k.Count, int64(0))
			}
		}
		r, err := ReadResult(path)
		if err != nil {
			return
		}
		require.NoError(t, WriteCSV(io.Discard, r))
		_ = WriteJSON(io.Discard, r)           // refuses what JSON has no word for
		_ = WriteHistogramLog(io.Discard, r)   // refuses histograms that are none
		_, _ = Merge([]*Result{r, r})          // the same
		require.NotNil(t, Compare(r, r, 0.05)) // nothing to refuse
		require.Empty(t, Compare(r, r, 0.05).Apart)
	})
}

// FuzzTemplate: a template that is taken makes records, each of them JSON with the key of
// the run.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		`{"email":"{{key}}","age":"{{int 18 90}}","city":"{{pick Oslo Rome}}"}`, `{"age":"{{float 1 2}}","city":["{{hex 4}}",null]}`, `{"city":"{{int 9 1}}"}`,
		`{"city":"{{int -9223372036854775808 9223372036854775807}}"}`, `{"city":"{{hex 999999999}}"}`, `{"city":"{{words"}`, `{"other":1}`, `[]`, `{"age":1e999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		email, age, city := rpc.Field{APIName: "email", Type: rpc.TypeString}, rpc.Field{APIName: "age", Type: rpc.TypeInteger}, rpc.Field{APIName: "city", Type: rpc.TypeString}
		m := fuzzMaker(email, age, city)
		rows, err := m.fromTemplate(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, rows)
		for _, r := range rows[:3] {
			require.NoError(t, rpc.Valid(r.text), "%s", r.text)
		}
	})
}

func fuzzMaker(fields ...rpc.Field) *maker {
	return &maker{
		random: rand.New(rand.NewPCG(1, 2)), keys: Keys{Template: "k-{n}@fuzz.test", From: 1, To: 1000},
		object: object{fields: fields, mapped: fields, identifier: fields[0]},
	}
}
