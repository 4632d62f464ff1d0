package destsim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// journalSize is how many calls the journal keeps; older ones are forgotten.
const journalSize = 10000

// JournalEntry is one call of the endpoint. It holds no header, URL, value or
// message, and names without secrets. Bodies are apart, see Config.KeepBodies.
type JournalEntry struct {
	Seq        int64     `json:"seq"`      // from 1 since the start or the last reset
	Received   time.Time `json:"received"` // when the head of the request was there
	DurationMS float64   `json:"duration_ms"`
	Verb       string    `json:"verb"`   // the HTTP method
	Method     string    `json:"method"` // "" where the request could not be read
	ID         string    `json:"id"`     // raw JSON, cut after 48 bytes
	Object     string    `json:"object"` // "" for calls without one
	Operation  string    `json:"operation"`
	SyncID     int64     `json:"sync_id"`
	SyncRunID  int64     `json:"sync_run_id"`
	Records    int       `json:"records"`   // sent in the batch
	Succeeded  int       `json:"succeeded"` // results as answered
	Failed     int       `json:"failed"`
	// Status is the HTTP status, 0 when the connection ended without one.
	Status    int      `json:"status"`
	ErrorCode int64    `json:"error_code"` // of the JSON-RPC error, 0 without one
	BytesIn   int      `json:"bytes_in"`   // of the body
	BytesOut  int      `json:"bytes_out"`  // of the body, cut short or not
	Denied    bool     `json:"denied"`     // without the right token or URL secret
	Faults    []string `json:"faults"`     // ids of the faults that touched the call
}

// JournalFilter chooses calls; zero values do not restrict.
type JournalFilter struct {
	Method, Object, Operation string
	Status                    *int // 0 is a call without an answer
	Fault                     string
	// After and Since leave out calls up to a number or before a time.
	After int64
	Since time.Time
	// Newest gives the newest first; Before goes on from a number then, 0 from the end.
	Newest        bool
	Before        int64
	SyncID, RunID int64
	Limit         int // 1000 when 0
}

// JournalPage is what a filter lets through, oldest first.
type JournalPage struct {
	Entries []JournalEntry `json:"entries"`
	Total   int64          `json:"total"`   // calls since the start or the last reset
	Dropped int64          `json:"dropped"` // forgotten ones among them
	Bodies  bool           `json:"bodies"`  // those of new calls are kept
	Next    *int64         `json:"next"`    // the value for after, null at the end
}

// journalLine is an entry as it is kept: without a pointer into the request.
type journalLine struct {
	JournalEntry
	id  [48]byte
	len int
}

// callJournal keeps the last calls in a ring.
type callJournal struct {
	mu     sync.Mutex
	ring   []journalLine
	total  int64
	bodies callBodies
}

// entry is a line as it is shown.
func (l *journalLine) entry(hide *foreign.Redactor) JournalEntry {
	e := l.JournalEntry
	e.ID = string(l.id[:l.len])
	for _, text := range []*string{&e.Verb, &e.Method, &e.Object, &e.Operation, &e.ID} {
		if !foreign.PlainWord(*text) {
			*text = hide.String(*text)
		}
	}
	if e.Faults == nil {
		e.Faults = []string{}
	}
	return e
}

// Journal gives the calls that the filter chooses.
func (s *Sim) Journal(filter JournalFilter) JournalPage { return s.journal.page(filter) }

