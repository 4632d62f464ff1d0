package destination

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// session is what all checks of one run share.
type session struct {
	target   Target
	opts     conformance.Options
	url      *url.URL
	client   *wire.Client
	replicas replicas
	redactor *wire.Redactor
	hooks    *http.Client
	readback hook.Readback
	journal  *journal.Journal
	ledger   model.Ledger
	settled  statuses
	cleaned  []*cleaning // what the clean-up has seen; nil before it
	keys     *values.Keys
	// owns recognises the keys of the run of a journal; nil: all in it are this run's.
	owns    *ownership
	made    values.Maker
	watch   watch
	overall overall
	// disturbed are the calls that had no answer at first.
	disturbed disturbances
	validated sync.Map // requests without their records, as text
	trees     exchange.Trees
	wide      *semaphore.Weighted // of keptBodies
	// late is how long after its acknowledgement a write arrives, by the trial; 0: at once.
	late      time.Duration
	neverLate neverLate
	// judgesAlone: the checks that run now have failed once and run alone.
	judgesAlone atomic.Bool
	pace        *pace
	inMemory    bool
	stop        func() // ends the server of a handler, nil without one
	// queued is the call that got no answer as long as another connection was open, of
	// an endpoint that serves one at a time; nil: it serves several.
	queued  *reply
	dev     bool // TLS checks are NOT_RUN and chains are not verified
	devWhy  string
	private bool // verified against roots that the author gave

	syncRuns  atomic.Int64
	responded atomic.Bool // some HTTP response came to its end
	cat       *conformance.Catalogue
	catalog   *catalog // what discovery found
	known     bool
	seen      func(req request, r *reply)
	token     tokenBox // the token of the connection; a hook may rotate it
	secret    string   // the URL secret

	budget struct {
		sync.Mutex
		sent int
	}
	ids struct {
		sync.Mutex
		rng *rand.Rand
	}
	// hookShown holds the objects of which the read-back hook has shown a record.
	hookShown sync.Map
	storedBy  sync.Map // object and operation of records that were there
	hookHides sync.Map // by object and field: the hook cannot show it as it was sent
	// hookFault: the read-back hook failed its own test and is not believed.
	hookFault error
	full      []*batch    // of the declared size, sent when nothing else is
	unwritten *unwritten  // why a run that may write does not; nil when it does
	untrusted bool        // the certificate does not verify
	uncounted atomic.Bool // it has listed a key without a count
}

type tokenBox struct {
	sync.RWMutex
	value string
}

func (t *tokenBox) get() string  { t.RLock(); defer t.RUnlock(); return t.value }
func (t *tokenBox) set(v string) { t.Lock(); defer t.Unlock(); t.value = v }

// begin checks the options and prepares a run; nothing is sent yet.
func (s *session) begin(target Target, opts conformance.Options) error {
	s.target, s.opts, s.redactor = target, withDefaults(opts), wire.NewRedactor()
	s.wide, s.watch.turn = semaphore.NewWeighted(keptBodies), semaphore.NewWeighted(1)
	if err := validate(s.opts); err != nil {
		return err
	}
	s.ids.rng = rand.New(rand.NewPCG(s.opts.Seed, 2))
	if err := s.resolve(); err != nil {
		return err
	}
	s.token.set(target.Token)
	s.redactor.Add(target.Token, "$DESTKIT_TOKEN")
	if err := s.findSecret(); err != nil {
		return err
	}
	s.pace = newPace()
	return s.connect()
}

// validate refuses options that make no run.
func validate(o conformance.Options) error {
	switch o.Profile {
	case conformance.ProfileSpec, conformance.ProfileV1, conformance.ProfileStrict:
	default:
		return usage("unknown profile %q: use spec, v1 or strict", o.Profile)
	}
	switch o.Development {
	case conformance.DevelopmentAuto, conformance.DevelopmentOn, conformance.DevelopmentOff:
	default:
		return usage("unknown development mode %q: use auto, on or off", o.Development)
	}
	switch o.SkipConvention {
	case "", conformance.SkipFailure, conformance.SkipSuccess, conformance.SkipSuccessWithMessage:
	default:
		return usage("unknown skip convention %q: use failure, success or success-with-message", o.SkipConvention)
	}
	if o.Write && len(o.Objects) == 0 {
		return usage("writing needs the name of an object: add --object NAME ('destkit plan URL' lists them)")
	}
	if !o.Write && len(o.Objects) > 0 && (o.Readback.Set() || o.ReadbackFunc != nil) {
		return usage("a read-back hook needs --write: nothing is written to be read back")
	}
	if o.MaxRecords < 0 || o.PlanningTimeout < 0 || o.BatchTimeout < 0 || o.Timeout < 0 || o.ReadbackWindow < 0 {
		return usage("limits and durations cannot be negative")
	}
	if o.KeyFrom > o.KeyTo {
		return usage("key range %d:%d is empty: FROM must not exceed TO", o.KeyFrom, o.KeyTo)
	}
	if !strings.Contains(o.KeyTemplate, "{n}") || !strings.Contains(o.KeyTemplate, "{run}") {
		return usage("key template %q needs {run} and {n}, so that keys are unique and recognisable", o.KeyTemplate)
	}
	return nil
}

