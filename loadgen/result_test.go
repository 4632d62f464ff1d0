package loadgen

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// measured is a result with samples at hand: one every 10 ms, each of which
// took so many milliseconds.
func measured(t *testing.T, milliseconds ...int64) *Result {
	t.Helper()
	m := newMeasure(0, time.Second)
	m.stopped = int64(time.Second)
	for i, ms := range milliseconds {
		start := int64(i) * 10 * int64(time.Millisecond)
		m.add(&sample{intended: start, start: start, end: start + ms*int64(time.Millisecond), records: 10, good: 9})
	}
	m.tallies["a"] = &tally{Kind: wire.KindRecordRefused, Message: "full", Count: int64(len(milliseconds))}
	m.finish(m.stopped)
	r := &Result{SchemaVersion: schemaVersion, Started: time.Unix(1_800_000_000, 0).UTC(), Load: LoadInfo{Mode: "closed", BatchSize: 10, Run: "r"}}
	require.NoError(t, r.take(m))
	return r
}

func TestPercentiles(t *testing.T) {
	var all []int64
	for i := range int64(100) {
		all = append(all, i+1)
	}
	r := measured(t, all...)
	require.InDelta(t, 50, r.Latency.P50, 0.1)
	require.InDelta(t, 99, r.Latency.P99, 0.1)
	require.InDelta(t, 100, r.Latency.Max, 0.1)
	require.InDelta(t, 1, r.Latency.Min, 0.1)
	require.InDelta(t, 50.5, r.Latency.Mean, 0.1)
	require.EqualValues(t, 100, r.Requests)
	require.EqualValues(t, 100, r.Errors)
	require.InDelta(t, 0.1, shares["errors"](r), 1e-9)
	// Requests that ended after the last second are counted, but not in the rates.
	require.Less(t, r.RequestsPerSecond, 100.0)
	sum := 0.0
	for _, p := range r.Series {
		sum += p.RequestsPerSecond
	}
	require.Greater(t, len(r.Series), 10)
	require.NotZero(t, sum)
}

func TestTheSeriesHasEveryRequest(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := against(url)
	o.Closed, o.Count, o.Connections = false, 0, 4
	o.Stages, o.Duration = []Stage{{300 * time.Millisecond, 100, 500}}, 300*time.Millisecond
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	sum, before := 0.0, 0.0
	for _, p := range r.Series {
		sum += p.RequestsPerSecond * (p.At - before)
		before = p.At
	}
	require.InDelta(t, float64(r.Requests), sum, 0.5)
	require.InDelta(t, 300, r.Load.Rate, 1e-9)
}

func TestFilesOfAResult(t *testing.T) {
	r := measured(t, 1, 2, 3, 400)
	r.Target.Address = "https://<script>.example"
	r.ErrorMessages[0].Message = `<img src=x onerror="alert(1)">`
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	var text bytes.Buffer
	require.NoError(t, r.WriteJSON(&text))
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	again, err := ReadResult(path)
	require.NoError(t, err)
	require.Equal(t, path, again.file)
	again.file = ""
	require.Equal(t, r, again)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(text.Bytes(), &keys))
	for _, name := range []string{"schema_version", "requests_per_second", "records_per_second", "requests", "records", "errors", "errors_by_kind", "latency", "service_time"} {
		require.Contains(t, keys, name)
	}

	var table bytes.Buffer
	require.NoError(t, r.WriteCSV(&table))
	lines, err := csv.NewReader(&table).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, len(r.Series)+1)

	var log bytes.Buffer
	require.NoError(t, r.WriteHistogramLog(&log))
	reader := hdrhistogram.NewHistogramLogReader(&log)
	h, err := reader.NextIntervalHistogram()
	require.NoError(t, err)
	require.Equal(t, "latency", h.Tag())
	require.EqualValues(t, 4, h.TotalCount())

	for content, words := range map[string]string{
		"": "it is empty", "{}": "no JSON result", "{\n oops}": "line 2, column 2: not JSON: a member must start with a string",
		`{"schema_version":99,"load":"x"}`:             "written by a newer destkit: schema_version 99, this one reads up to 1",
		`{"schema_version":"1","suite":"destination"}`: "schema_version must be a whole number, not a string; expected the JSON result of a load",
		`[1]`: "line 1, column 1: the value must be an object, not a list; expected the JSON result of a load",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := ReadResult(path)
		require.ErrorContains(t, err, words)
		require.NotContains(t, err.Error(), "Go ")
	}
}

