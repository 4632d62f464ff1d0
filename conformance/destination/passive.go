package destination

import (
	"crypto/tls"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// Passive judges a destination by the calls that others make: the claims of the scenarios that
// Run uses look at what went by. One goroutine at a time may use it.
type Passive struct {
	ruler    *judge.Ruler
	s        *session
	viewer   *wire.Viewer
	ours     *wire.Calls
	selected []*conformance.Check
	started  time.Time
	spent    time.Duration // between the first and the last exchange

	headers map[uint64]bool // secrets that are known, by their hash
	seed    maphash.Seed
	tally
}

// tally is how much was seen.
type tally struct {
	calls, records, unread int
	other                  int // exchanges that are no calls
	dropped                int // for their credentials
}

// Judged is what was found in one exchange.
type Judged struct {
	// Method is the JSON-RPC method as the caller sent it, Object what it speaks of.
	Method, Object, Operation string
	Status                    int
	// Kind names how the exchange ended when no complete response came.
	Kind string
	// Records were sent; Succeeded and Failed count those whose results report success or failure.
	Records, Succeeded, Failed int
	// IDs are the checks that the exchange breaks, in the order of the catalogue.
	IDs []string
	// Dropped is why the exchange is neither judged nor kept, "" where it is.
	Dropped string

	exchange func(recording bool) conformance.Exchange
}

// maxRecorded is how many bytes of each body a recording keeps.
const maxRecorded = 8 << 20

// Recording is the record with bodies up to maxRecorded, without secrets, to be judged or sent again.
func (j *Judged) Recording() conformance.Exchange { return j.exchange(true) }

// Exchange is the record of the exchange, without secrets.
func (j *Judged) Exchange() conformance.Exchange { return j.exchange(false) }

// NewPassive prepares a judge of what others exchange with the URL of the target, whose Token and
// Headers are only kept out of reports. Mistakes are *UsageError.
func NewPassive(target Target, opts conformance.Options) (*Passive, error) {
	opts.Write, opts.Load, opts.Features = false, false, nil
	opts = line.WithDefaults(opts)
	if err := line.Validate(opts); err != nil {
		return nil, err
	}
	s := &session{}
	s.Target.URL, s.Opts, s.Redactor = target.URL, opts, wire.NewRedactor()
	if err := s.Resolve(); err != nil {
		return nil, err
	}
	s.Redactor.Add(target.Token, "$DESTKIT_TOKEN")
	for name, value := range target.Headers {
		wire.AddHeaderSecrets(s.Redactor, []wire.Header{{Name: name, Value: value}})
	}
	if err := wire.AddURLSecrets(s.Redactor, target.URL); err != nil {
		return nil, conformance.Usage("%v", err)
	}
	if err := s.FindSecret(); err != nil {
		return nil, err
	}
	s.Redactor.Bound(mostSecrets)
	var err error
	if s.Cat, err = conformance.LoadCatalogue(conformance.SuiteDestination); err != nil {
		return nil, err
	}
	suite := s.suite()
	selected, err := suite.Select(&s.Opts)
	if err != nil {
		return nil, err
	}
	r, err := judge.NewRuler(&s.Judge, suite, selected)
	if err != nil {
		return nil, err
	}
	return &Passive{
		ruler: r, s: s, ours: wire.NewCalls(target.URL, s.Redactor), viewer: wire.NewViewer(s.Redactor, s.Trees.Spare()), started: time.Now(), selected: selected,
		headers: map[uint64]bool{}, seed: maphash.MakeSeed(),
	}, nil
}

// Secrets is the redactor of the run: no report shows what it knows.
func (p *Passive) Secrets() *wire.Redactor { return p.s.Redactor }

const (
	mostSecrets = 256  // credentials of callers: a request with another one is neither judged nor kept
	mostHeaders = 2000 // header lines and queries that are known again
)

// learn makes the credentials of a request known; false: there are too many.
func (p *Passive) learn(x *conformance.Sight) bool {
	refused := p.s.Redactor.Refused()
	for _, h := range x.RequestHeader {
		if foreign.SecretName(h.Name) && !foreign.OfOneRequest(h.Name) && !p.known(h) {
			wire.AddHeaderSecrets(p.s.Redactor, []wire.Header{h})
		}
	}
	if _, query, found := strings.Cut(x.Target, "?"); found && !p.known(wire.Header{Name: "?", Value: query}) {
		p.s.Redactor.AddQuery(query, "$DESTKIT_")
	}
	return p.s.Redactor.Refused() == refused
}

// Observe judges one exchange, in the order of the requests as far as that is known.
func (p *Passive) Observe(x *conformance.Sight) *Judged {
	if !p.learn(x) {
		p.dropped++
		return &Judged{Method: x.Method, Dropped: "it has more credentials than can be kept out of reports"}
	}
	auth, length := "", 0
	for _, h := range x.RequestHeader {
		switch {
		case strings.EqualFold(h.Name, "Authorization"):
			auth = h.Value
		case strings.EqualFold(h.Name, "Content-Length"):
			length, _ = strconv.Atoi(h.Value)
		}
	}
	r := &exchange.Reply{Reply: p.viewer.Reply(x)}
	r.Parse(&p.s.Trees)
	c := rules.Read(r, x.Method, auth, x.Number)
	j := p.judged(x, c)
	if !p.ours.Has(x) {
		p.other++
		return j
	}
	p.calls++
	p.records += c.Records
	if p.calls == 1 {
		p.started = x.Started
	}
	p.spent = max(p.spent, x.Started.Add(x.Total).Sub(p.started))
	if c.Batch != nil {
		j.Operation = c.Batch.Operation
		j.Succeeded, j.Failed = c.Batch.Statuses()
	}
	if c.Unread {
		p.unread++
	}
	if !c.Unread && !c.CutAt(length) {
		j.IDs = p.ruler.See(c)
	}
	return j
}

// judged is what is known of an exchange before it is judged.
func (p *Passive) judged(x *conformance.Sight, c *rules.Call) *Judged {
	return &Judged{
		Method: c.Method, Object: c.Object, Status: c.Status, Kind: string(c.Kind), Records: c.Records,
		exchange: func(recording bool) conformance.Exchange {
			show := c.Exchange
			if recording {
				show = func() conformance.Exchange { return p.viewer.Recording(x, c.Reply().Reply, maxRecorded, maxRecorded) }
			}
			e := show()
			e.RPC, e.RPCID = p.s.Redactor.String(foreign.Clip(c.Method, 200)), p.s.Redactor.String(foreign.Clip(c.ID, 400))
			return e
		},
	}
}

// known reports whether a header line was seen before, and notes it.
func (p *Passive) known(h wire.Header) bool {
	sum := maphash.String(p.seed, h.Name+"\x00"+h.Value)
	if p.headers[sum] {
		return true
	}
	if len(p.headers) < mostHeaders {
		p.headers[sum] = true
	}
	return false
}

// TLSConfig leaves certificates to VerifyTLS, so that their faults can be reported.
func (p *Passive) TLSConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS10, RootCAs: p.s.Opts.Roots, InsecureSkipVerify: true}
}

