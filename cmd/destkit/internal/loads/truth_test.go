package loads

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/console"
	pages "github.com/destkit/destkit/internal/dashboard"
	"github.com/destkit/destkit/internal/loadpage"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

var update = flag.Bool("update", false, "write docs/evidence/load-truth.md")

// scene is an endpoint whose truth is known, and the load that it gets.
type scene struct {
	name, about string
	options     func(o *loadgen.Options)
	// work says of the batch with a number from 0, that came at a time, when it is done, and which
	// of its records are taken; nil: all. throttled: the batch is answered by 429.
	work func(n int, at time.Duration, busy int) (done time.Duration, takes func(record int) bool, throttled bool)
}

func closed(o *loadgen.Options) { o.Closed, o.Connections = true, 8 }

func open(rate float64) func(o *loadgen.Options) {
	return func(o *loadgen.Options) {
		o.Stages, o.Connections = []loadgen.Stage{{Duration: o.Duration, From: rate, To: rate}}, 64
	}
}

const ms = time.Millisecond

var scenes = []scene{
	{"refusals", "takes two records of ten, after 20 ms", closed, func(_ int, at time.Duration, _ int) (time.Duration, func(int) bool, bool) {
		return at + 20*ms, func(record int) bool { return record < 2 }, false
	}},
	{"capacity", "works at 100 batches/s, one after the other", closed, func() func(int, time.Duration, int) (time.Duration, func(int) bool, bool) {
		var free time.Duration
		return func(_ int, at time.Duration, _ int) (time.Duration, func(int) bool, bool) {
			free = max(free, at) + 10*ms
			return free, nil, false
		}
	}()},
	{"degradation", "takes 10 ms up to 4 batches at once, and 10 ms more for each further one", closed, func(_ int, at time.Duration, busy int) (time.Duration, func(int) bool, bool) {
		return at + time.Duration(1+max(busy-4, 0))*10*ms, nil, false
	}},
	{"distribution", "of 100 batches takes 10 ms for 88, 60 ms for 9 and 150 ms for 3", open(100), func(n int, at time.Duration, _ int) (time.Duration, func(int) bool, bool) {
		switch {
		case n%100 >= 97:
			return at + 150*ms, nil, false
		case n%10 == 9:
			return at + 60*ms, nil, false
		}
		return at + 10*ms, nil, false
	}},
	{"stall", "stands still for 800 ms after 1.5 s", func(o *loadgen.Options) { open(100)(o); o.Connections = 4 }, func(_ int, at time.Duration, _ int) (time.Duration, func(int) bool, bool) {
		if at > 1500*ms && at < 2300*ms {
			return 2300 * ms, nil, false
		}
		return at + 2*ms, nil, false
	}},
	{"bucket", "takes 50 batches/s of 100, and answers 429 to the others", open(100), func() func(int, time.Duration, int) (time.Duration, func(int) bool, bool) {
		taken := 0.0
		return func(_ int, at time.Duration, _ int) (time.Duration, func(int) bool, bool) {
			if full := taken > 50*at.Seconds(); full {
				return at + ms, nil, true
			}
			taken++
			return at + 5*ms, nil, false
		}
	}()},
}

// world is what an endpoint knows of a load: it counts and times what it does itself.
type world struct {
	mu                       sync.Mutex
	work                     func(n int, at time.Duration, busy int) (time.Duration, func(int) bool, bool)
	began                    time.Time
	busy                     int
	records, took, throttled int64
	came, gone               []time.Duration
	jitter                   time.Duration // the most by which the machine woke it too late
}

func (w *world) batch(records []map[string]json.RawMessage) (reply []rpc.RecordResult, throttled bool) {
	w.mu.Lock()
	if w.began.IsZero() {
		w.began = time.Now()
	}
	n, at := len(w.came), time.Since(w.began)
	w.busy++
	done, takes, throttled := w.work(n, at, w.busy)
	w.came, w.gone = append(w.came, at), append(w.gone, 0)
	w.mu.Unlock()
	time.Sleep(done - at)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	w.gone[n] = time.Since(w.began)
	w.jitter = max(w.jitter, w.gone[n]-done)
	w.records += int64(len(records))
	for i, r := range records {
		taken := !throttled && (takes == nil || takes(i))
		if taken {
			w.took++
		}
		reply = append(reply, rpc.RecordResult{Identifier: r["email"], Success: taken, ErrorMessage: map[bool]string{false: "full"}[taken]})
	}
	if throttled {
		w.throttled++
	}
	return reply, throttled
}