// add notes a finished call. The line is written where it stays: it is long.
func (j *callJournal) add(c *call) {
	succeeded, failed := c.recordCounts()
	bodies := j.bodies.copied(c)
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.ring) < journalSize {
		j.ring = append(j.ring, journalLine{})
	}
	line := &j.ring[j.total%journalSize]
	j.total++
	line.Seq = j.total
	if bodies != nil {
		j.bodies.add(j.total, bodies)
	}
	line.Received, line.DurationMS = c.start, float64(c.end.Sub(c.start))/float64(time.Millisecond)
	line.Verb, line.Method, line.Object = clip(c.r.Method), clip(c.method), clip(c.object)
	line.Status, line.Denied, line.Faults = c.answeredStatus(), c.denied, c.marks
	line.BytesIn, line.BytesOut, line.ErrorCode = len(c.body), 0, 0
	line.len = copy(line.id[:], c.id)
	if c.err != nil {
		line.ErrorCode = c.err.Code
	}
	if line.Status != 0 {
		line.BytesOut = len(c.reply.sent)
	}
	line.Operation, line.Records, line.SyncID, line.SyncRunID = "", 0, 0, 0
	line.Succeeded, line.Failed = succeeded, failed
	if c.isBatchText() {
		b := c.batch
		line.Operation, line.Records = clip(b.Plan.Operation), b.Len()
		line.SyncID, line.SyncRunID = b.Plan.SyncID, b.Plan.SyncRunID
	}
}

// isBatchText reports whether a batch was decoded, whatever became of it.
func (c *call) isBatchText() bool {
	return c.method == rpc.MethodSyncBatch && c.batch != nil && c.paramsErr == nil
}

// answeredStatus is the HTTP status, 0 when the call ended without one.
func (c *call) answeredStatus() int {
	if c.reply.raw != nil && len(c.reply.raw) == 0 {
		return 0
	}
	return c.reply.status
}

// recordCounts counts the results of the batch, as they were answered.
func (c *call) recordCounts() (succeeded, failed int) {
	if !c.isBatchText() || c.batch.call != c || c.err != nil {
		return 0, 0
	}
	if c.encoded != nil {
		return c.batch.fast.succeeded, c.batch.fast.failed
	}
	for i := range c.batch.results {
		if c.batch.results[i].success {
			succeeded++
		} else {
			failed++
		}
	}
	return succeeded, failed
}

// clear forgets the calls.
func (j *callJournal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring, j.total = nil, 0
	j.bodies.clear()
}

func (j *callJournal) reset() {
	j.clear()
	j.bodies.on.Store(j.bodies.configured)
}

func (j *callJournal) page(filter JournalFilter) JournalPage {
	limit := cmp.Or(filter.Limit, 1000)
	j.mu.Lock()
	defer j.mu.Unlock()
	page := JournalPage{Entries: []JournalEntry{}, Total: j.total, Dropped: j.total - int64(len(j.ring)), Bodies: j.bodies.on.Load()}
	seq, step := max(page.Dropped, filter.After)+1, int64(1)
	if filter.Newest {
		seq, step = j.total, -1
		if filter.Before > 0 {
			seq = min(seq, filter.Before-1)
		}
	}
	for ; seq > page.Dropped && seq <= j.total; seq += step {
		line := &j.ring[(seq-1)%journalSize]
		if !filter.lets(&line.JournalEntry) {
			continue
		}
		if len(page.Entries) == limit {
			page.Next = &page.Entries[limit-1].Seq
			break
		}
		page.Entries = append(page.Entries, line.entry(j.bodies.hide))
	}
	return page
}

func (f *JournalFilter) lets(e *JournalEntry) bool {
	return (f.Method == "" || f.Method == e.Method) &&
		(f.Object == "" || f.Object == e.Object) &&
		(f.Operation == "" || f.Operation == e.Operation) &&
		(f.SyncID == 0 || f.SyncID == e.SyncID) && (f.RunID == 0 || f.RunID == e.SyncRunID) &&
		(f.Status == nil || *f.Status == e.Status) &&
		(f.Fault == "" || slices.Contains(e.Faults, f.Fault)) &&
		!e.Received.Before(f.Since)
}

