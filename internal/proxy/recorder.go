package proxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/report"
)

// Line is one exchange on one line, without secrets.
type Line struct {
	Number  int       `json:"number"`
	Started time.Time `json:"started"`
	// Method is the JSON-RPC method, the HTTP method where there is none.
	Method    string  `json:"method"`
	Object    string  `json:"object,omitempty"`
	Operation string  `json:"operation,omitempty"`
	Status    int     `json:"status,omitempty"`
	MS        float64 `json:"ms"`
	// FirstByteMS is when the response began, 0 without one.
	FirstByteMS float64 `json:"first_byte_ms,omitempty"`
	Records     int     `json:"records,omitempty"`
	Succeeded   int     `json:"succeeded,omitempty"`
	Failed      int     `json:"failed,omitempty"`
	// Broken are the checks that the endpoint's response breaks, Caller those that
	// the request does.
	Broken []string `json:"broken,omitempty"`
	Caller []string `json:"caller,omitempty"`
	// Problem is what ended the exchange, or who answered in the endpoint's place.
	Problem string `json:"problem,omitempty"`
	// NotJudged is why the exchange was only passed on.
	NotJudged string `json:"not_judged,omitempty"`
}

// CallerJudge judges the side of the caller.
type CallerJudge interface {
	Observe(x *conformance.Sight, status int) []string
	Report() *conformance.Report
}

// RecorderConfig configures the use of what a proxy sees.
type RecorderConfig struct {
	Passive *destination.Passive
	Caller  CallerJudge // nil: not judged
	// Journal and HAR get every exchange; nil: they are not written.
	Journal, HAR io.Writer
	Header       JournalHeader
	Tool         conformance.Tool
	// Line is called for every exchange; it may be nil.
	Line func(Line)
	// Keep is the number of exchanges that Recent gives, 0: none. It gives fewer where
	// their bodies are large: see mostKept.
	Keep int
}

// Recorder judges and records what a proxy has seen. It is the Observer of one.
type Recorder struct {
	cfg     RecorderConfig
	journal *journalWriter
	har     *report.HARWriter
	harBuf  *bufio.Writer
	secrets interface{ String(string) string }

	mu     sync.Mutex
	err    error // the first of a file
	kept   []Kept
	shown  int64 // that were kept, of which kept has the latest
	size   int   // of the kept exchanges, in bytes
	follow map[chan Kept]struct{}
}

// Kept is a line with its exchange.
type Kept struct {
	Line     Line                 `json:"line"`
	Exchange conformance.Exchange `json:"exchange"`
}

// NewRecorder begins to record; the header of the journal is written at once.
func NewRecorder(cfg RecorderConfig) (*Recorder, error) {
	r := &Recorder{cfg: cfg, follow: map[chan Kept]struct{}{}, secrets: cfg.Passive.Secrets()}
	if cfg.Journal != nil {
		r.journal = newJournalWriter(cfg.Journal)
		if err := r.journal.header(cfg.Header); err != nil {
			return nil, err
		}
	}
	if cfg.HAR != nil {
		r.harBuf = bufio.NewWriterSize(cfg.HAR, 64<<10)
		r.har = report.NewHARWriter(r.harBuf, cfg.Tool)
	}
	return r, nil
}

// Observe judges and records one exchange.
func (r *Recorder) Observe(x *Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := x.Sight
	line := Line{Number: s.Number, Started: s.Started.UTC(), MS: float64(s.Total.Microseconds()) / 1000, FirstByteMS: float64(s.FirstByte.Microseconds()) / 1000, Method: s.Method, Problem: localWords(x)}
	if x.Lost != "" {
		line.NotJudged = x.Lost
		line.Status = statusOf(s.Raw)
		r.show(line, nil)
		return
	}
	j := r.cfg.Passive.Observe(s)
	if j.Dropped != "" {
		line.NotJudged = j.Dropped
		r.show(line, nil)
		return
	}
	line.Object, line.Operation, line.Status = r.clean(j.Object), r.clean(j.Operation), j.Status
	line.Records, line.Succeeded, line.Failed, line.Broken = j.Records, j.Succeeded, j.Failed, j.IDs
	if j.Method != "" {
		line.Method = r.clean(j.Method)
	}
	if line.Problem == "" && j.Kind != "" {
		line.Problem = j.Kind
	}
	if x.Local > 0 {
		line.Status = x.Local
	}
	if r.cfg.Caller != nil {
		line.Caller = r.cfg.Caller.Observe(s, j.Status)
	}
	if r.journal != nil || r.har != nil {
		e := j.Recording()
		if r.journal != nil {
			r.keepError(r.journal.exchange(e, line))
		}
		if r.har != nil {
			r.keepError(r.har.Add(e, harComment(line)))
		}
	}
	r.show(line, j)
}

// clean takes secrets out of a name and bounds it.
func (r *Recorder) clean(name string) string {
	if len(name) > 200 {
		name = name[:200]
	}
	return r.secrets.String(name)
}

func (r *Recorder) keepError(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("write the recording: %w", err)
	}
}

