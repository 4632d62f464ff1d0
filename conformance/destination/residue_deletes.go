package destination

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/quantity"
)

// deleteCheck is the check whose sentence the clean-up sees broken.
const deleteCheck = "SEM-009"

// judgeDeletes looks at the clean-up as a sync run of its own with the largest
// delete batches of the run: what it acknowledged and the read-back still shows was
// not deleted (spec 4.2). A run that has found something keeps its verdict, since
// that may be the reason: a late write, or a record under another key (SEM-014).
func (s *session) judgeDeletes(ctx context.Context, groups []*cleaning, r *conformance.Report) {
	if slices.ContainsFunc(r.Checks, func(c conformance.CheckResult) bool {
		return c.Status == conformance.Fail || c.Status == conformance.Flaky || c.Status == conformance.HarnessError || len(c.Findings) > 0 && strings.HasPrefix(c.ID, "SEM-")
	}) {
		return
	}
	at := slices.IndexFunc(r.Checks, func(c conformance.CheckResult) bool { return c.ID == deleteCheck && c.Status == conformance.Pass })
	check, known := s.cat.Check(deleteCheck)
	if at < 0 || !known {
		return
	}
	res := &r.Checks[at]
	for _, g := range groups {
		if len(g.denied) == 0 {
			continue
		}
		sc := s.newScenario(ctx, check, g.object)
		first := exchange.KeyText(g.denied[0].Identifier)
		sc.brokenFor("delete", first+" gone: its delete was acknowledged when the run cleaned up",
			fmt.Sprintf("the read-back still shows it, and %d of the %s of the clean-up in all", len(g.denied), quantity.Count(len(g.keys), "record")),
			g.answers[first].reply)
		found := &sc.All()[0]
		found.Cause = wire.EitherCause("the size of the batches (this check deletes less at once)", "that other syncs have written the records",
			"the request below again, with one of its records,")
		res.Findings = append(res.Findings, found.Finding)
	}
	if len(res.Findings) > 0 {
		res.Status, res.Reason = conformance.Fail, "the clean-up saw it: acknowledged deletes that were not done"
		s.opts.Waive(check, res)
	}
}