// endpoints are the control endpoints of the journal.
func (j *callJournal) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/_control/journal", "?method=&object=&operation=&status=&fault=&sync=&sync_run=&since=&after=&limit= lists calls of the endpoint, oldest first; ?newest=true&before= newest first", give(func(r *http.Request) (any, error) {
			filter, err := parseJournalFilter(r.URL.Query())
			if err != nil {
				return nil, err
			}
			return j.page(filter), nil
		})},
		{"GET", "/_control/journal/{seq}", "one call with its bodies, without secrets", give(func(r *http.Request) (any, error) {
			seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: must be the number of a call", clip(r.PathValue("seq")))
			}
			return j.exchange(seq)
		})},
		{"POST", "/_control/journal", `{"bodies":true} keeps the bodies of calls from now on, false forgets them`, take(func(arg struct {
			Bodies *bool `json:"bodies"`
		}) (any, error) {
			if arg.Bodies == nil {
				return nil, errors.New(`bodies: is required: {"bodies":true} keeps the bodies of calls, false forgets them`)
			}
			j.keepBodies(*arg.Bodies)
			return okReply{OK: true}, nil
		})},
		{"DELETE", "/_control/journal", "forgets the calls", give(func(*http.Request) (any, error) {
			j.clear()
			return okReply{OK: true}, nil
		})},
	}
}

// parseJournalFilter is strict: a filter with a typing error would let
// everything through.
func parseJournalFilter(query url.Values) (JournalFilter, error) {
	var f JournalFilter
	var status, limit int64
	texts := map[string]*string{"method": &f.Method, "object": &f.Object, "operation": &f.Operation, "fault": &f.Fault}
	numbers := map[string]*int64{
		"status": &status, "before": &f.Before, "sync": &f.SyncID, "sync_run": &f.RunID, "after": &f.After, "limit": &limit,
	}
	known := []string{"method", "object", "operation", "status", "fault", "since", "after", "limit", "newest", "before", "sync", "sync_run", "control_token"}
	for name := range query {
		value, err := query.Get(name), error(nil)
		switch {
		case texts[name] != nil:
			*texts[name] = value
		case numbers[name] != nil:
			*numbers[name], err = numberParameter(value)
			switch {
			case name == "status" && err != nil:
				err = fmt.Errorf("must be an HTTP status such as 429, 0 for a call without an answer, not %q", clip(value))
			case name == "status":
				f.Status = new(int(status))
			case name == "limit" && err == nil && (limit < 1 || limit > journalSize):
				err = fmt.Errorf("must be between 1 and %d", journalSize)
			}
		case name == "since":
			f.Since, err = timeParameter(value)
		case name == "newest":
			if f.Newest, err = strconv.ParseBool(value); err != nil {
				err = fmt.Errorf("must be true or false, not %q", clip(value))
			}
		case name != "control_token":
			err = fmt.Errorf("unknown filter%s", didYouMean(name, known))
		}
		if err != nil {
			return f, fmt.Errorf("%s: %w", clip(name), err)
		}
	}
	f.Limit = int(limit)
	if !f.Newest && f.Before != 0 {
		return f, errors.New("before: goes with newest=true; after is for the other direction")
	}
	return f, nil
}

// The bounds of the bodies that the journal keeps.
const (
	largestBody = 64 << 10 // of a longer one only the length is known
	bodyBytes   = 16 << 20 // of all bodies; the oldest go first
)

// callBodies keeps the bodies of the last calls while it is switched on. While it is
// off, a call looks at one switch and nothing else. The lock of the journal guards
// everything but the switch.
type callBodies struct {
	on         atomic.Bool
	configured bool     // the setting after a reset
	secrets    []string // of the configuration
	hide       *foreign.Redactor
	kept       []twoBody // by seq
	size       int
}

// twoBody has the bodies of a call, nil where there was none or a longer one.
type twoBody struct {
	seq               int64
	request, response []byte
	secrets           []string // that held when it was made
}

func (b *twoBody) size() int { return 256 + len(b.request) + len(b.response) }