func TestCompare(t *testing.T) {
	before, after := measured(t, 1, 2, 3, 4), measured(t, 2, 4, 6, 8)
	c := Compare(before, after, 0.05)
	require.True(t, c.Worse)
	require.Empty(t, c.Apart)
	byName := map[string]Difference{}
	for _, d := range c.Differences {
		byName[d.Name] = d
	}
	require.True(t, byName["latency p50"].Worse)
	require.InDelta(t, 1, byName["latency p50"].Change, 0.02)
	require.False(t, byName["latency max"].Worse, "one request does not decide")
	require.False(t, byName["requests per second"].Worse)
	require.False(t, Compare(before, before, 0).Worse)
	require.False(t, Compare(after, before, 0.05).Worse)
	after.Load.Connections = 9
	c = Compare(before, after, 0.05)
	require.Equal(t, []string{"connections: 0, then 9"}, c.Apart)
	require.Equal(t, []string{"not the same load: connections: 0, then 9"}, c.NotComparable())
	require.False(t, c.Worse, "latency of another load is not worse")
	after.Acknowledged -= 2
	require.True(t, Compare(before, after, 0.05).Worse, "lost records can always be compared")
	after = measured(t, 2, 4, 6, 8)
	after.Generator.CPUs++
	c = Compare(before, after, 0.05)
	require.Len(t, c.Apart, 1)
	require.Empty(t, c.NotComparable(), "another machine is said, and compared")
	require.True(t, c.Worse)
	after.Latency, after.ServiceTime = Times{}, Times{}
	require.Equal(t, []string{"the second load has no complete reply to measure"}, Compare(before, after, 0.05).NotComparable())
}

func TestMerge(t *testing.T) {
	a, b := measured(t, 1, 1, 1), measured(t, 100)
	b.Load.Run = "other"
	b.Started = a.Started.Add(200 * time.Millisecond)
	m, err := Merge([]*Result{a, b})
	require.NoError(t, err)
	require.Equal(t, []int64{4, 4, 4}, []int64{m.Requests, m.Errors, m.ErrorsByKind[wire.KindRecordRefused]})
	require.Len(t, m.ErrorMessages, 1)
	require.InDelta(t, 1, m.Latency.P50, 0.1)
	require.InDelta(t, 100, m.Latency.Max, 0.1)
	require.InDelta(t, a.RequestsPerSecond+b.RequestsPerSecond, m.RequestsPerSecond, 1e-9)
	require.InDelta(t, 1.2, m.Seconds, 1e-9)
	require.Equal(t, []int64{3, 3}, []int64{a.Errors, a.ErrorMessages[0].Count}, "what was given is left alone")
	b.Started = a.Started.Add(time.Hour)
	_, err = Merge([]*Result{a, b})
	require.ErrorContains(t, err, "overlaps no other")
	b.Load.Run, b.Started = a.Load.Run, a.Started
	_, err = Merge([]*Result{a, b})
	require.ErrorContains(t, err, "same run")
	b.Load.BatchSize = 3
	_, err = Merge([]*Result{a, b})
	require.ErrorContains(t, err, "another batch size")
	_, err = Merge([]*Result{a})
	require.ErrorContains(t, err, "two results or more")
}

