// Package conformance has the data of a judge of the two sides of the protocol: the
// catalogue of checks, options, results, and the verdict that they come to. Package
// destination judges custom destinations, package service the service that calls them.
//
// The checks are the scenarios of package features. Package internal/engine runs them, the
// same for both suites, and package report writes the [Report], which is data. This package
// knows no simulator, no service, no protocol and no output format.
package conformance

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// SchemaVersion of the JSON report. It grows when a field changes its meaning.
const SchemaVersion = "1"

// The suites: each side of the protocol has one.
const (
	SuiteDestination = "destination"
	SuiteService     = "service"
)

// Status is the outcome of one check.
type Status string

// The statuses of a check.
const (
	Pass          Status = "PASS"
	Fail          Status = "FAIL"
	Warn          Status = "WARN"  // failed, below the gate of the profile
	Flaky         Status = "FLAKY" // failed, then passed
	Waived        Status = "WAIVED"
	NotApplicable Status = "NOT_APPLICABLE"
	NotRun        Status = "NOT_RUN"
	Inconclusive  Status = "INCONCLUSIVE"
	HarnessError  Status = "HARNESS_ERROR"
)

// Level of a check, from the words of the specification.
type Level string

// The levels.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
	Info   Level = "INFO"
)

// Authority is who requires a rule.
type Authority string

// The authorities.
const (
	AuthoritySpec      Authority = "spec"      // the specification of the service
	AuthorityJSONRPC   Authority = "jsonrpc"   // JSON-RPC 2.0
	AuthorityPublished Authority = "published" // published documentation
	AuthorityPolicy    Authority = "policy"    // a policy of this toolkit
)

// Profile decides which failures gate.
type Profile string

// The profiles.
const (
	ProfileSpec   Profile = "spec"   // gates on spec and jsonrpc MUSTs
	ProfileV1     Profile = "v1"     // on published MUSTs, too; the default
	ProfileStrict Profile = "strict" // on everything, SHOULD included
)

// Tier is how much evidence a verdict rests on.
type Tier string

// The tiers.
const (
	TierProtocol   Tier = "protocol"   // nothing was written
	TierResults    Tier = "results"    // records were written
	TierSemantics  Tier = "semantics"  // written and read back
	TierOperations Tier = "operations" // with author hooks and load
)

// Verdict is the sum of a run.
type Verdict string

// The verdicts. In part: the run looked at no records, or at a selection of the checks.
const (
	Conformant       Verdict = "conformant"
	ConformantInPart Verdict = "conformant in part"
	NonConformant    Verdict = "non-conformant"
	Unknown          Verdict = "unknown"
)

// Report is the complete outcome of a run.
type Report struct {
	SchemaVersion string `json:"schema_version" redact:"-"`
	Tool          Tool   `json:"tool" redact:"-"`
	Suite         string `json:"suite" redact:"-"` // "destination" or "service"
	Target        string `json:"target"`
	// Replicas are the further URLs of the destination that got calls in turn.
	Replicas []string `json:"replicas,omitempty"`
	// Objects are the first hundred that the destination lists.
	Objects    []string  `json:"objects,omitempty"`
	RunID      string    `json:"run_id" redact:"-"`
	Seed       uint64    `json:"seed"`
	Started    time.Time `json:"started"`
	DurationMS float64   `json:"duration_ms"`
	Profile    Profile   `json:"profile" redact:"-"`
	Verdict    Verdict   `json:"verdict" redact:"-"`
	Tier       Tier      `json:"tier" redact:"-"`
	ExitStatus int       `json:"exit_status"`
	// Summary is the one line that a person repeats to a colleague.
	Summary string `json:"summary"`
	// Counts maps every status to its number of checks.
	Counts map[Status]int `json:"counts" redact:"-"`
	// Musts and the ids of the MUST checks that failed and that stay undecided.
	Musts     int      `json:"musts"`
	Failed    []string `json:"failed" redact:"-"`
	Undecided []string `json:"undecided" redact:"-"`
	// Problems are reasons why the run could not judge or be trusted.
	Problems []Problem     `json:"problems"`
	Notes    []string      `json:"notes"`
	Settings Settings      `json:"settings"`
	Checks   []CheckResult `json:"checks"`
	// Own are the checks of the author's own feature files, never scored.
	Own     []CheckResult `json:"own_checks,omitempty"`
	Residue Residue       `json:"residue"`
	// Calls and Records count what was sent.
	Calls   int `json:"calls"`
	Records int `json:"records"`
}

