package destination

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

// ofCleanUp adds what the clean-up shows against a check.
func (sc *scenario) ofCleanUp() {
	switch sc.Check().ID {
	case "ERR-006":
		_ = sc.stayedUp() // all that it finds is in the findings
	case "SEM-009":
		sc.deletesRefused()
		sc.deletesDenied()
	}
}

// deletesRefused: a record that was acknowledged and is there can be deleted.
func (sc *scenario) deletesRefused() {
	for _, g := range sc.cleaned {
		deletes := slices.ContainsFunc(g.keys, func(k journal.Key) bool { return g.answerTo(k).acknowledged })
		for _, k := range g.keys {
			d := g.answerTo(k)
			if !deletes || k.State != journal.Written || d.refused == "" {
				continue
			}
			cause, known := causes.Of(causes.Message{Text: d.refused, Status: d.reply.Status, Method: d.reply.Method})
			there := slices.ContainsFunc(g.stillThere, func(o journal.Key) bool { return string(o.Identifier) == string(k.Identifier) })
			if !there && cause.Name != causes.StatementFromText {
				continue
			}
			actual := "its delete is refused: " + d.refused
			if there {
				actual += "; the read-back still shows it"
			}
			sc.object = g.object
			sc.brokenFor("delete", "the record "+exchange.KeyText(k.Identifier)+" deleted: it was acknowledged when it was written", actual, d.reply)
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
func (sc *scenario) deletesDenied() {
	if sc.settled.found() {
		return
	}
	for _, g := range sc.cleaned {
		var denied []journal.Key
		for _, k := range g.stillThere {
			if d := g.answerTo(k); d.acknowledged && d.reply != nil {
				denied = append(denied, k)
			}
		}
		if len(denied) == 0 {
			continue
		}
		sc.object = g.object
		first := denied[0]
		sc.brokenFor("delete", exchange.KeyText(first.Identifier)+" gone: its delete was acknowledged when the run cleaned up",
			fmt.Sprintf("the read-back still shows it, and %d of the %s of the clean-up in all", len(denied), quantity.Count(len(g.keys), "record")),
			g.answerTo(first).reply)
		if found := sc.All(); len(found) > 0 {
			f := &found[len(found)-1]
			if len(denied) < len(g.keys) && !slices.ContainsFunc(denied, func(k journal.Key) bool { return plainKey.MatchString(exchange.KeyText(k.Identifier)) }) {
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

func (g *cleaning) answerTo(k journal.Key) deletion { return g.answers[exchange.KeyText(k.Identifier)] }

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
