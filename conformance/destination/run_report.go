package destination

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// noteSettings adds the configuration of a destination run to the report.
func (s *session) noteSettings(r *conformance.Report) {
	r.Replicas = s.Replicas.Names[1:]
	r.Settings.Readback, r.Settings.Hooks = s.Readback != nil, s.hookNames()
	r.Settings.Development, r.Settings.Roots = s.Dev, s.rootsName()
}

func (s *session) rootsName() string {
	switch {
	case s.Dev || s.URL.Scheme != "https":
		return "none"
	case s.Private:
		return "private"
	}
	return "public"
}

var hookNames = []string{"cleanup", "restart", "alter_schema", "break_downstream", "rotate_token"}

func (s *session) hookNames() []string {
	return append([]string{}, lists.Where(hookNames, func(name string) bool { return s.Hook(name).Set() })...)
}

// tier is how much evidence the run could gather.
func (s *session) tier() conformance.Tier {
	switch {
	case !s.Opts.Write:
		return conformance.TierProtocol
	case s.Readback == nil:
		return conformance.TierResults
	case s.Opts.Load && len(s.hookNames()) == len(hookNames):
		return conformance.TierOperations
	}
	return conformance.TierSemantics
}

// sumUp adds the evidence, the speed, the objects and the calls of the run.
func (s *session) sumUp(r *conformance.Report) {
	r.Tier = s.tier()
	if r.Settings.KeyTemplate == values.DefaultKeyTemplate {
		r.Settings.KeyTemplate = ""
	}
	if s.Catalog != nil {
		r.Settings.DeclaredSpeed = declaredSpeed(s.Catalog)
		r.Settings.DeclaredRateLimit = s.Catalog.RateLimit
		const mostObjects = 100 // are named
		names := s.Catalog.Names()
		r.Objects = names[:min(len(names), mostObjects)]
	}
	r.Calls, r.Records = s.Replicas.Calls(), s.SentRecords()
}

// declaredSpeed is the speed that the endpoint declares, "" when it does not.
func declaredSpeed(c *write.Catalog) string {
	if c.Speed == nil {
		return ""
	}
	return fmt.Sprintf("%s in a batch, %s at once, %d records/s", quantity.Count(c.Speed.MaximumBatchSize, "record"),
		quantity.Count(c.Speed.MaximumParallelBatches, "batch"), c.Speed.MaximumRecordsPerSecond)
}

// refusedKeys: an endpoint that takes none of the keys of the judge could not be judged.
func refusedKeys(r *conformance.Report) {
	for _, c := range r.Checks {
		if c.Status == conformance.Inconclusive && c.Decider == write.DeciderKeys {
			r.Problems = append(r.Problems, conformance.Problem{Kind: "keys", ExitStatus: 3, Message: c.ID + ": " + c.Reason,
				Fix: "give integers that the endpoint takes and that none of its own records has: --key-range FROM:TO"})
			return
		}
	}
}

// unacceptable are the checks whose failure leaves no record accepted, whatever the records are.
var unacceptable = []string{"RES-001", "RES-005", "RES-002", "RES-004"}

// unaccepted marks the checks that saw no record accepted or refused as blocked by the failed check
// about results, where no record of the run was accepted.
func unaccepted(r *conformance.Report) {
	failed := func(id string) bool {
		return slices.ContainsFunc(r.Checks, func(c conformance.CheckResult) bool {
			return c.ID == id && (c.Status == conformance.Fail || c.Status == conformance.Flaky)
		})
	}
	first := slices.IndexFunc(unacceptable, failed)
	if first < 0 || slices.ContainsFunc(r.Checks, func(c conformance.CheckResult) bool { return c.Seen[conformance.SeenAccepted] > 0 }) {
		return
	}
	by := unacceptable[first]
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Status != conformance.Inconclusive || c.Decider != "fixtures" || c.Seen[conformance.SeenAttempts] == 0 ||
			c.Seen[conformance.SeenRefused] > 0 || strings.Contains(c.Reason, "the endpoint says: ") {
			continue
		}
		c.Reason, c.Decider, c.BlockedBy = "blocked by "+by+": no record result counts as accepted", "", []string{by}
	}
}

