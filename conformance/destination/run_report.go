package destination

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/internal/quantity"
)

// noteSettings says in the report what a run of a destination was told.
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
	out := []string{}
	for _, n := range hookNames {
		if s.Hook(n).Set() {
			out = append(out, n)
		}
	}
	return out
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

// sumUp says what the run was about: the evidence, the speed, the objects, the calls.
func (s *session) sumUp(r *conformance.Report) {
	r.Tier = s.tier()
	if r.Settings.KeyTemplate == values.DefaultKeyTemplate {
		r.Settings.KeyTemplate = ""
	}
	if s.Catalog != nil && s.Catalog.Speed != nil {
		v := s.Catalog.Speed
		r.Settings.DeclaredSpeed = fmt.Sprintf("%s in a batch, %s at once, %d records/s",
			quantity.Count(v.MaximumBatchSize, "record"), quantity.Count(v.MaximumParallelBatches, "batch"), v.MaximumRecordsPerSecond)
	}
	if s.Catalog != nil {
		r.Settings.DeclaredRateLimit = s.Catalog.RateLimit
		names := s.Catalog.Names()
		r.Objects = names[:min(len(names), mostObjects)]
	}
	r.Calls, r.Records = s.Replicas.Calls(), s.SentRecords()
}

// mostObjects is how many objects of the destination a report names.
const mostObjects = 100

// refusedKeys: where no record of an operation was taken for its keys, which the judge
// has chosen, most was not judged, and that is not the endpoint's doing.
func refusedKeys(r *conformance.Report) {
	for _, c := range r.Checks {
		if c.Status == conformance.Inconclusive && c.Decider == write.DeciderKeys {
			r.Problems = append(r.Problems, conformance.Problem{Kind: "keys", ExitStatus: 3, Message: c.ID + ": " + c.Reason,
				Fix: "give integers that the endpoint takes and that none of its own records has: --key-range FROM:TO"})
			return
		}
	}
}

// unacceptable are the checks whose failure leaves no record accepted, whatever the
// records are: no fixture would help.
var unacceptable = []string{"RES-001", "RES-005", "RES-002", "RES-004"}

// unaccepted says of the checks that saw no record accepted and none refused that they
// wait for the failed check about results, where no record of the run was accepted.
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
