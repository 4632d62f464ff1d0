package judge

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/quantity"
)

// The clean-up is a sync run with the largest delete batches of the run. What it shows
// against a check that has passed is a finding of that check.

// OfCleanUp adds what the clean-up shows against a check.
func (sc *Scenario) OfCleanUp() {
	switch sc.Check().ID {
	case "ERR-006":
		_ = sc.stayedUp() // all that it finds is in the findings
	case "SEM-009":
		sc.deletesRefused()
		sc.deletesDenied()
	}
}

// deletesRefused: a record that was acknowledged and is there can be deleted.
func (sc *Scenario) deletesRefused() {
	for _, g := range sc.j.Cleaned {
		deletes := slices.ContainsFunc(g.Keys, func(k journal.Key) bool { return g.AnswerTo(k).Acknowledged })
		for _, k := range g.Keys {
			d := g.AnswerTo(k)
			if !deletes || k.State != journal.Written || d.Refused == "" {
				continue
			}
			cause, known := causes.Of(causes.Message{Text: d.Refused, Status: d.Reply.Status, Method: d.Reply.Method})
			there := slices.ContainsFunc(g.StillThere, func(o journal.Key) bool { return string(o.Identifier) == string(k.Identifier) })
			if !there && cause.Name != causes.StatementFromText {
				continue
			}
			actual := "its delete is refused: " + d.Refused
			if there {
				actual += "; the read-back still shows it"
			}
			sc.Object = g.Object
			sc.BrokenFor("delete", "the record "+exchange.KeyText(k.Identifier)+" deleted: it was acknowledged when it was written", actual, d.Reply)
			if found := sc.All(); known {
				f := &found[len(found)-1]
				f.Cause, f.Fix = cause.Text, cause.Fix
			}
		}
	}
}

// deletesDenied: what was acknowledged and the read-back still shows was not deleted (spec
// 4.2). A run that has found something keeps its verdict, since that may be the reason: a
// late write, or a record under another key (SEM-014).
func (sc *Scenario) deletesDenied() {
	if sc.j.Settled.found() {
		return
	}
	for _, g := range sc.j.Cleaned {
		var denied []journal.Key
		for _, k := range g.StillThere {
			if d := g.AnswerTo(k); d.Acknowledged && d.Reply != nil {
				denied = append(denied, k)
			}
		}
		if len(denied) == 0 {
			continue
		}
		sc.Object = g.Object
		first := denied[0]
		sc.BrokenFor("delete", exchange.KeyText(first.Identifier)+" gone: its delete was acknowledged when the run cleaned up",
			fmt.Sprintf("the read-back still shows it, and %d of the %s of the clean-up in all", len(denied), quantity.Count(len(g.Keys), "record")),
			g.AnswerTo(first).Reply)
		if found := sc.All(); len(found) > 0 {
			f := &found[len(found)-1]
			if len(denied) < len(g.Keys) && !slices.ContainsFunc(denied, func(k journal.Key) bool { return plainKey.MatchString(exchange.KeyText(k.Identifier)) }) {
				f.Cause = "delete does not find keys with spaces, quotes or other unusual characters as they are stored: they are trimmed, decoded or escaped on the way to the look-up."
				continue
			}
			f.Cause = wire.EitherCause("the size of the batches (this check deletes less at once)", "that other syncs have written the records",
				"the request below again, with one of its records,")
		}
	}
}

// plainKey is a key of letters, digits and what addresses have.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9@._-]+$`)

// found reports whether a check has found something that may explain what the clean-up sees.
func (s *statuses) found() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, status := range s.by {
		switch status {
		case conformance.Fail, conformance.Flaky, conformance.HarnessError:
			return true
		case conformance.Warn:
			if id[:min(4, len(id))] == "SEM-" {
				return true
			}
		}
	}
	return false
}
