package audit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// judge compares the stored record of one identifier with the claims, and
// then with the source. A record has at most one finding: the first is the
// most specific.
func (a *audit) judge(one *subject) {
	h := &one.history
	// The state knows of a refusal whose log is gone.
	if h.pending == nil && h.acked == nil && h.state != nil && h.state.Verdict == ledger.Rejected {
		h.pending = &event{verdict: ledger.Rejected, deleted: h.state.Deleted}
	}
	claim := h.claims(a.skipsHistory())
	if a.judgeClaim(one, claim) {
		return
	}
	if a.completed && a.judgeSource(one, claim) {
		return
	}
	if h.pending != nil {
		a.find(Finding{Kind: Refused, Identifier: one.key, RunID: h.pending.known(), Message: h.pending.says()})
	}
}

// skipsHistory reports whether the first run took existing rows as sent.
func (a *audit) skipsHistory() bool {
	how := a.job.Config.HistoricalSyncOperation
	return a.job.Config.Operation == api.OperationAppend && how != nil && *how == api.HistorySkip
}

// judgeClaim compares destination and ledger; true where
// it has found something.
func (a *audit) judgeClaim(one *subject, claim claim) bool {
	if one.stored != nil && one.stored.Count > 1 && claim != nothing && claim != assumed {
		a.find(Finding{
			Kind: Duplicate, Identifier: one.key, RunID: one.history.acked.runID(),
			Message: fmt.Sprintf("stored %d times", one.stored.Count), Expected: number(1), Actual: number(one.stored.Count),
		})
		return true
	}
	switch claim {
	case stored:
		if one.stored == nil {
			return a.judgeLoss(one)
		}
		return a.judgeValue(one)
	case removed:
		return one.stored != nil && a.judgeReturn(one)
	case nothing:
		return one.stored != nil && a.judgeStranger(one)
	}
	return false
}

// judgeLoss: an acknowledged record is not stored.
func (a *audit) judgeLoss(one *subject) bool {
	h := &one.history
	if p := h.pending; p != nil && p.deleted {
		a.find(Finding{
			Kind: Unacknowledged, Identifier: one.key, RunID: p.known(), Expected: h.payload(),
			Message: "removed, though its removal was not acknowledged: " + p.says(),
		})
		return true
	}
	if a.job.Config.Operation == api.OperationUpdate && a.job.SkipsAcknowledged {
		return false // there was nothing to update
	}
	a.find(Finding{Kind: Lost, Identifier: one.key, RunID: h.acked.runID(), Expected: h.payload(), Message: "acknowledged" + inRun(h.acked) + ", and not stored"})
	return true
}

// judgeValue: an acknowledged record is stored; as it was sent?
func (a *audit) judgeValue(one *subject) bool {
	h := &one.history
	sent := h.payload()
	if len(sent) == 0 {
		return false // the sent record is not known any more
	}
	d := a.compare(sent, one.stored.Fields, false)
	if d == nil {
		return false
	}
	for _, payload := range h.payloads {
		// Each of several events of one key may be the one that a destination keeps.
		if !a.changed && a.compare(payload, one.stored.Fields, false) == nil {
			return false
		}
	}
	if !a.changed && a.job.SkipsAcknowledged {
		return false // the insert met a record that was there
	}
	f := Finding{Identifier: one.key, Field: &d.field, Expected: d.expected, Actual: d.actual}
	if p := h.pending; p != nil && !p.deleted && a.mayBe(h, one.stored) {
		f.Kind, f.RunID, f.Message = Unacknowledged, p.known(), "stored with a value that was not acknowledged: "+p.says()
	} else {
		f.Kind, f.RunID, f.Message = Changed, h.acked.runID(), "the stored value is another than was acknowledged"+inRun(h.acked)
	}
	a.find(f)
	return true
}

// mayBe reports whether a stored record may be one that was sent after the last
// acknowledgement: the fate of one without an answer is unknown.
func (a *audit) mayBe(h *history, stored *Stored) bool {
	for _, payload := range h.refused {
		if a.compare(payload, stored.Fields, false) == nil {
			return true
		}
	}
	return h.pending.doubt
}