// show hands a line to those who look.
func (r *Recorder) show(line Line, j *destination.Judged) {
	if r.cfg.Line != nil {
		r.cfg.Line(line)
	}
	if r.cfg.Keep == 0 {
		return
	}
	k := Kept{Line: line}
	if j != nil {
		k.Exchange = j.Exchange()
	}
	r.keep(k)
	for c := range r.follow {
		select {
		case c <- k:
		default: // who reads too slowly misses some, and sees it by the numbers
		}
	}
}

// mostKept bounds the bodies of the exchanges that are kept, in bytes; the latest exchange
// is kept in any case.
const mostKept = 32 << 20

// keep takes an exchange in the place of the oldest ones.
func (r *Recorder) keep(k Kept) {
	r.kept = append(r.kept, k)
	r.size += k.size()
	r.shown++
	drop := 0
	for ; len(r.kept)-drop > r.cfg.Keep || r.size > mostKept && len(r.kept)-drop > 1; drop++ {
		r.size -= r.kept[drop].size()
	}
	if drop > 0 {
		r.kept = slices.Delete(r.kept, 0, drop)
	}
}

// size is about what the bodies of an exchange need, in bytes.
func (k *Kept) size() int {
	n := len(k.Exchange.Request.Body.Text) + len(k.Exchange.Request.Body.Base64)
	if k.Exchange.Response != nil {
		n += len(k.Exchange.Response.Body.Text) + len(k.Exchange.Response.Body.Base64)
	}
	return n
}

// Recent gives the exchanges that are kept, those behind a number.
func (r *Recorder) Recent(after int) []Kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.behind(after)
}

// Dropped is how many exchanges Recent no longer gives: only the latest are kept.
// Observed is how many it has given or gives.
func (r *Recorder) Dropped() (dropped, observed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown - int64(len(r.kept)), r.shown
}

func (r *Recorder) behind(after int) []Kept {
	out := []Kept{}
	for _, k := range r.kept {
		if k.Line.Number > after {
			out = append(out, k)
		}
	}
	return out
}

// mostBehind is how many exchanges may wait for one who follows.
const mostBehind = 256

// Follow gives what Recent does, and then every further exchange until stop is called.
func (r *Recorder) Follow(after int) (kept []Kept, events <-chan Kept, stop func()) {
	c := make(chan Kept, mostBehind)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow[c] = struct{}{}
	return r.behind(after), c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.follow, c)
	}
}

// Flush writes the buffers, and returns the first error of a file.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.journal != nil {
		r.keepError(r.journal.flush())
	}
	if r.harBuf != nil {
		r.keepError(r.harBuf.Flush())
	}
	return r.err
}

// Close ends the files; their writers stay open.
func (r *Recorder) Close() error {
	r.mu.Lock()
	if r.har != nil {
		r.keepError(r.har.Close())
	}
	r.mu.Unlock()
	return r.Flush()
}

// Report is the judge's report of what went by so far.
func (r *Recorder) Report() *conformance.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cfg.Passive.Report()
}

// CallerReport is the report on the caller so far, nil where nothing judges it.
func (r *Recorder) CallerReport() *conformance.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cfg.Caller == nil {
		return nil
	}
	return r.cfg.Caller.Report()
}

// localWords names who answered in the endpoint's place.
func localWords(x *Seen) string {
	if x.Local == 0 {
		return ""
	}
	return fmt.Sprintf("the proxy has answered %d", x.Local)
}

// statusOf reads the status off the beginning of a response.
func statusOf(raw []byte) int {
	if end := headEnd(raw, 0); end > 0 {
		if h, ok := readResponse(raw[:end], ""); ok {
			return h.status
		}
	}
	return 0
}

// harComment lists what an exchange breaks.
func harComment(l Line) string {
	text := ""
	for _, id := range l.Broken {
		text += ", " + id
	}
	for _, id := range l.Caller {
		text += ", " + id + " (caller)"
	}
	if text == "" {
		return ""
	}
	return text[2:]
}

// journalVersion is that of the journal of exchanges. It grows when a member changes
// its meaning.
const journalVersion = 1

// JournalHeader is the first line of a journal of exchanges.
type JournalHeader struct {
	Version int              `json:"version"`
	Tool    conformance.Tool `json:"tool"`
	Target  string           `json:"target"` // without secrets
	Started time.Time        `json:"started"`
}

// journalLine is one line of a journal of exchanges: its header, then one exchange in
// each line.
type journalLine struct {
	Entry    string                `json:"entry"` // "exchanges" or "exchange"
	Header   *JournalHeader        `json:"header,omitempty"`
	Exchange *conformance.Exchange `json:"exchange,omitempty"`
	Broken   []string              `json:"broken,omitempty"`
	Caller   []string              `json:"caller,omitempty"`
}

type journalWriter struct {
	w   *bufio.Writer
	enc *json.Encoder
}

func newJournalWriter(w io.Writer) *journalWriter {
	b := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return &journalWriter{b, enc}
}

func (j *journalWriter) header(h JournalHeader) error {
	h.Version = journalVersion
	if err := j.enc.Encode(journalLine{Entry: "exchanges", Header: &h}); err != nil {
		return err
	}
	return j.w.Flush()
}

func (j *journalWriter) exchange(x conformance.Exchange, l Line) error {
	return j.enc.Encode(journalLine{Entry: "exchange", Exchange: &x, Broken: l.Broken, Caller: l.Caller})
}

func (j *journalWriter) flush() error { return j.w.Flush() }