// Tool names the program that judged.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Problem is one reason with the exit status that it requires.
type Problem struct {
	// Kind is unreachable, unauthorized, not-found, web-page, unhealthy, hook,
	// untrusted, interrupted, undecided, harness, gate, waiver or residue.
	Kind       string `json:"kind"`
	ExitStatus int    `json:"exit_status"`
	Message    string `json:"message"`
	Fix        string `json:"fix,omitempty"`
}

// Settings are the choices that decide what a verdict means.
type Settings struct {
	Write    bool     `json:"write"`
	Objects  []string `json:"objects"`
	Readback bool     `json:"readback"`
	Hooks    []string `json:"hooks"`
	Load     bool     `json:"load"`
	// Passive: others made the calls, and the judge sent none.
	Passive           bool    `json:"passive,omitempty"`
	Development       bool    `json:"development"`
	Roots             string  `json:"roots"` // public, private, none
	PlanningTimeoutMS float64 `json:"planning_timeout_ms"`
	BatchTimeoutMS    float64 `json:"batch_timeout_ms"`
	TimeoutMS         float64 `json:"timeout_ms"`
	ReadbackWindowMS  float64 `json:"readback_window_ms"`
	MaxRecords        int     `json:"max_records"`
	SkipConvention    string  `json:"skip_convention,omitempty"`
	// The author's own form of keys: clean and replay need it again.
	KeyTemplate       string   `json:"key_template,omitempty"`
	KeyRange          string   `json:"key_range,omitempty"`
	DeclaredSpeed     string   `json:"declared_speed,omitempty"`
	DeclaredRateLimit int64    `json:"declared_rate_limit,omitempty"`
	Selected          []string `json:"selected,omitempty"`
	Skipped           []string `json:"skipped,omitempty"`
	WaiverCount       int      `json:"waivers"`
	// Of a judged service. Clock is virtual, real or untouched; rows come from Source.
	Dialect    string `json:"dialect,omitempty"`
	Clock      string `json:"clock,omitempty"`
	Simulators string `json:"simulators,omitempty"`
	Source     string `json:"source,omitempty"`
}

// CheckResult is the outcome of one check.
type CheckResult struct {
	ID        string      `json:"id" redact:"-"`
	Title     string      `json:"title" redact:"-"`
	Level     Level       `json:"level" redact:"-"`
	Authority []Authority `json:"authority" redact:"-"`
	Sections  []string    `json:"sections" redact:"-"` // "4.2", "7.2.4"
	Area      string      `json:"area" redact:"-"`     // the name of its feature
	Status    Status      `json:"status" redact:"-"`
	// Consequence is what a failed check of a destination means for its users.
	Consequence Consequence `json:"consequence,omitempty" redact:"-"`
	// Reason explains in one sentence why the status is not PASS.
	Reason    string    `json:"reason"`
	BlockedBy []string  `json:"blocked_by,omitempty" redact:"-"`
	Decider   string    `json:"decider,omitempty" redact:"-"` // what would decide it: readback, write, hook restart, load …
	Findings  []Finding `json:"findings"`
	Notes     []string  `json:"notes,omitempty"`
	Attempts  int       `json:"attempts"`
	// Evidence is what a PASS rests on, for example "3 stored; 3 records read back".
	Evidence string `json:"evidence,omitempty"`
	// Seen counts every kind of observation of the run, whatever its status.
	Seen       map[Evidence]int `json:"seen,omitempty" redact:"-"`
	DurationMS float64          `json:"duration_ms"`
	Gating     bool             `json:"gating"`
	Waiver     *Waiver          `json:"waiver,omitempty" redact:"-"`
	// Symptoms are words for what was observed, by which one defect is known again.
	Symptoms []string `json:"-" redact:"-"`
}