func (s *session) connect() error {
	o := wire.Options{
		URL: s.target.URL, Token: s.target.Token, Headers: s.target.Headers,
		Redactor: s.redactor, UserAgent: "destkit/" + cmp.Or(s.opts.Version, "dev"),
		Limiter: s.pace.wait,
	}
	hooks := &http.Transport{DisableKeepAlives: true, DialContext: s.dialInTurn(new(net.Dialer).DialContext)}
	if s.inMemory {
		dial, stop := wire.ServeHandler(s.target.Handler)
		o.Dial, s.stop = dial, stop
		hooks.DialContext = s.dialInTurn(dial)
	}
	// TLS 1.0 is spoken where nothing better is offered: TLS-006 judges that.
	o.TLS = &tls.Config{MinVersion: tls.VersionTLS10, RootCAs: s.opts.Roots, InsecureSkipVerify: s.dev && s.opts.Roots == nil}
	if s.opts.Roots != nil {
		hooks.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS10, RootCAs: s.opts.Roots}
	} else if s.dev {
		hooks.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}
	}
	s.hooks = &http.Client{Transport: hooks}
	o.Spare = s.trees.Spare()
	client, err := wire.New(o)
	if err != nil {
		return usage("%s", s.redactor.String(err.Error()))
	}
	s.client = client
	if err := s.connectReplicas(client, o); err != nil {
		return err
	}
	switch {
	case s.opts.ReadbackFunc != nil:
		s.readback = s.opts.ReadbackFunc
	case s.opts.Readback.Set():
		s.readback = s.noticed(s.opts.Readback.Readback(s.hooks, s.opts.Hooks.Timeout))
	}
	return nil
}

// close ends the connections of the run, and the server of a handler.
func (s *session) close() {
	for _, client := range s.replicas.lines {
		client.Close()
	}
	if s.stop != nil {
		s.stop()
	}
}

// openJournal makes the write-ahead journal; a run that writes keeps it in a
// file, so that a killed run can be cleaned up.
func (s *session) openJournal() error {
	header := journal.Header{Run: s.opts.RunID, Target: s.redactor.String(s.target.URL), Started: time.Now().UTC()}
	if s.opts.Journal == "" || !s.opts.Write {
		s.journal = journal.Memory(header)
		return nil
	}
	j, err := journal.Create(s.opts.Journal, header)
	if errors.Is(err, syscall.ENOSPC) {
		return err
	}
	if err != nil {
		return usage("%v", err)
	}
	s.journal = j
	for _, k := range j.Pending() { // of an earlier part of the run
		s.ledger.Doubt(place{Object: k.Object, Field: k.Field, Key: exchange.KeyText(k.Identifier)})
	}
	return nil
}

// dropJournal removes the journal of a run that sent nothing, so that the
// corrected command can use the same file.
func (s *session) dropJournal() {
	if len(s.journal.Pending()) == 0 && s.journal.Path() != "" {
		s.journal.Close()
		os.Remove(s.journal.Path())
		s.opts.Journal = "" // there is none to report
	}
}

// closeJournal ends the journal, if the run has come to one.
func (s *session) closeJournal() {
	if s.journal != nil {
		_ = s.journal.Close() // every line is on disk already
	}
}

// newID makes a request id: 32 lower-case hex digits, unique in the run.
func (s *session) newID() string {
	s.ids.Lock()
	defer s.ids.Unlock()
	return fmt.Sprintf("%016x%016x", s.ids.rng.Uint64(), s.ids.rng.Uint64())
}

// reserve takes n records from the budget of the run.
func (s *session) reserve(n int) error {
	s.budget.Lock()
	defer s.budget.Unlock()
	if s.budget.sent+n > s.opts.MaxRecords {
		return notRun("--max-records", "needs %s, and %d of --max-records %d are left",
			quantity.Count(n, "more record"), s.opts.MaxRecords-s.budget.sent, s.opts.MaxRecords)
	}
	s.budget.sent += n
	return nil
}

// giveBack returns records that were not sent.
func (s *session) giveBack(n int) {
	s.budget.Lock()
	defer s.budget.Unlock()
	s.budget.sent -= n
}

// sentRecords is how much of the budget is used up.
func (s *session) sentRecords() int {
	s.budget.Lock()
	defer s.budget.Unlock()
	return s.budget.sent
}

func (s *session) hook(name string) conformance.HookSpec {
	switch name {
	case "cleanup":
		return s.opts.Hooks.Cleanup
	case "restart":
		return s.opts.Hooks.Restart
	case "alter_schema":
		return s.opts.Hooks.AlterSchema
	case "break_downstream":
		return s.opts.Hooks.BreakDownstream
	case "rotate_token":
		return s.opts.Hooks.RotateToken
	}
	return conformance.HookSpec{}
}

// deadline of one call by its method: planning or batch.
func (s *session) deadline(method string) time.Duration {
	if method == "sync_batch" {
		return s.opts.BatchTimeout
	}
	return s.opts.PlanningTimeout
}

// withDefaults fills what the caller left open, the form of the keys too.
func withDefaults(o conformance.Options) conformance.Options {
	o.KeyTemplate = cmp.Or(o.KeyTemplate, values.DefaultKeyTemplate)
	return o.WithDefaults()
}

// beginWrites makes what names the records of a run.
func (s *session) beginWrites() (err error) {
	s.keys, err = newKeys(s.opts)
	s.made = values.NewMaker(s.opts.RunID)
	s.syncRuns.Store(600)
	return err
}

// newKeys makes the keys of a run that carry its options.
func newKeys(o conformance.Options) (*values.Keys, error) {
	if !utf8.ValidString(o.KeyTemplate + o.RunID) {
		return nil, usage("key template %q with run id %q is not UTF-8", o.KeyTemplate, o.RunID)
	}
	return values.NewKeys(o.RunID, o.KeyTemplate, o.KeyFrom, o.KeyTo), nil
}
