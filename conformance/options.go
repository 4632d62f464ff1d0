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

// Development is how plain http and private chains are treated.
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

// HookSpec is one hook: a URL that gets a POST, or a command with the JSON object on standard input.
type HookSpec = hook.Spec

// ReadbackFunc is the read-back hook as a Go function, with its question and its answer.
type (
	ReadbackFunc    = hook.Readback
	ReadbackRequest = hook.ReadbackRequest
	ReadbackRecord  = hook.ReadbackRecord
	ReadbackReply   = hook.ReadbackReply
)

// Hooks are the author's hooks besides the read-back hook.
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
	// Readback is the read-back hook by URL or command; ReadbackFunc, a Go function, wins.
	Readback       HookSpec
	ReadbackFunc   ReadbackFunc
	ReadbackWindow time.Duration // how long a read-back may lag; 0: not at all
	Hooks          Hooks

	Profile  Profile  // ProfileV1 when empty
	Select   []string // globs over check ids; empty selects all
	Skip     []string
	Waivers  []Waiver
	Features fs.FS // the author's own feature files, never scored

	MaxRecords     int    // 5000 when zero
	SkipConvention string // "", failure, success, success-with-message
	KeyTemplate    string // "zz-conf-{run}-{check}-{n}" when empty
	KeyFrom, KeyTo int64  // bound integer keys, both inclusive; both zero: a range far above 2^32
	URLSecret      string // "query:NAME" or "path:INDEX" (from 0), which the endpoint must verify (spec 5.2.3)

	PlanningTimeout time.Duration // 10 s when zero
	BatchTimeout    time.Duration // 30 s when zero
	Timeout         time.Duration // of the whole run, 2 min when zero
	ReturnWait      time.Duration // for an endpoint that stopped responding, 10 s when zero
	LateWait        time.Duration // for acknowledged records that are missing, 2 s when zero

	Development    Development    // auto when empty
	ProbePlainHTTP int            // port of the plain-http probe of TLS-007, 0: none
	Roots          *x509.CertPool // replace the public roots for the TLS checks

	Journal      string        // file of the write-ahead journal; "" makes one in memory unless Write
	Load         bool          // permits the checks that send at declared speed
	LoadDuration time.Duration // of the sustained-load check, 30 s when zero

	Fixtures map[string]Fixture // override generated values, by object

	// RequireComplete and RequireClean give undecided MUSTs and residue the exit statuses 6 and 5.
	RequireComplete bool
	RequireClean    bool
	RefuseLeftovers bool // refuses, as *UsageError, writes that neither deletes nor a hook would clean up

	Serial   bool           // one check at a time
	Seed     uint64         // 0 chooses one
	RunID    string         // "" derives one from the seed
	Version  string         // of the tool, for the report
	Progress func(Progress) // is called after every check; it may be nil
}

// Fixture gives values for one object as raw JSON.
type Fixture struct {
	Fields map[string]string
	Bad    map[string]string // fields that make a record bad
	Hidden []string          // fields that a read-back cannot show, such as hashes
}

// Progress is one step of a run on its way.
type Progress struct {
	Done, Total int
	Result      CheckResult
}

// WithDefaults fills what the caller left open.
func (o Options) WithDefaults() Options {
	o.PlanningTimeout = cmp.Or(o.PlanningTimeout, 10*time.Second)
	o.BatchTimeout = cmp.Or(o.BatchTimeout, 30*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.LoadDuration = cmp.Or(o.LoadDuration, 30*time.Second)
	o.ReturnWait = cmp.Or(o.ReturnWait, 10*time.Second)
	o.LateWait = cmp.Or(o.LateWait, 2*time.Second)
	o.Hooks.Timeout = cmp.Or(o.Hooks.Timeout, 10*time.Second)
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

// Usage is an *UsageError.
func Usage(format string, args ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, foreign.Args(args)...)}
}

// Target is the endpoint under judgement: a URL or a handler.
type Target struct {
	// URL of the endpoint; query and path are kept verbatim (spec 4.2).
	URL string
	// Replicas are the URLs of further processes of the same destination, which get consecutive
	// calls in turn with URL (spec 4.2, statelessness rules), with token and headers.
	Replicas []string
	// Handler is served in memory when URL is empty; the TLS checks are then NOT_RUN.
	Handler http.Handler
	// Token of the connection, sent as bearer with every call (spec 5.2.2).
	Token string
	// Headers are further headers of the connection.
	Headers map[string]string
}