// Rules hold for every exchange of a run, not only for the calls of their scenarios: what they find
// in any, and no failed check shows, becomes a finding of the rule.

// beginOverall has the rules of the checks that are selected.
func (s *session) beginOverall(checks []*conformance.Check) (err error) {
	own := &session{}
	own.Target.URL, own.Opts, own.URL, own.Redactor, own.Secret, own.Dev = s.Target.URL, s.Opts, s.URL, s.Redactor, s.Secret, s.Dev
	own.Cat, own.Keys = s.Cat, s.Keys
	own.Replicas.Names, own.Replicas.Lines = s.Replicas.Names, s.Replicas.Lines
	s.Overall.Rules, err = judge.NewRuler(&own.Judge, own.suite(), slices.DeleteFunc(slices.Clone(checks), func(c *conformance.Check) bool {
		// Rules about time or pace judge calls that run alone; no batch may hang.
		return !rules.Decides(c.ID) || c.Acquit && c.ID != "TIM-002" || c.Load || strings.HasPrefix(c.ID, "TLS-")
	}))
	s.Seen = s.observe
	return err
}

// observe looks at one reply; of a call that the judge cut short or changed it learns nothing.
func (s *session) observe(req line.Request, r *exchange.Reply) {
	if s.Overall.Rules == nil || req.URL != "" || req.Plain || req.Conn != nil || req.CutAtOnce || req.CutReply > 0 || req.CutRequest > 0 {
		return
	}
	// An author's hook makes the endpoint another one.
	if r.Kind == wire.KindUnread || wire.Classify(r.DocErr, r.Received) == wire.KindTooLarge || s.Watch.Expected() {
		return
	}
	s.Overall.Mu.Lock()
	defer s.Overall.Mu.Unlock()
	s.Overall.Calls++
	shown := *r
	c := rules.Read(&shown, cmp.Or(req.HTTPMethod, http.MethodPost), s.authOf(req), s.Overall.Calls)
	if c.Good() && (r.Kind == wire.KindClosed || r.Kind == wire.KindReset) {
		s.Overall.Lost = append(s.Overall.Lost, r)
	}
	s.Overall.Rules.See(c)
}

func (s *session) authOf(req line.Request) string {
	if lines, set := req.Header["Authorization"]; set {
		return strings.Join(lines, "")
	}
	if token := s.Token.Get(); token != "" {
		return "Bearer " + token
	}
	for name, value := range s.Target.Headers {
		if strings.EqualFold(name, "Authorization") {
			return value
		}
	}
	return ""
}

// brokenOverall adds what was broken outside the scenario of a rule and no failed check shows.
func (s *session) brokenOverall(ctx context.Context, found *engine.Findings, shown func(symptom string, warnings bool) bool) {
	check := found.Check().ID
	sc := s.ScenarioOf(ctx, found)
	if ctx.Err() == nil {
		sc.OfCleanUp() // it can send, which the rules look at
	}
	s.Overall.Mu.Lock()
	defer s.Overall.Mu.Unlock()
	if check == "HTTP-003" && len(s.Overall.Lost) > 1 && len(s.Watch.All()) == 0 {
		for _, r := range s.Overall.Lost {
			if symptom := r.Symptom(); !shown(symptom, false) && !slices.Contains(found.Symptoms(), symptom) {
				sc.BrokenAs(symptom, "", "a response to every call", r.What()+": "+r.Failure(), r)
			}
		}
	}
	if pc := s.Overall.Rules.ByID[check]; pc != nil && (check != "TIM-002" || len(s.Watch.All()) == 0) {
		s.Overall.Rules.Conclude(pc)
		found.TakeUnless(func(symptom string) bool { return shown(symptom, true) }, pc.Found)
	}
}