// VerifyTLS notes what a handshake shows; its error reports why nothing may be sent over the
// connection. It is safe for concurrent use.
func (p *Passive) VerifyTLS(state tls.ConnectionState) error {
	f := &rules.Handshake{Name: p.s.URL.Hostname(), Roots: p.s.Opts.Roots, Now: time.Now(), Version: state.Version, Chain: state.PeerCertificates}
	p.ruler.Traffic.Connected(f)
	if p.s.Dev && p.s.Opts.Roots == nil {
		return nil
	}
	return f.Verify(f.Name, f.Now)
}

// activeJudging decides what traffic cannot.
const activeJudging = "active judging (destkit conform)"

// result is what a check comes to.
func (p *Passive) result(c *conformance.Check) *engine.Result {
	pc := p.ruler.ByID[c.ID]
	found := *pc.Found // Report can be called again
	switch {
	case !rules.Decides(c.ID):
		return found.Result(engine.NotRun(activeJudging, "needs active judging: traffic alone does not show it"))
	case strings.HasPrefix(c.ID, "TLS-") && !p.s.TLSJudged():
		return found.Result(p.s.Permitted(c))
	case pc.Looked == 0:
		return found.Result(engine.Inconclusive(activeJudging, "no call went by that shows it"))
	}
	var out error
	if found.Held() == nil && pc.Reason != "" && len(found.Evidence()) == 0 && c.Level != conformance.Info {
		out = engine.Inconclusive(activeJudging, "%s", pc.Reason)
	}
	r := found.Result(out)
	if r.Status == conformance.Inconclusive && r.Decider == "" {
		r.Decider = activeJudging
	}
	r.Attempts = pc.Looked
	return r
}

// Report sums up the traffic so far. It can be called more than once.
func (p *Passive) Report() *conformance.Report {
	for _, pc := range p.ruler.Checks {
		p.ruler.Conclude(pc)
	}
	return p.ruler.Suite.Observed(p.s.Opts, p.selected, p.started, p.result, func(r *conformance.Report) {
		r.Settings.Development, r.Settings.Roots = p.s.Dev, p.s.rootsName()
		p.s.sumUp(r)
		r.Tier = conformance.TierProtocol
		if p.ruler.Traffic.Results() > 0 {
			r.Tier = conformance.TierResults
		}
		r.Calls, r.Records = p.calls, p.records
		r.DurationMS = float64(p.spent.Microseconds()) / 1000
		if p.other > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s not judged: no JSON-RPC", quantity.Count(p.other, "exchange")))
		}
		if p.dropped > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s neither judged nor kept: the callers have more than the %d credentials that can be kept out of reports; begin again for the others", quantity.Count(p.dropped, "exchange"), mostSecrets))
		}
		if p.unread > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s not judged, for a Content-Encoding that this program does not know", quantity.Count(p.unread, "response")))
		}
	})
}