func TestMergeKeepsReplicas(t *testing.T) {
	figures := func(address string, ms ...int) ReplicaFigures {
		h := histogram.New()
		for _, n := range ms {
			histogram.Record(h, int64(n)*1e6)
		}
		text, err := histogram.Encode(h)
		require.NoError(t, err)
		return ReplicaFigures{Address: address, Connections: 1, Requests: int64(len(ms)), RequestsPerSecond: float64(len(ms)), Records: 2 * int64(len(ms)), Acknowledged: int64(len(ms)), FailedRequests: 1, Latency: times(h), Histogram: text}
	}
	a, b, c := measured(t, 1, 1, 1), measured(t, 100), measured(t, 7)
	b.Load.Run, c.Load.Run = "other", "third"
	a.Target.Address, b.Target.Address, c.Target.Address = "http://a", "http://a", "http://a"
	// Two processes behind one address stay two.
	a.Replicas = []ReplicaFigures{figures("http://a", 1, 1), figures("http://b", 1), figures("http://b", 5)}
	b.Replicas = []ReplicaFigures{figures("http://a", 100), figures("http://b", 50), figures("http://b", 60)}
	m, err := Merge([]*Result{a, b, c})
	require.NoError(t, err)
	require.Equal(t, []string{"http://b", "http://b"}, m.Target.Replicas)
	require.Len(t, m.Replicas, 3)
	first := m.Replicas[0]
	require.EqualValues(t, 2+1+c.Requests, first.Requests, "the run without replicas counts with the endpoint")
	require.Equal(t, 1+1+c.Load.Connections, first.Connections)
	require.InDelta(t, 100, first.Latency.Max, 0.1)
	require.InDelta(t, 1, first.Latency.Min, 0.1)
	require.InDelta(t, 1, first.Latency.P50, 0.1, "of all requests, and no mean of two percentiles")
	require.InDelta(t, 50, m.Replicas[1].Latency.Max, 0.1)
	require.InDelta(t, 60, m.Replicas[2].Latency.Max, 0.1)
	require.EqualValues(t, 2, m.Replicas[2].Requests)
	require.EqualValues(t, 2, m.Replicas[2].Acknowledged)
	require.EqualValues(t, 4, m.Replicas[2].Records)
	require.EqualValues(t, 2, m.Replicas[2].FailedRequests)
	require.EqualValues(t, 2, a.Replicas[0].Requests, "what was given is left alone")

	b.Replicas[1].Histogram = "none"
	_, err = Merge([]*Result{a, b})
	require.ErrorContains(t, err, "result 2: decode histogram")
}

func TestThresholds(t *testing.T) {
	r := measured(t, 10, 20, 30, 40)
	r.Load.Rate = 8
	for text, failed := range map[string]bool{
		"p99>500ms": false, "p99>39ms": true, "p50 >= 20ms": true, "max<1s": true, "errors>0": true, "errors>10%": false, "errors>=10%": true,
		"rate<4": false, "rate<5": true, "rate<60%": true, "rate<40%": false, "records-rate<41": true, "service-p95>1ms": true, "P99.9>39ms": true,
		"unsent>0": false, "requests<4": false, "unsent>1%": false,
	} {
		limit, err := ParseThreshold(text)
		require.NoError(t, err, text)
		limit.Check(r)
		require.Equal(t, failed, limit.Failed, limit.String())
	}
	for _, text := range []string{"", "p99", ">5", "p99>5", "p99>-5ms", "shoe>5", "errors>x", "requests>5%", "errors>NaN", "rate>>5"} {
		_, err := ParseThreshold(text)
		var usage *wire.UsageError
		require.ErrorAs(t, err, &usage, text)
	}
	goals, err := ParseGoals("p99=200ms, errors=0.1%")
	require.NoError(t, err)
	require.Len(t, goals, 2)
	for _, text := range []string{"", "p99", "rate=5", "p99=fast"} {
		_, err := ParseGoals(text)
		require.Error(t, err, text)
	}
}

// TestMergeNamesTheFile: of two results that do not fit the message names the files that
// they were read from.
func TestMergeNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	kept := func(name string, r *Result) (string, *Result) {
		path := filepath.Join(dir, name)
		var text bytes.Buffer
		require.NoError(t, r.WriteJSON(&text))
		require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
		again, err := ReadResult(path)
		require.NoError(t, err)
		return path, again
	}
	first, a := kept("a.json", measured(t, 1, 2))
	second, b := kept("b.json", measured(t, 1, 2))
	_, err := Merge([]*Result{a, b})
	require.EqualError(t, err, second+" is the same run as "+first)
	b.Load.BatchSize++
	_, err = Merge([]*Result{a, b})
	require.EqualError(t, err, second+" is of another target, another mode or another batch size than "+first)
	b.file = ""
	_, err = Merge([]*Result{a, b})
	require.EqualError(t, err, "result 2 is of another target, another mode or another batch size than "+first)
}

// TestKeysOfAnotherFile: the error for a wrong file names the place.
func TestKeysOfAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.json")
	for content, want := range map[string]string{
		"{\n exx}":             "line 2, column 2: not JSON: a member must start with a string; expected the journal or the JSON result of a load",
		"[1]":                  "line 1, column 1: the value must be an object, not a list; expected the journal or the JSON result of a load",
		`{"keys": 1}`:          "line 1, column 10: keys must be a list of objects, not a number; expected the journal or the JSON result of a load",
		`{"load": "2"}`:        "written by a newer destkit: load 2, this one reads up to 1",
		`{"schema_version":9}`: "written by a newer destkit: schema_version 9, this one reads up to 1",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := ReadKeys(path)
		require.EqualError(t, err, "read journal "+path+": "+want)
	}
}