// endpoint serves a world; a simulator answers the planning calls.
func (w *world) endpoint(t *testing.T) string {
	sim, err := destsim.New(destsim.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var call struct {
			Method string
			ID     json.RawMessage
			Params struct{ Records []map[string]json.RawMessage }
		}
		if json.Unmarshal(body, &call) != nil || call.Method != rpc.MethodSyncBatch {
			r.Body = io.NopCloser(bytes.NewReader(body))
			sim.ServeHTTP(out, r)
			return
		}
		results, throttled := w.batch(call.Params.Records)
		out.Header().Set("Content-Type", "application/json")
		if throttled {
			out.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"slow down"}}`, call.ID)
			return
		}
		result, _ := json.Marshal(rpc.BatchResult{RecordResults: results})
		_, _ = out.Write(rpc.AppendResponse(nil, call.ID, result))
	}))
	t.Cleanup(func() { server.Close(); require.NoError(t, sim.Close()) })
	return server.URL + "/"
}

// times are the times of a percentile: in the endpoint, and from when each batch was due at a rate.
func (w *world) times(q, rate float64) (service, latency float64) {
	var inside, due []float64
	began := math.Inf(1) // no batch came before it was due
	for i, at := range w.came {
		began = min(began, at.Seconds()-float64(i)/max(rate, 1))
	}
	for i := range w.came {
		inside = append(inside, (w.gone[i]-w.came[i]).Seconds()*1000)
		due = append(due, (w.gone[i].Seconds()-began-float64(i)/max(rate, 1))*1000)
	}
	at := func(list []float64) float64 {
		slices.Sort(list)
		return list[min(int(math.Ceil(q/100*float64(len(list))))-1, len(list)-1)]
	}
	return at(inside), at(due)
}

// places are where a figure stands: in the summary, on the page of the report, and on that of a load that
// goes on; "" where it is not. In JSON it is a member of the result.
type places struct{ json, summary, html, dashboard string }

var figures = map[string]places{
	"records acknowledged":         {"records_acknowledged", `records +([\d,.]+) acknowledged`, "", ""},
	"records acknowledged per s":   {"acknowledged_per_second", `acknowledged, ([\d,.]+) per second`, `<b>([\d,.]+)</b><span>records acknowledged`, `id="t-speed"><b>([\d,.\s]+)<`},
	"records sent":                 {"records", `([\d,.]+) sent`, `<b>([\d,.]+)</b><span>records sent`, ""},
	"records refused or throttled": {"errors", `errors +([\d,.]+)`, `<b class="\w+">([\d,.]+)</b><span>errors`, ""},
	"service time p50":             {"service_time.p50", `service time +([\d,.]+)`, `<td>p50</td><td>[^<]+</td><td>([\d,.]+ m?s)`, ""},
	"service time p90":             {"service_time.p90", `service time +(?:[\d,.]+ +){1}([\d,.]+)`, `<td>p90</td><td>[^<]+</td><td>([\d,.]+ m?s)`, ""},
	"latency p50":                  {"latency.p50", `latency +([\d,.]+)`, `<td>p50</td><td>([\d,.]+ m?s)`, `id="t-p50"><b>([\d,.]+ m?s)`},
	"latency p90":                  {"latency.p90", `latency +(?:[\d,.]+ +){1}([\d,.]+)`, `<td>p90</td><td>([\d,.]+ m?s)`, ""},
	"latency p99":                  {"latency.p99", `latency +(?:[\d,.]+ +){3}([\d,.]+)`, `<td>p99</td><td>([\d,.]+ m?s)`, ""},
	"latency max":                  {"latency.max", `latency +(?:[\d,.]+ +){5}([\d,.]+)`, `<td>max</td><td>([\d,.]+ m?s)`, ""},
	"throttled batches":            {"errors_by_kind.throttled", "", "", `id="k-throttled".*?class="n">([\d,.\s]+)<`},
}

// truths are the figures of a scene as its endpoint knows them, and by which share and how much each
// may be reported otherwise.
func (w *world) truths(s scene, r *loadgen.Result) (names []string, truth map[string]float64, share, least map[string]float64) {
	truth, share, least = map[string]float64{}, map[string]float64{}, map[string]float64{}
	add := func(name string, v, part, atLeast float64) {
		names = append(names, name)
		truth[name], share[name], least[name] = v, part, atLeast
	}
	last, jitter := slices.Max(w.gone).Seconds(), 2*w.jitter.Seconds()*1000
	add("records acknowledged", float64(w.took), 0, 0)
	add("records sent", float64(w.records), 0, 0)
	if s.name == "bucket" {
		add("throttled batches", float64(w.throttled), 0, 0)
	} else {
		add("records refused or throttled", float64(w.records-w.took), 0, 0)
	}
	if w.jitter > 10*ms && !*update { // too busy a machine to compare times
		return names, truth, share, least
	}
	if add("records acknowledged per s", float64(w.took)/last, 0.05, 0); s.name == "bucket" {
		return names, truth, share, least
	}
	for _, q := range []float64{50, 90} {
		service, _ := w.times(q, r.Load.Rate)
		add(fmt.Sprintf("service time p%g", q), service, 0.03, 1.5+jitter)
	}
	if r.Load.Mode == "open" {
		for name, q := range map[string]float64{"latency p50": 50, "latency p90": 90, "latency p99": 99, "latency max": 100} {
			_, latency := w.times(q, r.Load.Rate)
			add(name, latency, 0.03, 5+jitter)
		}
	}
	slices.Sort(names)
	return names, truth, share, least
}

// number reads a figure as it is shown, times in milliseconds.
func number(t *testing.T, pattern, text string) float64 {
	found := regexp.MustCompile(`(?s)` + pattern).FindStringSubmatch(text)
	require.NotNil(t, found, "%s in %s", pattern, text)
	shown, unit := strings.NewReplacer(",", "", "\u202f", "", "\u00a0", "").Replace(strings.TrimSpace(found[1])), 1.0
	if seconds, is := strings.CutSuffix(shown, " s"); is {
		shown, unit = seconds, 1000
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(shown, " ms"), 64)
	require.NoError(t, err, pattern)
	return v * unit
}

// TestMatrixTruth: each figure of a load, wherever it stands, is that of the endpoint; times as
// exactly as the machine wakes who sleeps.
func TestMatrixTruth(t *testing.T) {
	matrixtest.NotEveryDay(t)
	var mu sync.Mutex
	rows := map[string][]string{}
	t.Run("of", func(t *testing.T) {
		for _, s := range scenes {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				lines := s.judge(t)
				mu.Lock()
				defer mu.Unlock()
				rows[s.name] = lines
			})
		}
	})
	if !*update || t.Failed() {
		return
	}
	var b strings.Builder
	b.WriteString(truthHead)
	for _, s := range scenes {
		fmt.Fprintf(&b, "\n## %s\n\nThe endpoint %s.\n\n| figure | truth | JSON | summary | HTML | dashboard |\n|---|---|---|---|---|---|\n%s", s.name, s.about, strings.Join(rows[s.name], ""))
	}
	require.NoError(t, os.WriteFile(filepath.Join(matrixtest.Root(t), "docs", "evidence", "load-truth.md"), []byte(b.String()), 0o644))
}

const truthHead = `# Loads: truth against reported

Written by TestMatrixTruth of cmd/destkit/internal/loads with -update. Each endpoint behaves as planned, counts
what it takes and measures its own times; a load reports the same. Times are milliseconds; rates of the
dashboard are those of its last interval. A dash: the figure does not stand there.
`

func (s scene) judge(t *testing.T) (lines []string) {
	w := &world{work: s.work}
	o := loadgen.Options{Target: loadgen.Target{URL: w.endpoint(t)}, Write: true, Seed: 7, Duration: 4 * time.Second, Work: loadgen.Work{Objects: []loadgen.Share{{Name: "contact"}}, BatchSize: 10}}
	s.options(&o)
	o.Control = &loadgen.Control{}
	live := pages.NewLoad(pages.LoadConfig{Control: o.Control})
	defer live.CloseConsole()
	var last loadgen.Moment
	o.Progress = func(m loadgen.Moment) { last = m; live.Moment(m) }
	r, err := loadgen.Run(context.Background(), o)
	require.NoError(t, err)
	var summary, report bytes.Buffer
	WriteSummary(&summary, r)
	require.NoError(t, loadpage.Write(&report, r))
	screen, ask := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+console.Path+"/", nil)
	ask.RemoteAddr = "127.0.0.1:1"
	live.ServeHTTP(screen, ask)
	data, err := json.Marshal(r)
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(data, &members))
	taken := 0.0
	for i, p := range r.Series {
		taken += p.AcknowledgedPerSecond * (p.At - append([]loadgen.Point{{}}, r.Series...)[i].At)
	}
	require.InEpsilon(t, r.Acknowledged, taken, 1e-6, "the series adds up")
	names, truth, share, least := w.truths(s, r)
	for _, name := range names {
		at, cells := figures[name], []string{}
		var value any = members
		for part := range strings.SplitSeq(at.json, ".") {
			value = value.(map[string]any)[part]
		}
		got, _ := value.(float64)
		line := fmt.Sprintf("| %s | %s | %s |", name, quantity.Rate(truth[name]), quantity.Rate(got))
		require.InDelta(t, truth[name], got, max(truth[name]*share[name], least[name]), "%s\n%s", name, summary.String())
		for i, place := range [][2]string{{at.summary, summary.String()}, {at.html, report.String()}, {at.dashboard, screen.Body.String()}} {
			cell := "–"
			if place[0] != "" {
				shown := number(t, place[0], place[1])
				of := got
				if i == 2 { // the figures of a moment, which are those of the series
					require.Contains(t, r.Series, last.Latest)
					of = map[string]float64{"records acknowledged per s": last.Latest.AcknowledgedPerSecond, "latency p50": last.Latest.P50, "throttled batches": float64(last.ErrorsByKind["throttled"])}[name]
				}
				require.InDelta(t, of, shown, max(of*0.02, 0.05), "%s %s", name, place[0])
				cell = quantity.Rate(shown)
			}
			cells = append(cells, cell)
		}
		lines = append(lines, line+" "+strings.Join(cells, " | ")+" |\n")
	}
	return lines
}