// configure takes the switch and the secrets of a configuration.
func (b *callBodies) configure(c *Config) {
	b.configured, b.secrets = c.KeepBodies, []string{c.Token, rotated(c.Token), c.ControlToken, c.URLSecret.Value}
	b.hide = hiding(b.secrets)
	b.on.Store(b.configured)
}

// copied takes the bodies of a call; nil while they are not kept. The caller's buffers
// are used again.
func (b *callBodies) copied(c *call) *twoBody {
	if !b.on.Load() {
		return nil
	}
	given := strings.TrimPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	two := &twoBody{secrets: []string{*c.sim.token.Load(), given}}
	if len(c.body) <= largestBody {
		two.request = bytes.Clone(c.body)
	}
	if answered := c.reply.plain(); len(answered) <= largestBody {
		two.response = bytes.Clone(answered)
	}
	return two
}

// plain is the body that was sent, before its coding.
func (h *httpReply) plain() []byte {
	if h.coding != "" {
		return h.body
	}
	return h.sent
}

// add keeps the bodies of the call with a number. The journal is locked.
func (b *callBodies) add(seq int64, two *twoBody) {
	two.seq = seq
	b.kept = append(b.kept, *two)
	b.size += two.size()
	for b.size > bodyBytes || len(b.kept) > journalSize {
		b.size -= b.kept[0].size()
		b.kept[0] = twoBody{}
		b.kept = b.kept[1:]
	}
}

// clear forgets the bodies. The journal is locked.
func (b *callBodies) clear() { b.kept, b.size = nil, 0 }

// find gives the bodies of a call; nil where none are kept. The journal is locked.
func (b *callBodies) find(seq int64) *twoBody {
	at, is := slices.BinarySearchFunc(b.kept, seq, func(two twoBody, seq int64) int { return cmp.Compare(two.seq, seq) })
	if !is {
		return nil
	}
	two := b.kept[at]
	return &two
}

// journalExchange is one call with its bodies, without secrets. Bodies is "kept" or
// why there are none: "off" when the call came, or "forgotten" since.
type journalExchange struct {
	Entry    JournalEntry    `json:"entry"`
	Bodies   string          `json:"bodies"`
	Request  json.RawMessage `json:"request"`  // null: none, or longer than 64 KiB; a string where it is no JSON
	Response json.RawMessage `json:"response"` // the same
}

// errNoCall means that the journal does not have a call.
var errNoCall = errors.New("the journal has no call with this number; it keeps the newest 10,000")

// exchange gives one call in full.
func (j *callJournal) exchange(seq int64) (journalExchange, error) {
	j.mu.Lock()
	if seq < 1 || seq > j.total || seq <= j.total-int64(len(j.ring)) {
		j.mu.Unlock()
		return journalExchange{}, errNoCall
	}
	line := j.ring[(seq-1)%journalSize]
	x := journalExchange{Bodies: "off"}
	two := j.bodies.find(seq)
	if two == nil && len(j.bodies.kept) > 0 && seq < j.bodies.kept[0].seq {
		x.Bodies = "forgotten"
	}
	j.mu.Unlock()
	if two == nil {
		x.Entry = line.entry(j.bodies.hide)
		return x, nil
	}
	hide := hiding(append(two.secrets, j.bodies.secrets...))
	x.Entry = line.entry(hide)
	x.Bodies, x.Request, x.Response = "kept", shownBody(hide, two.request), shownBody(hide, two.response)
	return x, nil
}

func hiding(secrets []string) *foreign.Redactor {
	hide := foreign.New()
	for _, secret := range secrets {
		hide.Add(secret, "[hidden]")
	}
	return hide
}

// shownBody is a body as JSON: itself, or a text where it is none.
func shownBody(hide *foreign.Redactor, body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	text := hide.String(string(body))
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return encode(strings.ToValidUTF8(text, "\uFFFD"))
}

// keepBodies switches bodies on or off; switching off drops the kept bodies.
func (j *callJournal) keepBodies(keep bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.bodies.on.Store(keep)
	if !keep {
		j.bodies.clear()
	}
}
