package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func printOf(n int) (p Fingerprint) {
	binary.LittleEndian.PutUint64(p[:], uint64(n)*0x9E3779B97F4A7C15)
	return p
}

// fill runs a full run of so many rows in batches of a thousand.
func fill(t testing.TB, r *Run, rows int, payload []byte) {
	b := Batch{Operation: "upsert", StartedAt: time.UnixMicro(1), CompletedAt: time.UnixMicro(2), Records: make([]Record, 1000)}
	keys := make([]byte, 0, 16*len(b.Records))
	for i := 0; i < rows; i += len(b.Records) {
		keys = keys[:0]
		for k := range b.Records {
			at := len(keys)
			keys = strconv.AppendInt(keys, int64(100_000_000+i+k), 10)
			b.Records[k] = Record{Key: keys[at:len(keys):len(keys)], Print: printOf(i + k), Verdict: Acknowledged, Payload: payload}
		}
		require.NoError(t, r.Append(b))
	}
}

func count(t testing.TB, s *Sync) int {
	c, err := s.Scan()
	require.NoError(t, err)
	defer c.Close()
	for n := 0; ; n++ {
		if _, err := c.Next(); errors.Is(err, io.EOF) {
			return n
		} else if err != nil {
			require.NoError(t, err)
		}
	}
}

// BenchmarkRun is what the ledger costs a run of a million rows, a thousand durable
// appends included: processor seconds of this process, and wall seconds, of each
// step.
func BenchmarkRun(b *testing.B) {
	for name, payload := range map[string][]byte{"keys": nil, "payloads": bytes.Repeat([]byte(`{"id":1,"x":"y"}`), 18)} {
		b.Run(name, func(b *testing.B) { benchmarkRun(b, payload) })
	}
}

func benchmarkRun(b *testing.B, payload []byte) {
	const rows = 1_000_000
	for b.Loop() {
		l := onDisk.open(b)
		s := l.Sync(1)
		var r *Run
		begin := func(run int64) func() {
			return func() {
				r = begin(b, s, run, Meta{})
			}
		}
		finish := func() { require.NoError(b, r.Finish(Meta{})) }
		measure(b, "first", begin(1))
		measure(b, "append", func() { fill(b, r, rows, payload) })
		require.NoError(b, r.Close())
		measure(b, "resume", begin(1))
		measure(b, "finish", finish)
		measure(b, "scan", func() { require.Equal(b, rows, count(b, s)) })
		measure(b, "begin", begin(2))
		measure(b, "finish-unchanged", finish)
		begin(3)()
		fill(b, r, rows/100, payload)
		measure(b, "finish-1%", finish)
		require.NoError(b, s.Forget())
		require.NoError(b, l.Close())
	}
}

func measure(b *testing.B, step string, work func()) {
	start, before := time.Now(), cpu()
	work()
	b.ReportMetric(time.Since(start).Seconds(), step+"-s")
	b.ReportMetric((cpu() - before).Seconds(), step+"-cpu-s")
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