// judgeReturn: a record is stored whose removal was acknowledged.
func (a *audit) judgeReturn(one *subject) bool {
	h := &one.history
	f := Finding{Kind: Leftover, Identifier: one.key, RunID: h.acked.runID(), Actual: one.stored.text(), Message: "its removal was acknowledged" + inRun(h.acked) + ", and it is stored"}
	if p := h.pending; p != nil && !p.deleted {
		f.Kind, f.RunID, f.Message = Unacknowledged, p.known(), "stored again, though that was not acknowledged: "+p.says()
	}
	a.find(f)
	return true
}

// judgeStranger: a record is stored that was never acknowledged.
func (a *audit) judgeStranger(one *subject) bool {
	h := &one.history
	if p := h.pending; p != nil && !p.deleted && a.looksSent(one) {
		a.find(Finding{Kind: Unacknowledged, Identifier: one.key, RunID: p.known(), Actual: one.stored.text(), Message: "stored, though it was not acknowledged: " + p.says()})
		return true
	}
	if h.pending == nil {
		a.find(Finding{Kind: Foreign, Identifier: one.key, Actual: one.stored.text(), Message: "stored, and never sent by this sync"})
		return a.job.Destination.List != nil // with a look-up it is known because the source has it
	}
	return false
}

// looksSent reports whether a stored record is one that the sync has sent, as far
// as that is known.
func (a *audit) looksSent(one *subject) bool {
	h := &one.history
	for _, payload := range h.refused {
		if a.compare(payload, one.stored.Fields, false) == nil {
			return true
		}
	}
	if len(h.refused) > 0 {
		return false // an insert that met a foreign record
	}
	return one.row == nil || one.row.invalid != "" || a.compare(one.row.record, one.stored.Fields, true) == nil
}

// judgeSource compares with the source after a run that claims completion.
func (a *audit) judgeSource(one *subject, claim claim) bool {
	h, row := &one.history, one.row
	switch {
	case row == nil:
		if !a.deletes || claim != stored || one.stored == nil || h.pending != nil {
			return false
		}
		a.find(Finding{Kind: Leftover, Identifier: one.key, RunID: h.acked.runID(), Actual: one.stored.text(), Message: "the source no longer has it, and the mirror has not removed it"})
	case row.copies > 1 || row.invalid != "" || row.waits || h.pending != nil:
		return false
	case claim == nothing && (a.gaps || a.log != nil && a.skipsHistory()):
		return false // whether it was sent, or taken as sent, is not known
	case claim == nothing || claim == removed:
		a.find(Finding{Kind: Missing, Identifier: one.key, RunID: &a.last.ID, Expected: row.record, Message: "valid in the source, and never acknowledged, though the last run says completed"})
	case !a.changed || claim != stored || one.stored == nil:
		return false
	case bytes.Equal(row.record, h.payload()):
		return false // it was compared as the acknowledged one
	default:
		d := a.compare(row.record, one.stored.Fields, true)
		if d == nil {
			return false
		}
		a.find(Finding{
			Kind: Changed, Identifier: one.key, RunID: &a.last.ID, Field: &d.field, Expected: d.expected, Actual: d.actual,
			Message: "the stored value is another than the source has, though the last run says completed",
		})
	}
	return true
}

// says describes a refusal.
func (e *event) says() string {
	what := "record"
	if e.deleted {
		what = "removal"
	}
	switch {
	case e.doubt:
		return "the " + what + " was sent" + inRun(e) + ", and not answered"
	case e.message == "":
		return "the " + what + " was refused" + inRun(e)
	}
	return "the " + what + " was refused" + inRun(e) + ": " + e.message
}

// known is the run of a refusal whose log is kept.
func (e *event) known() *int64 {
	if e.run == 0 {
		return nil
	}
	return e.runID()
}

func inRun(e *event) string {
	if e == nil || e.run == 0 {
		return ""
	}
	return fmt.Sprintf(" in run %d", e.run)
}

// payload is the last acknowledged record, if known.
func (h *history) payload() []byte {
	switch {
	case h.acked != nil:
		return h.acked.payload
	case h.state != nil && h.state.Verdict == ledger.Acknowledged:
		return h.state.Row
	}
	return nil
}

// text is a stored record as JSON.
func (s *Stored) text() []byte {
	text, err := json.Marshal(s.Fields)
	if err != nil { // they were read from JSON
		return rawjson.AppendString(nil, err.Error())
	}
	return text
}
