package conformance

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
)

// Development says how plain http and private chains are treated.
type Development string

// The development modes: auto means on for loopback and private addresses.
const (
	DevelopmentAuto Development = "auto"
	DevelopmentOn   Development = "on"
	DevelopmentOff  Development = "off"
)

// Skip conventions: how an endpoint reports a record that does not qualify.
const (
	SkipFailure            = "failure"
	SkipSuccess            = "success"
	SkipSuccessWithMessage = "success-with-message"
)

// HookSpec is one hook of the author: a URL that gets a POST, or a command
// that gets the JSON object on standard input. Exactly one is set.
type HookSpec = hook.Spec

// ReadbackFunc is the read-back hook as a Go function, with its question and
// its answer.
type (
	ReadbackFunc    = hook.Readback
	ReadbackRequest = hook.ReadbackRequest
	ReadbackRecord  = hook.ReadbackRecord
	ReadbackReply   = hook.ReadbackReply
)

// Hooks are the author's hooks beside the read-back hook.
type Hooks struct {
	Cleanup         HookSpec `yaml:"cleanup"`
	Restart         HookSpec `yaml:"restart"`
	AlterSchema     HookSpec `yaml:"alter_schema"`
	BreakDownstream HookSpec `yaml:"break_downstream"`
	RotateToken     HookSpec `yaml:"rotate_token"`
	// Timeout of one call of a hook; 10 s when zero.
	Timeout time.Duration `yaml:"timeout"`
}

// Options of a run. The zero value is a read-only run with the default profile.
type Options struct {
	// Write permits records to be written, into Objects only.
	Write   bool
	Objects []string
	// Readback is the read-back hook by URL or command; ReadbackFunc is the
	// same as a Go function and wins.
	Readback       HookSpec
	ReadbackFunc   ReadbackFunc
	ReadbackWindow time.Duration // how long a read-back may lag; 0: not at all
	Hooks          Hooks

	Profile Profile  // ProfileV1 when empty
	Select  []string // globs over check ids; empty selects all
	Skip    []string
	Waivers []Waiver
	// Features are the author's own feature files, never scored.
	Features fs.FS

	MaxRecords     int    // 5000 when zero
	SkipConvention string // "", failure, success, success-with-message
	KeyTemplate    string // "zz-conf-{run}-{check}-{n}" when empty
	// KeyFrom and KeyTo bound integer keys, both inclusive; both zero means a
	// range that the run derives from its id, far above 2^32.
	KeyFrom, KeyTo int64
	// URLSecret is "query:NAME" or "path:INDEX" (from 0), the segment of the
	// URL that the endpoint must verify (spec 5.2.3).
	URLSecret string

	PlanningTimeout time.Duration // 10 s when zero
	BatchTimeout    time.Duration // 30 s when zero
	Timeout         time.Duration // of the whole run, 2 min when zero
	// ReturnWait is how long the run waits for an endpoint that stopped accepting
	// connections or responding, 10 s when zero.
	ReturnWait time.Duration
	// LateWait is how long the run looks again for what was acknowledged and is not
	// there, to tell what comes late from what never comes; 2 s when zero.
	LateWait time.Duration

	Development    Development // auto when empty
	ProbePlainHTTP int         // port of the plain-http probe of TLS-007, 0: none
	// Roots replace the public roots for the TLS checks.
	Roots *x509.CertPool

	Journal string // file of the write-ahead journal; "" makes one in memory unless Write
	Load    bool   // permits the checks that send at declared speed
	// LoadDuration is the length of the sustained-load check, 30 s when zero.
	LoadDuration time.Duration

	// Fixtures override generated values: object, field, raw JSON; "bad" of an object
	// holds fields that make a record bad, "hidden" those that a read-back cannot show.
	Fixtures map[string]Fixture

	// RequireComplete and RequireClean turn undecided MUSTs and left-over
	// records into exit statuses 6 and 5.
	RequireComplete bool
	RequireClean    bool
	// RefuseLeftovers makes it a *UsageError to write into an object that accepts
	// no deletes when no clean-up hook is given; nothing is written then.
	RefuseLeftovers bool

	Serial  bool   // one check at a time
	Seed    uint64 // 0 chooses one
	RunID   string // "" derives one from the seed
	Version string // of the tool, for the report
	// Progress is called after every check; it may be nil.
	Progress func(Progress)
}

// Fixture gives values for one object as raw JSON.
type Fixture struct {
	Fields map[string]string
	Bad    map[string]string
	Hidden []string // fields that a read-back cannot show, such as hashes
}

// Progress is one step of a run on its way.
type Progress struct {
	Done, Total int
	Result      CheckResult
}

// WithDefaults fills what the caller left open.
func (o Options) WithDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		*d = cmp.Or(*d, v)
	}
	set(&o.PlanningTimeout, 10*time.Second)
	set(&o.BatchTimeout, 30*time.Second)
	set(&o.Timeout, 2*time.Minute)
	set(&o.LoadDuration, 30*time.Second)
	set(&o.ReturnWait, 10*time.Second)
	set(&o.LateWait, 2*time.Second)
	set(&o.Hooks.Timeout, 10*time.Second)
	o.Profile = cmp.Or(o.Profile, ProfileV1)
	o.Development = cmp.Or(o.Development, DevelopmentAuto)
	o.MaxRecords = cmp.Or(o.MaxRecords, 5000)
	if o.Seed == 0 {
		o.Seed = rand.Uint64() >> 11 // survives a reader that keeps numbers as doubles
	}
	if o.RunID == "" {
		o.RunID = fmt.Sprintf("%06x", rand.New(rand.NewPCG(o.Seed, 1)).Uint64()&0xffffff)
	}
	return o
}

// UsageError is a mistake of the caller: exit status 2, nothing was judged.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

func usage(format string, args ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, foreign.Args(args)...)}
}

// Target is the endpoint under judgement: a URL or a handler.
type Target struct {
	// URL of the endpoint; query and path are kept verbatim (spec 4.2).
	URL string
	// Replicas are the URLs of further processes of the same destination.
	// Consecutive calls go to URL and to each of them in turn (spec 4.2,
	// statelessness rules); they get the token and the headers, too.
	Replicas []string
	// Handler is served over an in-memory listener when URL is empty; the TLS
	// checks are then NOT_RUN.
	Handler http.Handler
	// Token of the connection, sent as bearer with every call (spec 5.2.2).
	Token string
	// Headers are further headers of the connection.
	Headers map[string]string
}