// Finding is one observed breach of a rule. It is data, not an error.
type Finding struct {
	Rule      string `json:"rule" redact:"-"` // the sentence of the rule
	Expected  string `json:"expected"`
	Actual    string `json:"actual"`
	Object    string `json:"object,omitempty"`
	Operation string `json:"operation,omitempty"`
	// Replica is the URL whose replies alone show it, "" when those of several do, or none.
	Replica string `json:"replica,omitempty"`
	// Cause is a possible one, unless Observed reports that calls have left no other.
	Cause     string     `json:"cause"`
	Observed  bool       `json:"cause_observed,omitempty"`
	Fix       string     `json:"fix"`
	Curl      string     `json:"curl"`
	Exchanges []Exchange `json:"exchanges" redact:"-"`

	// Quote is the reason that the endpoint gave, where it explains why the rule is broken.
	Quote *Quote `json:"-"`
}

// Quote is a message of the endpoint.
type Quote struct {
	Text string
	Key  string // the same for messages of one cause
	When string // when an endpoint answers so that does not always; "" is not known
	// Cause: the message leads to a cause, which is that of the finding.
	Cause bool
}

// CauseLabel introduces the cause: a possible one, or the one that was observed.
func (f Finding) CauseLabel() string {
	switch {
	case f.Observed:
		return "Cause, as observed"
	case wire.OpenCause(f.Cause):
		return "Cause"
	}
	return "Possible cause"
}

// Residue is what became of the records that the run wrote.
type Residue struct {
	// Cleaned were shown to be gone; VerifiedBy is by which of read-back and skipped update.
	Cleaned    int      `json:"cleaned"`
	VerifiedBy []string `json:"verified_by,omitempty"` // readback, witness
	// Unverified were deleted by acknowledgement only. UnverifiedReason is what would show it.
	Unverified       int    `json:"unverified,omitempty"`
	UnverifiedReason string `json:"unverified_reason,omitempty"`
	// Refused were not deleted, or are there all the same; of Unknown it is not
	// known whether they were written. Both may still be in the destination.
	Refused []Leftover `json:"refused"`
	Unknown []Leftover `json:"unknown"`
	Journal string     `json:"journal,omitempty"`
}

// Leftover is one key that may still exist in the destination.
type Leftover struct {
	Object     string `json:"object"`
	Identifier string `json:"identifier"` // raw JSON
	Field      string `json:"field"`
	Reason     string `json:"reason"`
}

// Waiver accepts one known failure for a reason.
type Waiver struct {
	Check     string `json:"check" yaml:"check"`
	Object    string `json:"object,omitempty" yaml:"object"`
	Operation string `json:"operation,omitempty" yaml:"operation"`
	Reason    string `json:"reason" yaml:"reason"`
	Owner     string `json:"owner,omitempty" yaml:"owner"`
	Until     string `json:"until,omitempty" yaml:"until"` // YYYY-MM-DD, the last day
	Issue     string `json:"issue,omitempty" yaml:"issue"`
	// Source is where the waiver was read, FILE:LINE, for messages; it may be "".
	Source string `json:"-" yaml:"-"`
}

// Exchange is one recorded and redacted HTTP exchange; Sight, with its parts, is one
// between two others, as a proxy or a recording saw it.
type (
	Exchange   = wire.Exchange
	Sight      = wire.Sight
	Asked      = wire.Asked
	Timing     = wire.Timing
	HeaderLine = wire.Header
)

// EndedBy is the end of a recorded exchange: the kind of an Exchange, and its description.
func EndedBy(kind, text string) error { return &wire.Error{Kind: wire.Kind(kind), Op: text} }

// BodyFiles are the files that the command of a finding names, by path, without secrets.
func (f Finding) BodyFiles() map[string][]byte {
	files := map[string][]byte{}
	for _, x := range f.Exchanges {
		name := wire.CurlBodyFile(x)
		binary, err := base64.StdEncoding.DecodeString(x.Request.Body.Base64)
		if name != "" && strings.Contains(f.Curl, name) && err == nil {
			files[name] = append(binary, x.Request.Body.Text...) // one of both
		}
	}
	return files
}

// ReadJournal returns the suite whose run wrote a journal, "" for SuiteDestination, and its URL
// with placeholders such as $DESTKIT_URL for what holds a secret.
func ReadJournal(file string) (suite, target string, err error) {
	j, err := journal.Read(file)
	if err != nil {
		return "", "", err
	}
	return j.Header().Suite, j.Header().Target, nil
}
