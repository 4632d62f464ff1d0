package inspect

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// tell assembles the explanation.
func (x *explaining) tell(ctx context.Context) (*controlapi.Explained, error) {
	e := &controlapi.Explained{
		SyncID: x.sync.ID, RunID: x.run.ID, Identifier: x.found, SourceRow: orNull(x.row), Record: orNull(x.record), Copies: x.copies,
		Attempts: x.attempts(), SchemaChanges: append([]api.SchemaChange{}, x.run.Run.SchemaChanges...),
	}
	x.exchanges(e.Attempts)
	if x.sourceFault != "" {
		e.SourceError = &x.sourceFault
	}
	if x.invalid != "" {
		e.Invalid = &x.invalid
	}
	e.Prints = x.prints()
	e.Decision, e.Reason = x.decide()
	if last := x.last(); last != nil {
		word := last.Verdict.String()
		if inDoubt(last) {
			word = verdictDoubt
		}
		e.Verdict, e.Message = &word, last.Message
	}
	e.Next = x.next()
	return e, nil
}

func orNull(text []byte) json.RawMessage {
	if len(text) == 0 {
		return json.RawMessage("null")
	}
	return text
}

// last is the record of the run that counts; nil: there is none.
func (x *explaining) last() *ledger.Logged {
	if len(x.events) == 0 {
		return nil
	}
	return &x.events[len(x.events)-1]
}

func inDoubt(l *ledger.Logged) bool { return runs.InDoubt(&l.Record) }

// prints are the fingerprints of before, after and now.
func (x *explaining) prints() (p controlapi.ExplainedPrints) {
	shown := func(print ledger.Fingerprint) *string {
		if print == (ledger.Fingerprint{}) {
			return nil
		}
		return api.Ptr(hex.EncodeToString(print[:]))
	}
	switch {
	case x.acked != nil && !x.acked.Delete:
		p.Before = shown(x.acked.Print)
	case x.acked == nil && x.untouched() && x.state != nil && x.state.Known:
		p.Before = shown(x.state.Print) // its log is gone
	}
	p.After = p.Before
	for i := range x.events {
		if one := &x.events[i]; one.Verdict == ledger.Acknowledged {
			if p.After = nil; !one.Delete {
				p.After = shown(one.Print)
			}
		}
	}
	if x.record != nil && x.invalid == "" && x.view != nil {
		p.Now = shown(executor.Fingerprint(x.view.plan, x.record, x.mark))
	}
	return p
}

// untouched reports whether neither the run nor a later one has anything of the key.
func (x *explaining) untouched() bool { return len(x.events) == 0 && x.later == nil }

// attempts are the calls that carried the record.
func (x *explaining) attempts() []controlapi.ExplainedAttempt {
	list := []controlapi.ExplainedAttempt{}
	for i := range x.events {
		one := &x.events[i]
		// A note before a batch is sent is an attempt only where no verdict
		// followed: the process was killed.
		if inDoubt(one) && len(one.Batch.Calls) == 0 && i+1 < len(x.events) && !inDoubt(&x.events[i+1]) {
			continue
		}
		if one.Verdict == ledger.Invalid || one.Batch.Operation == executor.OperationSkip {
			continue
		}
		for n, call := range one.Batch.Calls {
			if n < len(one.Batch.Calls)-1 {
				list = append(list, x.attempt(one, call, true))
			}
		}
		call := ""
		if n := len(one.Batch.Calls); n > 0 {
			call = one.Batch.Calls[n-1]
		}
		list = append(list, x.attempt(one, call, false))
	}
	for i := range list {
		list[i].Number = int64(i + 1)
	}
	return list
}

// attempt is one call; failed ones brought no verdict.
func (x *explaining) attempt(one *ledger.Logged, call string, failed bool) controlapi.ExplainedAttempt {
	a := controlapi.ExplainedAttempt{
		Operation: one.Batch.Operation, Verdict: one.Verdict.String(), Message: one.Message, Record: orNull(one.Payload),
		StartedAt: api.At(one.Batch.StartedAt), CompletedAt: api.At(one.Batch.CompletedAt),
	}
	switch {
	case failed:
		a.Verdict, a.Message, a.StartedAt, a.CompletedAt = verdictFailed, "the call brought no verdict", nil, nil
	case inDoubt(one):
		a.Verdict, a.CompletedAt = verdictDoubt, nil
	}
	if call == "" {
		return a
	}
	a.Call = &call
	return a
}

// exchanges adds what the journal has of the calls.
func (x *explaining) exchanges(attempts []controlapi.ExplainedAttempt) {
	for i := range attempts {
		a := &attempts[i]
		if a.Call == nil {
			continue
		}
		entry := x.k.Journal.Calls.Find(*a.Call)
		if entry == nil {
			continue
		}
		a.Exchange = &controlapi.ExplainedExchange{
			ID: entry.ID, Request: orNull(entry.Request), Response: orNull(entry.Response), RequestBytes: entry.Sent,
			ResponseBytes: entry.Received, Status: entry.Status, Outcome: entry.Outcome, Error: entry.Error,
		}
		if a.Verdict == verdictFailed {
			a.Message = entry.Error
			a.StartedAt, a.CompletedAt = api.At(entry.Started), api.At(entry.Started.Add(entry.Duration))
		}
	}
}

// next reports when the record is sent again.
func (x *explaining) next() controlapi.ExplainedRetry {
	last := x.last()
	if last == nil {
		last = x.before
	}
	if x.later != nil {
		last = x.later
	}
	none := controlapi.ExplainedRetry{When: retryNone}
	gone := x.row == nil && x.sourceFault == ""
	switch {
	case last == nil || last.Verdict != ledger.Rejected, !last.Delete && (gone || x.invalid != ""):
		return none
	case x.run.Run.Status == api.RunWorking || x.run.Run.Status == api.RunQueued:
		return controlapi.ExplainedRetry{When: retryThisRun}
	}
	retry := controlapi.ExplainedRetry{When: retryNextRun}
	if at := runs.NextRun(&x.sync.Config, x.k.Clock.Now()); at != (time.Time{}) {
		retry.At = api.At(at)
	}
	return retry
}
