package loadgen

import (
	"time"

	"github.com/destkit/destkit/internal/histogram"
)

// schemaVersion of a Result as JSON. It grows with changes that a reader of the
// version before would misread.
const schemaVersion = 1

// Result is what a run has measured. Its JSON is stable; schema_version grows with
// changes that a reader of the version before would misread.
type Result struct {
	SchemaVersion int       `json:"schema_version"`
	Tool          string    `json:"tool"`
	Started       time.Time `json:"started_at"`
	// Seconds of the measurement, without warm-up and the last replies.
	Seconds float64 `json:"seconds"`
	// Ended says why it ended: duration, count, max-records, keys used up, nothing
	// left to work on, too many errors, interrupted.
	Ended  string     `json:"ended"`
	Target TargetInfo `json:"target"`
	Load   LoadInfo   `json:"load"`

	// Rates count what ended within Seconds; Requests and Records all that was
	// sent then. AcknowledgedPerSecond is the throughput: the records that the
	// target took. RecordsPerSecond counts refused ones as well.
	RequestsPerSecond     float64 `json:"requests_per_second"`
	RecordsPerSecond      float64 `json:"records_per_second"`
	AcknowledgedPerSecond float64 `json:"acknowledged_per_second"`
	Requests              int64   `json:"requests"`
	Records               int64   `json:"records"`
	// Acknowledged records have one result with success true.
	Acknowledged   int64 `json:"records_acknowledged"`
	FailedRequests int64 `json:"requests_failed"`
	// Errors are failed requests and records without one good result, together.
	Errors        int64            `json:"errors"`
	ErrorsByKind  map[string]int64 `json:"errors_by_kind"`
	ErrorMessages []ErrorMessage   `json:"error_messages"`

	// Latency counts from the time at which a request was to be sent, ServiceTime
	// from when it was sent, of requests that were answered with results or took
	// all the time that they had.
	Latency     Times `json:"latency"`
	ServiceTime Times `json:"service_time"`
	// Replicas has the figures of each process, the endpoint first, where there are
	// several.
	Replicas []ReplicaFigures `json:"replicas,omitempty"`

	Generator Generator     `json:"generator"`
	Declared  *DeclaredInfo `json:"declared,omitempty"`
	// Service is set of a load on the API of a service, where requests count as records.
	Service *ServiceFigures `json:"service,omitempty"`
	Search  *SearchResult   `json:"search,omitempty"`
	// Verification is what was read back after the load; nil: nothing.
	Verification *Verification  `json:"verification,omitempty"`
	WarmUp       *WarmUpInfo    `json:"warm_up,omitempty"`
	Keys         []WrittenKeys  `json:"keys" redact:"-"`
	Cleanup      *CleanupResult `json:"cleanup,omitempty"`
	// CleanCommand deletes what the run has left; "": nothing is left, or it cannot be
	// named.
	CleanCommand string      `json:"clean_command,omitempty"`
	Thresholds   []Threshold `json:"thresholds,omitempty"`
	// ByHand are the pauses and changes of the rate that were made while it ran.
	ByHand []ByHand `json:"by_hand,omitempty"`
	Notes  []string `json:"notes,omitempty"`

	Series     []Point    `json:"series"`
	Histograms Histograms `json:"histograms"`

	file string // that it was read from, for messages
}

// TargetInfo names the target without path and query, which may be secret.
type TargetInfo struct {
	Address string  `json:"address"`
	Objects []Share `json:"objects"`
	// Replicas are the addresses of the further processes.
	Replicas []string `json:"replicas,omitempty"`
}

// ReplicaFigures are those of one process of several. Times are of the answered
// requests.
type ReplicaFigures struct {
	Address           string  `json:"address"`
	Connections       int     `json:"connections"`
	Requests          int64   `json:"requests"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	Records           int64   `json:"records"`
	Acknowledged      int64   `json:"records_acknowledged"`
	FailedRequests    int64   `json:"requests_failed"`
	Latency           Times   `json:"latency"`
	// Histogram of the latency, as those of Histograms.
	Histogram string `json:"histogram,omitempty"`
}

// LoadInfo is what was asked for, with all defaults filled in.
type LoadInfo struct {
	Mode        string  `json:"mode"` // closed, open, as-declared, search
	Stages      []Stage `json:"stages,omitempty"`
	Burst       *Burst  `json:"burst,omitempty"`
	Rate        float64 `json:"rate"` // mean requests per second asked for, 0 in a closed loop
	Connections int     `json:"connections"`
	BatchSize   int     `json:"batch_size"`
	Operations  []Share `json:"operations"`
	Records     string  `json:"records"` // generated, data file or template
	Client      string  `json:"client"`
	Seed        uint64  `json:"seed"`
	Run         string  `json:"run"`
	Scenario    string  `json:"scenario,omitempty"` // of a load on a service: list, poll or trigger
}

// Times are percentiles in milliseconds.
type Times struct {
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P75   float64 `json:"p75"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99_9"`
	P9999 float64 `json:"p99_99"`
	Max   float64 `json:"max"`
}

// ErrorMessage is one message of errors with one occurrence.
type ErrorMessage struct {
	Kind    string  `json:"kind"`
	Message string  `json:"message"`
	Count   int64   `json:"count"`
	Example Example `json:"example"`
}

