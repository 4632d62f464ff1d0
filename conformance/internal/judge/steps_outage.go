package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// These steps judge whether the endpoint was there all the time.
var outageSentences = sentences{
	`^the service sends what processes have died of$`:         (*Scenario).sendsWhatIsDeadly,
	`^the endpoint has accepted connections all the time$`:    (*Scenario).stayedUp,
	`^the endpoint has answered every call when it was made$`: (*Scenario).AnsweredFirst,
}

// DeadlyBodies and deadlyTexts are what processes have died of, and no handler expects.
var (
	DeadlyBodies = []string{
		"this is no JSON", "", "null", "[]", "[null]", `"text"`, "7",
		`{"jsonrpc":"2.0","id":"7","method":"sync_batch"}`,
		`{"jsonrpc":"2.0","id":"7","method":"sync_batch","params":null}`,
		`{"jsonrpc":"2.0","id":"7","method":"sync_batch","params":{"sync_plan":null,"records":null}}`,
	}
	deadlyTexts = []string{`"a\u0000b"`, `"a\ud800b"`, `"%s%n{0}${x}"`}
)

// sendsWhatIsDeadly sends what processes die of, until one takes the endpoint away. Other checks judge the answers.
func (sc *Scenario) sendsWhatIsDeadly() error {
	for _, body := range DeadlyBodies {
		if _, err := sc.Send(line.Request{Method: "garbage", Body: []byte(body), Odd: true}); err != nil {
			return sc.unlessAway(err)
		}
	}
	return sc.unlessAway(sc.whereItMayWrite(func(o *write.Object) error {
		id, err := o.Identifier()
		if err != nil {
			return err
		}
		for _, text := range deadlyTexts {
			fields := o.Takes(id, rpc.TypeString, false)
			if len(fields) == 0 {
				return nil
			}
			r, err := sc.NewRecord(o, id)
			if err != nil {
				return err
			}
			for _, f := range fields {
				r = r.With(f.APIName, json.RawMessage(text))
			}
			if _, err := sc.Write(o.Creating(), []*write.Record{r}, write.Plan{}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// unlessAway leaves out the end by an outage, which is what the next step judges.
func (sc *Scenario) unlessAway(err error) error {
	if errors.Is(err, wire.ErrAway) {
		return nil
	}
	return err
}

// stayedUp judges the outages of the run.
func (sc *Scenario) stayedUp() error {
	if err := sc.repeatSuspects(); err != nil {
		return err
	}
	outages := sc.Watch.All()
	// What happened while one call was under way alone names its cause.
	for _, o := range outages {
		expected, actual, symptom := "an endpoint that accepts connections all the time", "stopped accepting connections", ""
		if o.Silent {
			expected, actual, symptom = "an endpoint that responds all the time", "stopped responding", symptomSilent
		}
		back, where := "back", []*exchange.Reply{o.Reply}
		if !o.Ended {
			back = "not back"
		}
		switch {
		case o.Alone:
			actual += " after " + o.Call
		case hasAlone(outages):
			continue
		default: // which of them did it is not known, so that none is shown as the one
			actual, where = actual+" while several calls were under way: "+o.Names(), nil
		}
		actual += fmt.Sprintf("; it was %s after %s", back, exchange.Round(o.Back))
		if !o.Alone && !o.Ended {
			actual += " (--serial finds the one)"
		}
		var c write.Cause
		if o.Chance {
			c = write.Cause{
				Text: "the process ends without a call that ends it: what was under way was sent again, alone, and answered. It is restarted or replaced (a limit of requests or of memory, a deployment, a health check), or ends when several calls meet.",
				Fix:  "let a process that is to be replaced answer the calls that it has, and take no new ones; keep nothing in its memory that the next one needs.",
			}
		}
		sc.brokenBy(c, symptom, "", expected, actual, where...)
	}
	sc.blameLargeBatches(outages)
	sc.Explain(func(symptom string) bool { return symptom == symptomSilent },
		"what the call took, the only worker, a lock or a connection of a pool, is never given back.", "give it back on every path, and put a time limit on all that a call waits for.",
		!slices.ContainsFunc(outages, func(o *line.Outage) bool { return o.Batches }))
	return sc.Held()
}

// blameLargeBatches names the candidates where a batch of many records was under way alone.
func (sc *Scenario) blameLargeBatches(outages []*line.Outage) {
	for _, o := range outages {
		var sent rpc.BatchParams
		if !o.Alone || len(o.Suspects) != 1 || o.Suspects[0].Request.Records < 10 || json.Unmarshal(o.Suspects[0].Request.Params, &sent) != nil {
			continue
		}
		sc.Explain(func(symptom string) bool { return symptom != symptomSilent }, wire.EitherCause(
			"a batch of "+quantity.Count(len(sent.Records), "record")+" with operation "+sent.SyncPlan.Operation+" ends the process, as one that takes too much memory does",
			"one of its records does", "the request below again, with fewer records,"), "", false)
	}
}

const symptomSilent = "no response any more"

func hasAlone(outages []*line.Outage) bool {
	return slices.ContainsFunc(outages, func(o *line.Outage) bool { return o.Alone })
}

// repeatSuspects sends the calls that were under way in an outage again, one by one, until the endpoint goes away
// once more: that is an outage with one call.
func (sc *Scenario) repeatSuspects() error {
	if sc.Confirming() {
		return nil
	}
	outages := sc.Watch.All()
	known := hasAlone(outages)
	for _, o := range outages {
		if !o.Ended || o.Silent || known != o.Alone || len(o.Suspects) == 0 {
			continue
		}
		for _, call := range o.Suspects[:min(len(o.Suspects), 16)] {
			again := call.Request
			again.ID, again.Conn = "", nil
			if err := sc.Session.Reserve(again.Records); err != nil {
				return nil // the budget is used up
			}
			_, err := sc.Session.Send(sc.Ctx, sc.Check().ID, again)
			if all := sc.Watch.All(); len(all) > len(outages) {
				if last := all[len(all)-1]; known {
					sc.Watch.Forget(last)
				} else {
					last.Alone, last.Call = true, call.Name+", which was sent again alone"
					last.Chance = sc.survives(again)
				}
				return nil
			}
			if err != nil {
				return sc.unlessAway(err)
			}
		}
		if o.Chance = true; known {
			return nil // one is enough
		}
	}
	return nil
}

// survives reports whether a planning call, with which the endpoint has gone away, is answered when it
// comes once more: then the call did not end it.
func (sc *Scenario) survives(again line.Request) bool {
	if again.Body != nil || again.Method == rpc.MethodSyncBatch || !slices.Contains(rpc.Methods(), again.Method) {
		return false
	}
	outages := len(sc.Watch.All())
	r, err := sc.Session.Send(sc.Ctx, sc.Check().ID, again)
	return err == nil && r.Ended() && len(sc.Watch.All()) == outages
}

// OfCleanUp adds what the clean-up, with the largest delete batches of the run, shows against a check.
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
				actual += "; " + g.StillSeen()
			}
			sc.Object = g.Object
			sc.BrokenFor("delete", "the record "+exchange.KeyText(k.Identifier)+" deleted: it was acknowledged when it was written", actual, d.Reply)
			if f := sc.lastFinding(); known {
				f.Cause, f.Fix = cause.Text, cause.Fix
			}
		}
	}
}

// deletesDenied: an acknowledged record that still exists was not deleted (spec 4.2). A run with
// findings keeps its verdict, since a late write or another key (SEM-014) may explain it.
func (sc *Scenario) deletesDenied() {
	if sc.j.Settled.found() {
		return
	}
	for _, g := range sc.j.Cleaned {
		denied := lists.Where(g.StillThere, func(k journal.Key) bool { return g.AnswerTo(k).Acknowledged && g.AnswerTo(k).Reply != nil })
		if len(denied) == 0 {
			continue
		}
		sc.Object = g.Object
		sc.BrokenFor("delete", exchange.KeyText(denied[0].Identifier)+" gone: its delete was acknowledged when the run cleaned up",
			fmt.Sprintf("%s, and %d of the %s of the clean-up in all", g.StillSeen(), len(denied), quantity.Count(len(g.Keys), "record")),
			g.AnswerTo(denied[0]).Reply)
		f := sc.lastFinding()
		other := map[bool]string{true: "that update acknowledges absent keys", false: "that other syncs have written the records (in a thread or process that remembers keys for itself)"}[sc.Readback == nil]
		f.Cause = wire.EitherCause("the size of the batches (this check deletes less at once)", other, "the request below again, with one of its records,")
		if len(denied) < len(g.Keys) && !slices.ContainsFunc(denied, func(k journal.Key) bool { return plainKey.MatchString(exchange.KeyText(k.Identifier)) }) {
			f.Cause = "delete does not find keys with spaces, quotes or other unusual characters as they are stored: they are trimmed, decoded or escaped on the way to the look-up."
		}
	}
}

// plainKey is a key of letters, digits and what addresses have.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9@._-]+$`)

// found reports whether a check has found something that may explain what the clean-up sees.
func (s *statuses) found() bool {
	for id, status := range s.by.Range {
		area, _, _ := strings.Cut(id.(string), "-")
		kept := slices.Contains([]string{"SEM", "PAR", "DUP", "DUR"}, area) // is about how records are kept
		explains := slices.Contains([]any{conformance.Fail, conformance.Flaky, conformance.HarnessError}, status)
		if explains || kept && status == conformance.Warn {
			return true
		}
	}
	return false
}
