package crowd

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Tally counts calls by operation: how they were answered, and how fast.
type Tally struct {
	mu         sync.Mutex
	operations map[string]*row
	failures   map[string]*Failure
}

type row struct {
	latency    *hdrhistogram.Histogram // in microseconds
	answers    map[int]int64
	left, lost int64
}

// Failure is an answer that should not be: what it said first, and how often.
type Failure struct {
	Operation string
	Status    int // 0: no answer
	Said      string
	Times     int64
}

func (f *Failure) String() string {
	return fmt.Sprintf("%s: %d × %d: %s", f.Operation, f.Times, f.Status, f.Said)
}

// NewTally is one without anything in it.
func NewTally() *Tally {
	return &Tally{operations: map[string]*row{}, failures: map[string]*Failure{}}
}

func (t *Tally) row(operation string) *row {
	r := t.operations[operation]
	if r == nil {
		r = &row{latency: hdrhistogram.New(1, int64(10*time.Minute/time.Microsecond), 3), answers: map[int]int64{}}
		t.operations[operation] = r
	}
	return r
}

func (t *Tally) answered(r *request, code int, took time.Duration, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	into := t.row(r.operation)
	into.answers[code]++
	_ = into.latency.RecordValue(max(1, took.Microseconds()))
	if code >= http.StatusInternalServerError {
		t.failed(r.operation, code, string(body))
	}
}

// left counts a caller that gave up, lost one that got no answer at all.
func (t *Tally) left(operation string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row(operation).left++
}

func (t *Tally) lost(operation string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row(operation).lost++
	t.failed(operation, 0, err.Error())
}

func (t *Tally) failed(operation string, code int, said string) {
	if len(said) > 300 {
		said = said[:300]
	}
	key := fmt.Sprint(operation, code)
	f := t.failures[key]
	if f == nil {
		f = &Failure{Operation: operation, Status: code, Said: said}
		t.failures[key] = f
	}
	f.Times++
}

// Failures are the answers of 5xx, and the calls that got none.
func (t *Tally) Failures() (all []*Failure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.failures {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *Failure) int { return int(b.Times - a.Times) })
	return all
}

// Calls is how many were made of an operation, of all for "".
func (t *Tally) Calls(operation string) (calls int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, r := range t.operations {
		if operation == "" || name == operation {
			calls += r.left + r.lost + r.latency.TotalCount()
		}
	}
	return calls
}

// Percentile is a percentile of the latency of an operation.
func (t *Tally) Percentile(operation string, p float64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Duration(t.row(operation).latency.ValueAtQuantile(p)) * time.Microsecond
}

// Table shows all of it, one line for each operation and one for all.
func (t *Tally) Table() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := &row{latency: hdrhistogram.New(1, int64(10*time.Minute/time.Microsecond), 3), answers: map[int]int64{}}
	var names []string
	for name, r := range t.operations {
		names = append(names, name)
		all.latency.Merge(r.latency)
		all.left, all.lost = all.left+r.left, all.lost+r.lost
		for code, n := range r.answers {
			all.answers[code] += n
		}
	}
	slices.Sort(names)
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "operation\tcalls\tp50 ms\tp99 ms\t2xx\t3xx\t4xx\t500\t502\t503\tother 5xx\tleft\tno answer\t")
	for _, name := range names {
		t.operations[name].write(w, name)
	}
	all.write(w, "all")
	w.Flush()
	return text.String()
}

func (r *row) write(w *tabwriter.Writer, name string) {
	classes := map[int]int64{}
	for code, n := range r.answers {
		switch {
		case code < 500:
			classes[code/100] += n
		case code == 500 || code == 502 || code == 503:
			classes[code] += n
		default:
			classes[5] += n
		}
	}
	ms := func(p float64) float64 { return float64(r.latency.ValueAtQuantile(p)) / 1000 }
	fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", name, r.latency.TotalCount()+r.left+r.lost, ms(50), ms(99),
		classes[2], classes[3], classes[4], classes[500], classes[502], classes[503], classes[5], r.left, r.lost)
}