// Generator says how the generator itself did.
type Generator struct {
	// Unsent requests were due and never sent, Late ones were sent more than 1 ms
	// late though a connection was free, Queued ones since none was.
	Unsent      int64 `json:"requests_unsent"`
	Late        int64 `json:"requests_late"`
	Queued      int64 `json:"requests_queued"`
	Unanswered  int64 `json:"requests_unanswered"`
	Connections int64 `json:"connections_made"`
	// CPUSeconds of this process, and the mean number of busy processors.
	CPUSeconds  float64 `json:"cpu_seconds"`
	CPUs        int     `json:"cpus"`
	OwnCPUs     float64 `json:"cpus_used"`
	MachineCPUs float64 `json:"cpus_used_machine"` // 0: not known
	// Limited says that a figure above is the generator's limit and not the
	// target's, and Reasons why.
	Limited bool     `json:"limited"`
	Reasons []string `json:"reasons,omitempty"`
}

// DeclaredInfo is what the target says of itself.
type DeclaredInfo struct {
	BatchSize        int64 `json:"maximum_batch_size"`
	Parallel         int64 `json:"maximum_parallel_batches"`
	RecordsPerSecond int64 `json:"maximum_records_per_second"`
	RateLimit        int64 `json:"rate_limit"`
	RateLimitStated  bool  `json:"rate_limit_stated"`
	// Changes are the limits that replies stated later, as declared only.
	Changes []LimitChange `json:"changes,omitempty"`
	// SpeedChanges are what get_sync_speed said later, as declared only.
	SpeedChanges []SpeedChange `json:"speed_changes,omitempty"`
	// Rests are the pauses that throttled replies asked for, as declared only.
	Rests *Rests `json:"rests,omitempty"`
	// Kept reports whether the target kept its own word, as declared only: no errors, and
	// all that was due was sent and answered. Nil where all was sent too soon to say.
	Kept *bool `json:"kept,omitempty"`
}

// Rests are the times without requests that Retry-After has asked for.
type Rests struct {
	Times   int64   `json:"times"`
	Seconds float64 `json:"seconds"`
}

// LimitChange is a limit that a reply stated, in requests per second, and from when on
// it was followed, in seconds from the start of the measurement.
type LimitChange struct {
	At        float64 `json:"at_seconds"`
	RateLimit int64   `json:"rate_limit"`
}

// WarmUpInfo is what was sent before the measurement.
type WarmUpInfo struct {
	Seconds  float64 `json:"seconds"`
	Requests int64   `json:"requests"`
	Records  int64   `json:"records"`
	Errors   int64   `json:"errors"`
}

// WrittenKeys are the identifiers that may be in an object now: the keys of the
// numbers 0 to Count-1.
type WrittenKeys struct {
	Object string `json:"object"`
	Label  string `json:"label"`
	Field  string `json:"field"`
	Type   string `json:"type"`
	Count  int64  `json:"count"`
	First  string `json:"first"`
	Last   string `json:"last"`
	Keys
}

// Histograms are in the compressed V2 format of HdrHistogram, base64, in
// nanoseconds.
type Histograms struct {
	Latency     string `json:"latency"`
	ServiceTime string `json:"service_time"`
}

// times reads the percentiles off a histogram.
func times(h *histogram.Histogram) Times {
	if h.TotalCount() == 0 {
		return Times{}
	}
	at := func(q float64) float64 { return histogram.Milliseconds(histogram.At(h, q)) }
	return Times{
		Min: histogram.Milliseconds(h.Min()), Mean: histogram.Milliseconds(int64(h.Mean())), P50: at(50), P75: at(75), P90: at(90), P95: at(95),
		P99: at(99), P999: at(99.9), P9999: at(99.99), Max: histogram.Milliseconds(h.Max()),
	}
}

// take fills the figures of a measurement into a result.
func (r *Result) take(m *measure) error {
	s := m.seconds()
	r.Seconds, r.Ended = s, m.reason.String()
	r.RequestsPerSecond, r.RecordsPerSecond = float64(m.inside.requests)/s, float64(m.inside.records)/s
	r.AcknowledgedPerSecond = float64(m.inside.good) / s
	r.Requests, r.Records, r.Acknowledged, r.FailedRequests = m.requests, m.records, m.good, m.failed
	r.Errors, r.ErrorsByKind, r.ErrorMessages = m.errors(), map[string]int64{}, []ErrorMessage{}
	for _, t := range m.sortedTallies() {
		r.ErrorsByKind[t.Kind] += t.Count
		r.ErrorMessages = append(r.ErrorMessages, ErrorMessage{Kind: t.Kind, Message: t.Message, Count: t.Count, Example: t.Example})
	}
	r.Latency, r.ServiceTime = times(m.latency), times(m.service)
	r.Series = m.points
	r.Generator = m.generator()
	var err error
	if r.Histograms.Latency, err = histogram.Encode(m.latency); err != nil {
		return err
	}
	r.Histograms.ServiceTime, err = histogram.Encode(m.service)
	return err
}

// timed reports whether there is any latency: only requests that were answered
// with results, or took all their time, have one.
func (r *Result) timed() bool { return r.Latency.Max > 0 }

// LostShare is the share of records, from 0 to 1, that were not acknowledged.
func (r *Result) LostShare() float64 {
	return shareOf(r.Records-r.Acknowledged, r.Records)
}

// shareOf is a part as a share of the whole, 0 of nothing.
func shareOf(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
