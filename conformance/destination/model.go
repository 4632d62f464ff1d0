package destination

import (
	"encoding/json"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/destsim/rpc"
)

// place names one record of the destination: object, identifier field, key.
type place = model.Place

func (r *record) place() place {
	return place{Object: r.object.APIName, Field: r.id.APIName, Key: exchange.KeyText(r.key)}
}

// expected is what the destination must hold for a record, as the ledger of the run has it.
type expected struct {
	model.State
	record *record // as it was sent last
}

// asSent is a record that must be there as this batch had it.
func asSent(r *record) *expected {
	return &expected{State: model.State{Known: true, Exists: true, Written: true, Values: r.values}, record: r}
}

// view is what the ledger of the run says of the records of one scenario.
type view struct {
	ledger *model.Ledger
	at     map[place]*expected
	order  []place
}

func (s *session) newView() *view { return &view{ledger: &s.ledger, at: map[place]*expected{}} }

// get returns what must hold for a record now.
func (v *view) get(r *record) *expected {
	p := r.place()
	e := v.at[p]
	if e == nil {
		e = &expected{record: r}
		v.at[p] = e
		v.order = append(v.order, p)
	}
	e.State = v.ledger.State(p)
	return e
}

// follow makes the records of a batch those of the scenario.
func (v *view) follow(b *batch) {
	for _, r := range b.records {
		v.get(r).record = r
	}
}

// all returns the expectations in the order in which their keys were first sent.
func (v *view) all() []*expected {
	out := make([]*expected, len(v.order))
	for i, p := range v.order {
		out[i] = v.get(v.at[p].record)
	}
	return out
}

// entered is a batch as the ledger of the run has it.
func (sc *scenario) entered(operation string, records []*record) *model.Batch {
	b := &model.Batch{Check: sc.Check().ID, Operation: operation}
	for _, r := range records {
		n := model.Naming{Place: r.place(), Values: r.values, Odd: r.odd.what != "" || len(r.odd.fields) > 0, Near: r.near || !r.id.Identifier, Bulk: sc.Check().Load || r.isLarge()}
		if operation == rpc.OperationDelete {
			n.Values = map[string]json.RawMessage{r.id.APIName: r.key}
		}
		for _, f := range r.object.identifiers() {
			if raw, sent := n.Values[f.APIName]; sent && f.APIName != r.id.APIName && string(raw) != "null" {
				n.Others = append(n.Others, place{Object: r.object.APIName, Field: f.APIName, Key: exchange.KeyText(raw)})
			}
		}
		n.Fixed = func(field string) bool {
			f, declared := r.object.field(field)
			return declared && !f.Updateable && field != r.id.APIName
		}
		b.Records = append(b.Records, n)
	}
	return b
}

// enter tells the ledger how a batch was answered; unsent: no byte of it has left.
func (sc *scenario) enter(e *model.Batch, b *batch, unsent bool) {
	answers := make([]model.Answer, len(e.Records))
	for i := range answers {
		answers[i] = sc.answerOf(b, i, unsent)
	}
	if b.reply != nil && len(b.reply.Body) <= mostExhibited {
		e.Exhibit = b.reply
	}
	sc.ledger.End(e, answers)
}

// isLarge reports whether a record takes long to read back.
func (r *record) isLarge() bool {
	const most = 4 << 10
	n := 0
	for _, raw := range r.values {
		n += len(raw)
	}
	return n > most
}

// mostExhibited is the size of a reply up to which the ledger keeps it for a finding.
const mostExhibited = 16 << 10

func (sc *scenario) answerOf(b *batch, i int, unsent bool) model.Answer {
	switch r := b.records[i]; {
	case unsent:
		return model.Answer{Outcome: model.Unsent}
	case b.reply == nil:
		return model.Answer{}
	case sc.skipped(b, r) && b.succeeded(r):
		return model.Answer{Outcome: model.Acknowledged, Words: "skipped " + skipWords(b, r)}
	case b.succeeded(r):
		return model.Answer{Outcome: model.Acknowledged}
	case b.failed(r):
		return model.Answer{Outcome: model.Refused, Words: "skipped " + skipWords(b, r)}
	case b.refused(r):
		return model.Answer{Outcome: model.Refused, Words: b.refusalOf(r)}
	}
	return model.Answer{}
}
